//! Images, audio, resources and links of an answer: what of them is passed on.
//!
//! They are no text that could be neutralized, so nothing of them goes to a caller unless the operator grants
//! the plugin that kind, and the caller says that it takes media. What is dropped is said in the answer's
//! text, with the reason. Of images and audio only types that every client knows are passed on, told by their
//! first bytes: what a plugin says of them counts nothing.

use std::collections::{BTreeMap, BTreeSet};

use talon_proto::plugin::Media;

/// How many media one answer may have. More than a page of a report shows; beyond it further ones are
/// dropped. Set with [`MediaPolicy::max_items`].
pub const DEFAULT_MAX_MEDIA_ITEMS: usize = 16;

/// How many bytes the media of one answer may have together: a few screenshots. A larger one is dropped. Set
/// with [`MediaPolicy::max_bytes`].
pub const DEFAULT_MAX_MEDIA_BYTES: usize = 4 << 20;

/// How much of a name, an address or a description is passed on.
pub(crate) const MAX_LABEL_BYTES: usize = 2048;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MediaKind {
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// The content of a resource: text, or bytes of any type.
    Resource,
    /// The address of a resource, which a client may follow.
    Link,
}

impl MediaKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Image, Self::Audio, Self::Resource, Self::Link];

    /// The word on the wire and in configurations: `image`, `audio`, `resource` or `link`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Resource => "resource",
            Self::Link => "link",
        }
    }

    fn of(media: &Media) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == media.kind)
    }
}

/// What is passed on of a plugin's media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaPolicy {
    /// The kinds that the operator grants. Default none.
    pub granted: BTreeSet<MediaKind>,
    /// How many items of one answer. Default [`DEFAULT_MAX_MEDIA_ITEMS`].
    pub max_items: usize,
    /// How many bytes all of them may have. Default [`DEFAULT_MAX_MEDIA_BYTES`].
    pub max_bytes: usize,
}

impl Default for MediaPolicy {
    fn default() -> Self {
        Self {
            granted: BTreeSet::new(),
            max_items: DEFAULT_MAX_MEDIA_ITEMS,
            max_bytes: DEFAULT_MAX_MEDIA_BYTES,
        }
    }
}

/// Why an item is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DropReason {
    UnknownKind,
    NotWanted,
    NotGranted,
    UnknownType,
    TooMany,
    TooLarge,
}

impl MediaPolicy {
    /// What of these is passed on, and a notice of what is not.
    pub(crate) fn admit(
        &self,
        media: Vec<Media>,
        wanted: bool,
        plugin: &str,
    ) -> (Vec<Media>, Option<String>) {
        let mut kept = Vec::new();
        let mut dropped = BTreeMap::<(DropReason, &'static str), usize>::new();
        let mut bytes = 0;
        for mut item in media {
            let kind = MediaKind::of(&item);
            let size = item.data.len() + item.text.len();
            let reason = match kind {
                None => Some(DropReason::UnknownKind),
                Some(_) if !wanted => Some(DropReason::NotWanted),
                Some(kind) if !self.granted.contains(&kind) => Some(DropReason::NotGranted),
                Some(kind) if !settle_type(kind, &mut item) => Some(DropReason::UnknownType),
                Some(_) if kept.len() >= self.max_items => Some(DropReason::TooMany),
                Some(_) if bytes + size > self.max_bytes => Some(DropReason::TooLarge),
                Some(_) => None,
            };
            match reason {
                Some(reason) => {
                    *dropped.entry((reason, kind.map_or("item", MediaKind::as_str))).or_default() += 1;
                }
                None => {
                    bytes += size;
                    kept.push(item);
                }
            }
        }
        let notice = (!dropped.is_empty()).then(|| {
            let each: Vec<String> = dropped
                .into_iter()
                .map(|((reason, kind), count)| {
                    format!("{count} {kind} ({})", self.explain(reason, kind, plugin))
                })
                .collect();
            format!("[not passed on: {}]", each.join("; "))
        });
        (kept, notice)
    }

    fn explain(&self, reason: DropReason, kind: &str, plugin: &str) -> String {
        match reason {
            DropReason::UnknownKind => "of an unknown kind".to_owned(),
            DropReason::NotWanted => "this client takes text only".to_owned(),
            DropReason::NotGranted => {
                format!("an operator grants it with `media: [{kind}]` in the entry of plugin {plugin}")
            }
            DropReason::UnknownType => {
                "its bytes are not of a known type: PNG, JPEG, GIF, WebP, BMP; WAV, MP3, Ogg, FLAC".to_owned()
            }
            DropReason::TooMany => {
                format!("more than {} in one answer, see guard.max_media_items", self.max_items)
            }
            DropReason::TooLarge => {
                format!("more than {} bytes in one answer, see guard.max_media_bytes", self.max_bytes)
            }
        }
    }
}

/// Sets the type of an item by its bytes. False for an image or audio of none that is known.
fn settle_type(kind: MediaKind, item: &mut Media) -> bool {
    let known = match kind {
        MediaKind::Image => image_type(&item.data),
        MediaKind::Audio => audio_type(&item.data),
        MediaKind::Resource | MediaKind::Link => {
            if !is_mime_type(&item.mime_type) {
                item.mime_type.clear();
            }
            return true;
        }
    };
    if let Some(known) = known {
        known.clone_into(&mut item.mime_type);
    }
    known.is_some()
}

/// The type of an image by its first bytes: those that browsers show, without SVG, which is a program.
fn image_type(data: &[u8]) -> Option<&'static str> {
    match data {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        // The size of the file, and four reserved bytes that are zero.
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Some("image/bmp"),
        _ => None,
    }
}

