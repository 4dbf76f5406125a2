//! Addresses of resources and names of prompts: which plugin's they are stands in them.
//!
//! `notes+file:///a.txt` is the resource `file:///a.txt` of the plugin `notes`, and stays a URI, or a template of one:
//! a plugin's name is a valid beginning of a scheme, and holds no `+`. `notes__greet` is the prompt `greet`; a plugin's
//! name holds no `_`.

use std::borrow::Cow;

use talon_proto::plugin::Media;

const SCHEME_MARK: char = '+';
const NAME_MARK: &str = "__";

/// The address of a plugin's resource, or template, for a client.
pub(super) fn to_client(plugin: &str, uri: &str) -> String {
    format!("{plugin}{SCHEME_MARK}{uri}")
}

/// The plugin and its own address.
pub(super) fn of_client(uri: &str) -> Option<(&str, &str)> {
    uri.split_once(SCHEME_MARK)
}

/// The name of a plugin's prompt for a client.
pub(super) fn prompt_name(plugin: &str, name: &str) -> String {
    format!("{plugin}{NAME_MARK}{name}")
}

/// The plugin and its own name of a prompt.
pub(super) fn of_prompt(name: &str) -> Option<(&str, &str)> {
    name.split_once(NAME_MARK)
}

/// A link in a tool's answer, so that the client can read it here. Addresses on the web stay as they are.
pub(crate) fn prefix_link(plugin: &str, mut item: Media) -> Media {
    let is_web = ["http://", "https://"].iter().any(|scheme| item.uri.starts_with(scheme));
    if item.kind == "link" && !is_web && !item.uri.is_empty() {
        if item.name.is_empty() {
            item.name = item.uri.clone();
        }
        item.uri = to_client(plugin, &item.uri);
    }
    item
}

/// A part of a client's text, bounded for an error message.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    const MAX_SHOWN_CHARS: usize = 200;
    text.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_default).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_an_address_is_stands_in_it() {
        assert_eq!(to_client("notes", "file:///a+b"), "notes+file:///a+b");
        assert_eq!(of_client("notes+file:///a+b"), Some(("notes", "file:///a+b")));
        assert_eq!(of_client("file:///a"), None);
        assert_eq!(of_prompt(&prompt_name("notes", "a__b")), Some(("notes", "a__b")));
        let link =
            |kind: &str, uri: &str| Media { kind: kind.to_owned(), uri: uri.to_owned(), ..Media::default() };
        for (kind, uri, expected) in [
            ("link", "demo://x", "p+demo://x"),
            ("link", "https://example.org/", "https://example.org/"),
            ("resource", "demo://x", "demo://x"),
        ] {
            assert_eq!(prefix_link("p", link(kind, uri)).uri, expected);
        }
    }
}
