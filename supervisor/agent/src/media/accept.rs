//! Checks the images of a question.

use talon_agent_settings::MediaKeys;
use talon_llm::model::{Image, ImageError};
use talon_proto::agent::Media;
use talon_sanitize::Raw;

use super::ImageWithBytes;

/// The longest name of an image that is shown: longer ones of files are no names.
const MAX_NAME_BYTES: usize = 128;

/// The images of a question are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MediaError {
    /// They are too many.
    #[error("{count} images are more than one question may have: send at most {most} (agent.media.images)")]
    TooMany {
        /// How many they are.
        count: usize,
        /// How many they may be.
        most: u32,
    },
    /// The operator wants none.
    #[error("this agent takes no images: an operator changes that with agent.media.images")]
    NotTaken,
    /// One is too large.
    #[error(
        "the image {name} has {bytes} bytes, and may have {most} (agent.media.image_bytes): scale it down, or save it as JPEG"
    )]
    TooLarge {
        /// Which one.
        name: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        most: u32,
    },
    /// They are too large together.
    #[error(
        "the images have {bytes} bytes together, and may have {most} (agent.media.request_bytes): send fewer, or scale them down"
    )]
    TooLargeTogether {
        /// Their size.
        bytes: usize,
        /// The limit.
        most: u32,
    },
    /// One is none.
    #[error("{name} cannot be shown to a model: {error}")]
    NoImage {
        /// Which one.
        name: String,
        /// Why not.
        error: ImageError,
    },
}

/// The images of a question; the same one twice is one.
pub(crate) fn accept(media: Vec<Media>, keys: &MediaKeys) -> Result<Vec<ImageWithBytes>, MediaError> {
    if media.is_empty() {
        return Ok(Vec::new());
    }
    if keys.images == 0 {
        return Err(MediaError::NotTaken);
    }
    if media.len() > number(keys.images) {
        return Err(MediaError::TooMany { count: media.len(), most: keys.images });
    }
    let bytes: usize = media.iter().map(|one| one.data.len()).sum();
    let mut accepted: Vec<ImageWithBytes> = Vec::new();
    for (place, Media { data, name }) in media.into_iter().enumerate() {
        let name = match Raw::from(name).line_within(MAX_NAME_BYTES).into_string() {
            name if name.trim().is_empty() => format!("image {}", place + 1),
            name => name,
        };
        if data.len() > number(keys.image_bytes) {
            return Err(MediaError::TooLarge { name, bytes: data.len(), most: keys.image_bytes });
        }
        let image =
            Image::read(&data, &name).map_err(|error| MediaError::NoImage { name: name.clone(), error })?;
        if accepted.iter().all(|(other, _)| other.digest != image.digest) {
            accepted.push((image, data.into()));
        }
    }
    if bytes > number(keys.request_bytes) {
        return Err(MediaError::TooLargeTogether { bytes, most: keys.request_bytes });
    }
    Ok(accepted)
}

pub(super) fn number(key: u32) -> usize {
    usize::try_from(key).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(7_u32.to_be_bytes());
        bytes.extend([8, 2, 0, 0, 0, 0, 0, 0, 0]);
        bytes
    }

    fn media(name: &str, data: Vec<u8>) -> Media {
        Media { name: name.to_owned(), data }
    }

    // Promises: AGENT-161
    #[test]
    fn what_cannot_be_shown_is_refused_with_the_key_and_what_to_do() {
        let keys = MediaKeys { images: 2, image_bytes: 2_000, request_bytes: 2_500, ..MediaKeys::default() };
        let large = [png(1), vec![0; 1_500]].concat();
        let says = |media: Vec<Media>| accept(media, &keys).expect_err("refused").to_string();
        let huge = says(vec![media("huge.png", [png(1), vec![0; 3_000]].concat())]);
        assert!(
            huge.contains("huge.png has 3033 bytes") && huge.contains("agent.media.image_bytes"),
            "{huge}"
        );
        let three = says(vec![media("a", png(1)), media("b", png(2)), media("c", png(3))]);
        assert!(three.contains("3 images") && three.contains("agent.media.images"), "{three}");
        let together = says(vec![media("a", large.clone()), media("b", [png(2), vec![0; 1_500]].concat())]);
        assert!(
            together.contains("together") && together.contains("agent.media.request_bytes"),
            "{together}"
        );
        let none = says(vec![media("notes.txt\u{1b}[2J", b"hello".to_vec())]);
        assert!(none.contains("notes.txt") && none.contains("PNG, JPEG, WebP or GIF"), "{none}");
        assert!(!none.contains('\u{1b}'), "{none:?}");
        let off = accept(vec![media("a", png(1))], &MediaKeys { images: 0, ..keys });
        assert_eq!(off, Err(MediaError::NotTaken));
    }

    #[test]
    fn the_same_image_twice_is_one_and_a_nameless_one_has_its_number() {
        let accepted = accept(
            vec![media("a.png", png(1)), media("b.png", png(1)), media("", png(2))],
            &MediaKeys::default(),
        );
        let names: Vec<String> = accepted.expect("images").into_iter().map(|(image, _)| image.name).collect();
        assert_eq!(names, ["a.png", "image 3"]);
    }
}