/// The type of audio by its first bytes.
fn audio_type(data: &[u8]) -> Option<&'static str> {
    match data {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        [b'I', b'D', b'3', ..] | [0xff, 0xfb | 0xf3 | 0xf2 | 0xfa, ..] => Some("audio/mpeg"),
        [b'O', b'g', b'g', b'S', ..] => Some("audio/ogg"),
        [b'f', b'L', b'a', b'C', ..] => Some("audio/flac"),
        _ => None,
    }
}

/// Two words with a slash, and parameters.
fn is_mime_type(text: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    text.len() <= 128
        && text.split_once('/').is_some_and(|(a, b)| word(a) && word(b.split(';').next().unwrap_or("")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    fn item(kind: &str, data: &[u8]) -> Media {
        Media {
            kind: kind.to_owned(),
            mime_type: "text/html".to_owned(),
            data: data.to_vec(),
            ..Media::default()
        }
    }

    fn granting(kinds: &[MediaKind]) -> MediaPolicy {
        MediaPolicy { granted: kinds.iter().copied().collect(), ..MediaPolicy::default() }
    }

    #[test]
    fn what_is_granted_is_passed_on_with_the_type_of_its_bytes() {
        let all = granting(&MediaKind::ALL);
        let media =
            vec![item("image", PNG), item("audio", b"OggSxx"), item("resource", b"\0"), item("link", b"")];
        let (kept, notice) = all.admit(media, true, "p");
        assert_eq!(notice, None);
        let types: Vec<&str> = kept.iter().map(|item| item.mime_type.as_str()).collect();
        assert_eq!(types, ["image/png", "audio/ogg", "text/html", "text/html"]);
    }

    #[test]
    fn what_is_dropped_is_said_with_the_reason() {
        let images = MediaPolicy { max_items: 2, max_bytes: 30, ..granting(&[MediaKind::Image]) };
        for (media, wanted, kept, says) in [
            (vec![item("image", PNG)], false, 0, "1 image (this client takes text only)"),
            (
                vec![item("audio", b"OggS")],
                true,
                0,
                "1 audio (an operator grants it with `media: [audio]` in the entry of plugin p)",
            ),
            (
                vec![item("image", b"<svg>"), item("image", b"")],
                true,
                0,
                "2 image (its bytes are not of a known type",
            ),
            (
                vec![item("image", PNG), item("image", &[PNG, &[0; 40]].concat())],
                true,
                1,
                "more than 30 bytes",
            ),
            (
                vec![item("image", PNG), item("image", PNG), item("image", PNG)],
                true,
                2,
                "1 image (more than 2 in one answer",
            ),
            (vec![item("video", b"x")], true, 0, "1 item (of an unknown kind)"),
        ] {
            let (found, notice) = images.admit(media, wanted, "p");
            let notice = notice.unwrap_or_default();
            assert_eq!(found.len(), kept, "{notice}");
            assert!(notice.starts_with("[not passed on: ") && notice.contains(says), "{notice}");
        }
    }

    #[test]
    fn a_type_that_is_none_is_not_passed_on() {
        for bad in ["", "text", "text/", "/html", "a b/c", "text/\u{1b}[2J"] {
            assert!(!is_mime_type(bad), "{bad}");
        }
        assert!(is_mime_type("text/html; charset=utf-8") && is_mime_type("image/svg+xml"));
    }
}
