//! Why nothing was approved.

use talon_plugin_config::name::PluginName;
use talon_sanitize::Sanitized;

/// Why nothing was approved. The messages end with what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApproveError {
    /// The plugin has not declared anything yet.
    #[error("{0} has not declared yet what it offers; `talon plugin start {0}` starts it")]
    NotDeclared(PluginName),
    /// The plugin declares no such action.
    #[error("{plugin} declares no action {action:?}; `talon plugin show {plugin}` lists those it does")]
    UnknownAction {
        /// The plugin.
        plugin: PluginName,
        /// The name, bounded.
        action: Sanitized,
    },
    /// The declaration changed after it was shown to the person who approves it.
    #[error(
        "{action:?} of {plugin} changed again since it was shown, and nothing was approved; look once more with `talon plugin \
         show {plugin}`, then approve again"
    )]
    ChangedAgain {
        /// The plugin.
        plugin: PluginName,
        /// The name, bounded.
        action: Sanitized,
    },
    /// The approval cannot be saved, so nothing is approved.
    #[error("what is approved of {plugin} cannot be kept: {cause}; mend that and approve again")]
    NotSaved {
        /// The plugin.
        plugin: PluginName,
        /// The cause.
        cause: Sanitized,
    },
}
