//! A plugin's media as content of MCP.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ContentBlock, Resource, ResourceContents};
use talon_proto::plugin::Media;

/// The content of an item; `None` for a kind that this version does not know.
pub(crate) fn content(item: Media) -> Option<ContentBlock> {
    let Media { kind, mime_type, data, text, uri, name, title, description, size } = item;
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    match kind.as_str() {
        "image" => Some(ContentBlock::image(STANDARD.encode(data), mime_type)),
        "audio" => Some(ContentBlock::audio(STANDARD.encode(data), mime_type)),
        "resource" => {
            Some(ContentBlock::resource(resource(Media { mime_type, data, text, uri, ..Media::default() })))
        }
        "link" => {
            let name = given(name).unwrap_or_else(|| uri.clone());
            let mut link = Resource::new(uri, name);
            link.title = given(title);
            link.description = given(description);
            link.mime_type = given(mime_type);
            link.size = Some(size).filter(|size| *size > 0);
            Some(ContentBlock::resource_link(link))
        }
        _ => None,
    }
}

/// A resource: its text, or its bytes.
pub(crate) fn resource(item: Media) -> ResourceContents {
    let Media { mime_type, data, text, uri, .. } = item;
    let mime_type = Some(mime_type).filter(|mime_type| !mime_type.is_empty());
    if data.is_empty() {
        ResourceContents::TextResourceContents { uri, mime_type, text, meta: None }
    } else {
        ResourceContents::BlobResourceContents { uri, mime_type, blob: STANDARD.encode(data), meta: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn each_kind_has_its_content() {
        let media = |kind: &str, data: &[u8]| Media {
            kind: kind.to_owned(),
            mime_type: "image/png".to_owned(),
            data: data.to_vec(),
            uri: "x:1".to_owned(),
            ..Media::default()
        };
        let of = |item: Media| to_value(content(item)).unwrap();
        assert_eq!(
            of(media("image", b"hi")),
            json!({"type": "image", "data": "aGk=", "mimeType": "image/png"})
        );
        assert_eq!(of(media("audio", b"hi"))["type"], "audio");
        let blob = json!({"uri": "x:1", "mimeType": "image/png", "blob": "aGk="});
        assert_eq!(of(media("resource", b"hi")), json!({"type": "resource", "resource": blob}));
        let text = Media { text: "inside".to_owned(), ..media("resource", b"") };
        assert_eq!(of(text)["resource"]["text"], "inside");
        let link = json!({"type": "resource_link", "uri": "x:1", "name": "x:1", "mimeType": "image/png"});
        assert_eq!(of(media("link", b"")), link);
        assert!(content(media("video", b"")).is_none());
    }
}
