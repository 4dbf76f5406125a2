//! A file of a new plugin, as it is written in this program.

/// A file of a new plugin.
#[derive(Clone, Copy)]
pub(super) struct Template {
    /// Its path in the plugin's directory.
    pub(super) path: &'static str,
    /// The source path below `plugins-examples`; empty for templates that exist only here.
    #[cfg(test)]
    pub(super) from: &'static str,
    pub(super) text: &'static str,
}
