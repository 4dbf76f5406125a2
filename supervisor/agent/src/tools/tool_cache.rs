//! Tools by their declarations. Turns offer mostly the same ones, and each would be sanitized, and its schema compiled, with every turn.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use prost::Message as _;
use talon_proto::plugin::Action;

use super::offered_tool::Tool;

/// The most bytes of declarations whose tools are kept. 1 MiB: some hundred plugins. At it all are forgotten, and made anew.
const MAX_BYTES: usize = 1 << 20;

/// The tool of an action of a plugin.
pub(super) fn tool(plugin: &str, action: &Action) -> Arc<Tool> {
    static CACHE: LazyLock<ToolCache> = LazyLock::new(ToolCache::default);
    CACHE.tool(plugin, action)
}

#[derive(Default)]
struct ToolCache {
    /// Keys are of 128 bits and differ in each process, so that no two declarations are taken for the same.
    hashers: [RandomState; 2],
    kept: Mutex<KeptTools>,
}

#[derive(Default)]
struct KeptTools {
    tools: HashMap<[u64; 2], Arc<Tool>>,
    bytes: usize,
}

impl ToolCache {
    fn tool(&self, plugin: &str, action: &Action) -> Arc<Tool> {
        let declaration = action.encode_to_vec();
        let key = self.hashers.each_ref().map(|hasher| hasher.hash_one((plugin, &declaration)));
        let known = self.kept.lock().tools.get(&key).cloned();
        if let Some(tool) = known {
            return tool;
        }
        let tool = Arc::new(Tool::new(plugin, action));
        let bytes = plugin.len() + declaration.len();
        if bytes > MAX_BYTES {
            return tool;
        }
        let mut kept = self.kept.lock();
        if kept.bytes + bytes > MAX_BYTES {
            *kept = KeptTools::default();
        }
        if kept.tools.insert(key, Arc::clone(&tool)).is_none() {
            kept.bytes += bytes;
        }
        tool
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(name: &str, description: &str) -> Action {
        Action { name: name.to_owned(), description: description.to_owned(), ..Action::default() }
    }

    // Promises: GW-297
    #[test]
    fn a_declaration_makes_one_tool_and_another_one_makes_another() {
        let cache = ToolCache::default();
        let first = cache.tool("files", &action("read", "Reads."));
        assert!(Arc::ptr_eq(&first, &cache.tool("files", &action("read", "Reads."))));
        for (plugin, action) in [
            ("files", action("read", "Reads a file.")),
            ("files", action("write", "Reads.")),
            ("disk", action("read", "Reads.")),
        ] {
            let other = cache.tool(plugin, &action);
            assert_eq!((other.plugin.as_str(), &other.action), (plugin, &action.name));
            assert_eq!(other.spec.description, action.description);
        }
    }

    // Promises: GW-297
    #[test]
    fn what_is_kept_is_bounded() {
        let cache = ToolCache::default();
        for number in 0..100 {
            cache.tool("files", &action(&number.to_string(), &"x".repeat(MAX_BYTES / 40)));
        }
        let large = cache.tool("files", &action("large", &"x".repeat(MAX_BYTES)));
        assert_eq!(large.action, "large");
        let kept = cache.kept.lock();
        assert!(kept.bytes <= MAX_BYTES && (1..100).contains(&kept.tools.len()), "{}", kept.bytes);
    }
}
