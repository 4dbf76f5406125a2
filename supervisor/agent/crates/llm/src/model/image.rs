//! Images in a transcript.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use imagesize::ImageType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The most pixels of a side. Anthropic refuses larger images
/// (<https://platform.claude.com/docs/en/build-with-claude/vision>), and all others scale them down.
pub const MAX_IMAGE_PIXELS: u32 = 8_000;

/// The pixels of a side of the square that is one token to a model. Anthropic and several others count so.
const TOKEN_PIXELS: u32 = 28;
/// The fewest tokens of an image: OpenAI's price of a small one
/// (<https://developers.openai.com/api/docs/guides/images-vision>).
const MIN_IMAGE_TOKENS: usize = 85;
/// The most tokens that an image is taken for: providers scale larger ones down to about so many. Models of a
/// higher resolution count up to three times as many: what it was is in the usage that their provider reports.
const MAX_IMAGE_TOKENS: usize = 1_600;

/// The type of an image. Others are sent to no model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP.
    Webp,
    /// GIF.
    Gif,
}

impl ImageKind {
    /// The media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
        }
    }

    /// The name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Webp => "WebP",
            Self::Gif => "GIF",
        }
    }
}

/// What a transcript has of an image. Its bytes are beside the messages ([`ShownImages`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// SHA-256 of the bytes, in hex.
    pub digest: String,
    /// The type, by the first bytes.
    pub kind: ImageKind,
    /// How many bytes it has.
    pub bytes: usize,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
    /// What its sender calls it, such as the name of a file; empty for a plugin's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// Bytes are no image that a model can be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// They are of another type.
    #[error("it is no PNG, JPEG, WebP or GIF by its first bytes: convert it to one of these")]
    Type,
    /// The head of the file is broken.
    #[error(
        "its head is broken, so that its size in pixels is not known: write it anew with another program"
    )]
    Broken,
    /// It is larger than providers take.
    #[error(
        "it has {width} × {height} pixels, and providers take at most {MAX_IMAGE_PIXELS} on a side: scale it down"
    )]
    Pixels {
        /// Its width.
        width: usize,
        /// Its height.
        height: usize,
    },
}

impl Image {
    /// Looks at the head of an image; nothing is decoded.
    ///
    /// # Errors
    /// [`ImageError`]
    pub fn read(bytes: &[u8], name: &str) -> Result<Self, ImageError> {
        let kind = match imagesize::image_type(bytes) {
            Ok(ImageType::Png) => ImageKind::Png,
            Ok(ImageType::Jpeg) => ImageKind::Jpeg,
            Ok(ImageType::Webp) => ImageKind::Webp,
            Ok(ImageType::Gif) => ImageKind::Gif,
            _ => return Err(ImageError::Type),
        };
        let size = imagesize::blob_size(bytes).map_err(|_| ImageError::Broken)?;
        let (width, height) = (size.width, size.height);
        let pixels = |side: usize| u32::try_from(side).ok().filter(|side| *side <= MAX_IMAGE_PIXELS);
        let (Some(w), Some(h)) = (pixels(width), pixels(height)) else {
            return Err(ImageError::Pixels { width, height });
        };
        if w == 0 || h == 0 {
            return Err(ImageError::Broken);
        }
        Ok(Self {
            digest: hex::encode(Sha256::digest(bytes)),
            kind,
            bytes: bytes.len(),
            width: w,
            height: h,
            name: name.to_owned(),
        })
    }

    /// About how many tokens it is to a model.
    #[must_use]
    pub fn tokens(&self) -> usize {
        let cells = |side: u32| usize::try_from(side.div_ceil(TOKEN_PIXELS)).unwrap_or(usize::MAX);
        (cells(self.width).saturating_mul(cells(self.height))).clamp(MIN_IMAGE_TOKENS, MAX_IMAGE_TOKENS)
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, bytes, width, height, name, .. } = self;
        if !name.is_empty() {
            write!(f, "{name}, ")?;
        }
        write!(f, "{}, {width} × {height} pixels, {} KiB", kind.name(), bytes.div_ceil(1 << 10))
    }
}

/// The bytes of a request's images.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShownImages {
    bytes: BTreeMap<String, Arc<[u8]>>,
    without_vision: bool,
}

impl ShownImages {
    /// No image: the model cannot look at pictures.
    #[must_use]
    pub fn without_vision() -> Self {
        Self { bytes: BTreeMap::new(), without_vision: true }
    }

    /// Adds the bytes of the image with this digest.
    pub fn add(&mut self, digest: String, bytes: Arc<[u8]>) {
        self.bytes.insert(digest, bytes);
    }

    /// The bytes of an image, if they are there.
    #[must_use]
    pub fn bytes_of(&self, image: &Image) -> Option<&[u8]> {
        self.bytes.get(&image.digest).map(|bytes| &**bytes)
    }

    /// The bytes of an image; or why there are none, as a text for the model.
    pub(crate) fn get(&self, image: &Image) -> Result<&[u8], &'static str> {
        match self.bytes.get(&image.digest) {
            Some(bytes) => Ok(bytes),
            None if self.without_vision => Err("you cannot look at pictures"),
            None => Err("it is no longer stored"),
        }
    }
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
