//! Images of a transcript, as formats send them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::{Image, ImageKind, Request};

/// A part of a message with images.
pub(crate) enum ImagePart {
    /// What stands before images, or in the place of one.
    Text(String),
    /// An image in base64.
    Image { media_type: &'static str, base64: String },
}

/// The parts of a message with images. One that the model is not shown, and one of a type that the format does
/// not take, is described in words.
pub(crate) fn image_parts(
    introduction: &str,
    images: &[Image],
    request: &Request,
    takes: impl Fn(ImageKind) -> bool,
) -> Vec<ImagePart> {
    let introduction = (!introduction.is_empty()).then(|| ImagePart::Text(introduction.to_owned()));
    let each = images.iter().map(|image| {
        let bytes = match takes(image.kind) {
            true => request.images.get(image),
            false => Err("its type is not taken by this model's provider"),
        };
        match bytes {
            Ok(bytes) => {
                ImagePart::Image { media_type: image.kind.media_type(), base64: STANDARD.encode(bytes) }
            }
            Err(why) => ImagePart::Text(format!("[An image is not shown here, since {why}: {image}.]")),
        }
    });
    introduction.into_iter().chain(each).collect()
}

/// The address of an image that carries its bytes.
pub(crate) fn data_url(media_type: &str, base64: &str) -> String {
    format!("data:{media_type};base64,{base64}")
}
