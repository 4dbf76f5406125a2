//! Checks the images and files of a question.

use talon_agent_settings::MediaKeys;
use talon_llm::model::{Image, ImageError};
use talon_proto::agent::Media;
use talon_sanitize::Raw;

use super::{Attachment, AttachmentWithBytes, ImageWithBytes};

/// The longest name that is shown: longer ones are no names.
const MAX_NAME_BYTES: usize = 128;

/// What was sent with a question is refused.
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
    /// They are too many, whatever they are.
    #[error(
        "{count} images and files are more than one question may have: send at most {images} images (agent.media.images) and \
         {files} other files (agent.media.files)"
    )]
    TooManyTogether {
        /// How many they are.
        count: usize,
        /// How many images there may be.
        images: u32,
        /// How many other files there may be.
        files: u32,
    },
    /// There are too many files.
    #[error("{count} files are more than one question may have: send at most {most} (agent.media.files)")]
    TooManyFiles {
        /// How many they are.
        count: usize,
        /// How many they may be.
        most: u32,
    },
    /// The operator wants no files.
    #[error(
        "{name} is no PNG, JPEG, WebP or GIF, and this agent takes no other files: an operator changes that with agent.media.files"
    )]
    NoFiles {
        /// Which one.
        name: String,
    },
    /// A file is too large.
    #[error(
        "the file {name} has {bytes} bytes, and may have {most} (agent.media.file_bytes): send a part of it, or name it for a \
         tool that reads it"
    )]
    FileTooLarge {
        /// Which one.
        name: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        most: u32,
    },
    /// They are too large together.
    #[error(
        "images and files have {bytes} bytes together, and may have {most} (agent.media.request_bytes): send fewer at once"
    )]
    TooLargeTogether {
        /// Their size.
        bytes: usize,
        /// The limit.
        most: u32,
    },
    /// One is an image that models are not shown.
    #[error("{name} cannot be shown to a model: {error}")]
    NoImage {
        /// Which one.
        name: String,
        /// Why not.
        error: ImageError,
    },
}

/// What came with a question; the same bytes twice are there once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AcceptedMedia {
    /// The images that models can be shown.
    pub(crate) images: Vec<ImageWithBytes>,
    /// All other files.
    pub(crate) files: Vec<AttachmentWithBytes>,
}

/// Sorts what came with a question into images and other files, within the operator's limits.
pub(crate) fn accept(media: Vec<Media>, keys: &MediaKeys) -> Result<AcceptedMedia, MediaError> {
    let (most_images, most_files) = (number(keys.images), number(keys.files));
    if media.len() > most_images.max(1) + most_files.max(1) {
        let (images, files) = (keys.images, keys.files);
        return Err(MediaError::TooManyTogether { count: media.len(), images, files });
    }
    let bytes: usize = media.iter().map(|one| one.data.len()).sum();
    let mut accepted = AcceptedMedia::default();
    let (mut images, mut files) = (0, 0);
    for (place, Media { data, name }) in media.into_iter().enumerate() {
        let name = match Raw::from(name).line_within(MAX_NAME_BYTES).into_string() {
            name if name.trim().is_empty() => format!("file {}", place + 1),
            name => name,
        };
        match Image::read(&data, &name) {
            Err(ImageError::Type) => {
                files += 1;
                let file = file_of(data, name, keys)?;
                if accepted.files.iter().all(|(other, _)| other.digest != file.0.digest) {
                    accepted.files.push(file);
                }
            }
            read => {
                images += 1;
                let image = image_of(read, data, name, keys)?;
                if accepted.images.iter().all(|(other, _)| other.digest != image.0.digest) {
                    accepted.images.push(image);
                }
            }
        }
    }
    if images > most_images {
        return Err(MediaError::TooMany { count: images, most: keys.images });
    }
    if files > most_files {
        return Err(MediaError::TooManyFiles { count: files, most: keys.files });
    }
    if bytes > number(keys.request_bytes) {
        return Err(MediaError::TooLargeTogether { bytes, most: keys.request_bytes });
    }
    Ok(accepted)
}

