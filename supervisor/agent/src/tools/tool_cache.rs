//! Tools by their declarations. Turns offer mostly the same ones, and each would be sanitized, and its schema compiled, with every turn.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use prost::Message as _;
use serde_json::Value;
use talon_proto::plugin::Action;

use super::offered_tool::Tool;
use crate::cache_key::{CacheKey, CacheKeys};

/// The most bytes of declarations whose tools are kept. 1 MiB: some hundred plugins. At it all are forgotten, and made anew.
const MAX_BYTES: usize = 1 << 20;
/// The most patterns in the schemas of tools that are kept. 512: what one compiles to is limited to 256 KiB, and is mostly some KiB; all else
/// that a schema compiles to is in proportion to its text. At it all are forgotten, too.
const MAX_PATTERNS: usize = 512;

/// The tool of an action of a plugin.
pub(super) fn tool(plugin: &str, action: &Action) -> Arc<Tool> {
    static CACHE: LazyLock<ToolCache> = LazyLock::new(ToolCache::default);
    CACHE.tool(plugin, action)
}

#[derive(Default)]
struct ToolCache {
    keys: CacheKeys,
    kept: Mutex<KeptTools>,
}

#[derive(Default)]
struct KeptTools {
    tools: HashMap<CacheKey, Arc<Tool>>,
    bytes: usize,
    patterns: usize,
}

impl ToolCache {
    fn tool(&self, plugin: &str, action: &Action) -> Arc<Tool> {
        let declaration = action.encode_to_vec();
        let key = self.keys.of((plugin, &declaration));
        let known = self.kept.lock().tools.get(&key).cloned();
        if let Some(tool) = known {
            return tool;
        }
        let tool = Arc::new(Tool::new(plugin, action));
        let bytes = plugin.len() + declaration.len();
        let patterns = count_patterns(&tool.spec.parameters);
        if bytes > MAX_BYTES || patterns > MAX_PATTERNS {
            return tool;
        }
        let mut kept = self.kept.lock();
        if kept.bytes + bytes > MAX_BYTES || kept.patterns + patterns > MAX_PATTERNS {
            *kept = KeptTools::default();
        }
        if kept.tools.insert(key, Arc::clone(&tool)).is_none() {
            kept.bytes += bytes;
            kept.patterns += patterns;
        }
        tool
    }
}

/// How many patterns a schema has at most.
fn count_patterns(schema: &Value) -> usize {
    let of_field = |(name, value): (&String, &Value)| {
        let own = match (name.as_str(), value) {
            ("pattern", Value::String(_)) => 1,
            ("patternProperties", Value::Object(patterns)) => patterns.len(),
            _ => 0,
        };
        own + count_patterns(value)
    };
    match schema {
        Value::Object(fields) => fields.iter().map(of_field).sum(),
        Value::Array(items) => items.iter().map(count_patterns).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use talon_proto::plugin::Parameter;

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

    // Promises: GW-297
    #[test]
    fn what_schemas_compile_to_is_bounded() {
        let declared = |number: usize, patterns: usize| {
            let pattern = |at: usize| format!(r#"{{"pattern": "^{number}-{at}$"}}"#);
            let patterns: Vec<String> = (0..patterns).map(pattern).collect();
            let schema = format!(r#"{{"anyOf": [{}]}}"#, patterns.join(","));
            let parameter = Parameter { name: "x".to_owned(), schema, ..Parameter::default() };
            Action { parameters: vec![parameter], ..action(&number.to_string(), "Reads.") }
        };
        let cache = ToolCache::default();
        for number in 0..100 {
            cache.tool("files", &declared(number, 10));
        }
        let many = declared(100, MAX_PATTERNS + 1);
        assert!(!Arc::ptr_eq(&cache.tool("files", &many), &cache.tool("files", &many)), "it is not kept");
        let kept = cache.kept.lock();
        assert!(kept.patterns <= MAX_PATTERNS && kept.patterns == 10 * kept.tools.len(), "{}", kept.patterns);
        assert!((1..100).contains(&kept.tools.len()));
    }
}
