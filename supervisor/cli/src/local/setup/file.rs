//! The text of a new configuration file.

use std::fmt::Write as _;

use serde_json::Value;

use super::discovery::{KeyedProvider, PluginDirectory};
use super::ollama::{OllamaAddress, OllamaModel};

/// The context that a local model is loaded with, in tokens, if it has so much: Ollama's own default is often
/// 4,096, which tools alone fill, and each token costs memory.
const LOCAL_CONTEXT: u64 = 16_384;

/// What was found on this machine.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) ollama: Option<(OllamaAddress, OllamaModel)>,
    pub(super) keyed: Vec<KeyedProvider>,
    pub(super) plugins: Option<PluginDirectory>,
}

impl Findings {
    pub(super) fn has_model(&self) -> bool {
        self.ollama.is_some() || !self.keyed.is_empty()
    }

    /// The configuration file, for people to read and extend.
    pub(super) fn file_text(&self) -> String {
        let mut text = String::from(
            "# Written by `talon setup`. All keys: `talon config reference`; what is in force: `talon config show`.\n\
             agent:\n  enabled: true\n\nmodels:\n  providers:\n",
        );
        let mut catalog = String::new();
        if let Some((address, model)) = &self.ollama {
            let context = model.context.map_or(LOCAL_CONTEXT, |longest| longest.min(LOCAL_CONTEXT));
            let url = if address.is_default() {
                String::new()
            } else {
                format!(", base_url: {}", quoted(&address.base_url()))
            };
            let _ = writeln!(text, "    ollama: {{ kind: ollama, num_ctx: {context}{url} }}");
            let _ = writeln!(
                catalog,
                "    {}: {{ tier: mid, context_window: {context}, tools: {}, free: true }}",
                quoted(&format!("ollama/{}", model.name)),
                model.can_call_tools
            );
        }
        for KeyedProvider { variable, name, model, entry } in &self.keyed {
            let _ = writeln!(text, "    {name}: {{ kind: {name}, api_key_env: {variable} }}");
            let _ = writeln!(catalog, "    {name}/{model}: {entry}");
        }
        let _ = write!(text, "  catalog:\n{catalog}");
        if let Some(dir) = &self.plugins {
            let path = quoted(&dir.path.display().to_string());
            let _ = write!(text, "\nplugins:\n  tools:\n    plugin_dir: {path}\n");
        }
        text
    }
}

/// A YAML scalar: its double-quoted style takes every string of JSON.
fn quoted(text: &str) -> Value {
    Value::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_minimal_and_says_what_was_found() {
        let model = OllamaModel { name: "qwen3:8b".into(), can_call_tools: true, context: Some(8192) };
        let found = Findings {
            ollama: Some((OllamaAddress::parse("gpu:80").unwrap(), model)),
            keyed: super::super::discovery::keyed_providers(|_| Some("k".into())).collect(),
            plugins: Some(PluginDirectory { path: "/usr/lib/talon/plugins".into(), plugins: 1 }),
        };
        insta::assert_snapshot!(found.file_text());
    }
}