fn image_of(
    read: Result<Image, ImageError>,
    data: Vec<u8>,
    name: String,
    keys: &MediaKeys,
) -> Result<ImageWithBytes, MediaError> {
    if keys.images == 0 {
        return Err(MediaError::NotTaken);
    }
    if data.len() > number(keys.image_bytes) {
        return Err(MediaError::TooLarge { name, bytes: data.len(), most: keys.image_bytes });
    }
    let image = read.map_err(|error| MediaError::NoImage { name, error })?;
    Ok((image, data.into()))
}

fn file_of(data: Vec<u8>, name: String, keys: &MediaKeys) -> Result<AttachmentWithBytes, MediaError> {
    if keys.files == 0 {
        return Err(MediaError::NoFiles { name });
    }
    if data.len() > number(keys.file_bytes) {
        return Err(MediaError::FileTooLarge { name, bytes: data.len(), most: keys.file_bytes });
    }
    Ok((Attachment::of(&data, &name), data.into()))
}

pub(super) fn number(key: u32) -> usize {
    usize::try_from(key).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::test_images::png;
    use super::*;

    fn media(name: &str, data: Vec<u8>) -> Media {
        Media { name: name.to_owned(), data }
    }

    // Promises: AGENT-161
    #[test]
    fn what_cannot_be_taken_is_refused_with_the_key_and_what_to_do() {
        let keys = MediaKeys {
            images: 2,
            image_bytes: 2_000,
            files: 2,
            file_bytes: 1_500,
            request_bytes: 2_500,
            ..MediaKeys::default()
        };
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
        let broken = says(vec![media("broken.png\u{1b}[2J", png(0))]);
        assert!(broken.contains("broken.png") && broken.contains("head is broken"), "{broken}");
        assert!(!broken.contains('\u{1b}'), "{broken:?}");
        let off = accept(vec![media("a", png(1))], &MediaKeys { images: 0, ..keys });
        assert_eq!(off, Err(MediaError::NotTaken));
    }

    // Promises: AGENT-167
    #[test]
    fn other_files_have_limits_of_their_own() {
        let keys = MediaKeys { files: 2, file_bytes: 1_500, ..MediaKeys::default() };
        let says = |media: Vec<Media>, keys| accept(media, &keys).expect_err("refused").to_string();
        let huge = says(vec![media("a.bin\u{1b}[2J", vec![0; 1_501])], keys);
        assert!(huge.contains("a.bin") && huge.contains("agent.media.file_bytes"), "{huge}");
        assert!(!huge.contains('\u{1b}'), "{huge:?}");
        let many = says((0..3).map(|number| media("a", vec![number])).collect(), keys);
        assert!(many.contains("3 files") && many.contains("agent.media.files"), "{many}");
        let flood = says((0..99).map(|_| media("", Vec::new())).collect(), keys);
        assert!(flood.contains("99 images and files"), "{flood}");
        let none = says(vec![media("a.txt", vec![1])], MediaKeys { files: 0, ..keys });
        assert!(none.contains("a.txt") && none.contains("agent.media.files"), "{none}");
        let both = vec![media("a.png", png(1)), media("a.txt", vec![1]), media("b.txt", vec![1])];
        let both = accept(both, &keys).expect("taken");
        assert_eq!((both.images.len(), both.files.len()), (1, 1));
        assert_eq!(both.files[0].0.name, "a.txt");
    }

    #[test]
    fn the_same_image_twice_is_one_and_a_nameless_one_has_its_number() {
        let accepted = accept(
            vec![media("a.png", png(1)), media("b.png", png(1)), media("", png(2))],
            &MediaKeys::default(),
        );
        let images = accepted.expect("images").images;
        let names: Vec<String> = images.into_iter().map(|(image, _)| image.name).collect();
        assert_eq!(names, ["a.png", "file 3"]);
    }
}
