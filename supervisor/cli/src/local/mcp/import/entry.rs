//! A plugin's entry in the configuration.

use std::fmt::Write as _;

use serde_json::json;

/// The keys above the entries, for a file without them.
pub(super) const HEAD: &str = "plugins:\n  tools:\n    plugins:\n";
/// The indentation of the entries.
const INDENT: &str = "      ";

/// One plugin. Its strings are in configuration syntax: secrets are replaced by variables, and dollar signs
/// are doubled.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Entry {
    pub(super) plugin: String,
    pub(super) command: Option<String>,
    pub(super) args: Vec<String>,
    pub(super) url: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) env: Vec<(String, String)>,
    pub(super) enabled: bool,
    /// Whether it may write what its arguments and variables name.
    pub(super) may_write: bool,
    pub(super) read: Vec<String>,
    pub(super) write: Vec<String>,
    pub(super) execute: Vec<String>,
    /// Variables that have to be set, each with its meaning.
    pub(super) variables: Vec<String>,
}

impl Entry {
    /// The command or address in one line, without secrets.
    pub(super) fn summary(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => {
                std::iter::once(command).chain(&self.args).cloned().collect::<Vec<_>>().join(" ")
            }
            (None, Some(url)) => url.clone(),
            (None, None) => String::new(),
        }
    }

    /// The entry's lines below `plugins.tools.plugins`. Strings are written in JSON syntax, which is valid
    /// YAML.
    pub(super) fn yaml(&self) -> String {
        let mut text = String::new();
        let mut line = |depth: usize, words: String| {
            let _ = writeln!(text, "{INDENT}{:width$}{words}", "", width = 2 * depth);
        };
        line(0, format!("{}:", self.plugin));
        line(1, "dialect: mcp".to_owned());
        if let Some(url) = &self.url {
            line(1, format!("url: {}", json!(url)));
        }
        if let Some(command) = &self.command {
            line(1, format!("command: {}", json!(command)));
        }
        if !self.args.is_empty() {
            line(1, format!("args: {}", json!(self.args)));
        }
        if !self.enabled {
            line(1, "enabled: false".to_owned());
        }
        if !self.env.is_empty() {
            line(1, "env:".to_owned());
            for (name, value) in &self.env {
                line(2, format!("{}: {}", json!(name), json!(value)));
            }
        }
        if !self.headers.is_empty() {
            line(1, "config:".to_owned());
            line(2, "headers:".to_owned());
            for (name, value) in &self.headers {
                line(3, format!("{}: {}", json!(name), json!(value)));
            }
        }
        if ![&self.read, &self.write, &self.execute].iter().all(|paths| paths.is_empty()) {
            line(1, "sandbox:".to_owned());
            line(2, "fs:".to_owned());
            for (key, paths) in [("read", &self.read), ("write", &self.write), ("execute", &self.execute)] {
                if !paths.is_empty() {
                    line(3, format!("{key}: {}", json!(paths)));
                }
            }
        }
        text
    }
}
