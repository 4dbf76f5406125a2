//! Plugins' keys as keys of the backend: `state/PLUGIN!KEY`. No id has the separator, so no key is two plugins'; and it comes before
//! every character of an id, so that plugins are in the order of their ids.

use talon_store::{Error, Key, PluginId};

/// How all of them begin, so that a backend may be shared with other data.
const ROOT: &[u8] = b"state/";
const SEPARATOR: u8 = b'!';

/// The prefix of all plugins.
pub(super) fn root() -> Vec<u8> {
    ROOT.to_vec()
}

/// How the keys of a plugin begin.
pub(super) fn prefix(plugin: &PluginId) -> Vec<u8> {
    [ROOT, plugin.as_str().as_bytes(), &[SEPARATOR]].concat()
}

/// The key of the backend for a plugin's key.
pub(super) fn key(plugin: &PluginId, key: &Key) -> Vec<u8> {
    let mut name = prefix(plugin);
    name.extend(key.as_bytes());
    name
}

/// A place behind all keys of a plugin, and before those of the next one.
pub(super) fn end(plugin: &PluginId) -> Vec<u8> {
    // The character behind the separator. No id has it there, since ids end before their separator.
    [ROOT, plugin.as_str().as_bytes(), &[SEPARATOR, u8::MAX]].concat()
}

/// The plugin and its key.
///
/// # Errors
/// [`Error::Unreadable`]: the backend has a key that talon-state did not write.
pub(super) fn parse(name: &[u8]) -> Result<(PluginId, Key), Error> {
    let parsed = || {
        let rest = std::str::from_utf8(name.strip_prefix(ROOT)?).ok()?;
        let (plugin, key) = rest.split_once(char::from(SEPARATOR))?;
        Some((PluginId::new(plugin).ok()?, Key::new(key).ok()?))
    };
    parsed().ok_or_else(|| Error::Unreadable {
        what: "key of a storage backend",
        why: "it is no plugin's: remove what others wrote below state/".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_plugins() {
        let plugin = PluginId::new("a-b").expect("an id");
        let of_plugin = Key::new("x/ü/\0").expect("a key");
        let name = key(&plugin, &of_plugin);
        assert_eq!(parse(&name).expect("parsed"), (plugin.clone(), of_plugin));
        assert!(name.starts_with(&prefix(&plugin)) && name < end(&plugin));
        // UTF-8 has no byte 0xff, so the end is behind every key.
        let last = Key::new("\u{10ffff}".repeat(9)).expect("a key");
        assert!(key(&plugin, &last) < end(&plugin));
        let next = PluginId::new("a-b0").expect("an id");
        assert!(prefix(&next) > end(&plugin));
        for foreign in [&b"other/a!b"[..], b"state/A!b", b"state/a", b"state/a!", b"state/a!\xff"] {
            assert!(parse(foreign).is_err());
        }
    }
}
