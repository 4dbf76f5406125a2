//! Watches files: plugins with `watch`, the plugin directory with `plugins.tools.watch`, the config file with
//! `reload.watch`.
//!
//! The kernel only reports *where* something changed (`watcher`); a scan finds out what changed (`scan`). A
//! change is applied once two scans in a row found the same (`debounce`), so that a file is not read while it
//! is being written. A change that failed is not retried until the file changes again.
//!
//! | change | action |
//! |---|---|
//! | a watched plugin's file, directory or manifest changes | it is replaced: the new process starts beside the old one |
//! | it vanishes, or is refused now | the running process stays, and this is reported once |
//! | a new one appears in `plugin_dir` | it is registered |
//! | one disappears from `plugin_dir` | it is deregistered: its calls finish, and it stops |
//! | `plugin_dir` itself vanishes | its plugins stay, and this is reported once; it is scanned again when it is back |
//! | the config file changes | the configuration is reloaded |
//! | `plugins.lua.scripts_dir` has other names in it | the configuration is reloaded |
//! | it cannot be read, or is not there | nothing: its scripts stay until `talon reload` |
//! | `plugins.lua.scripts_dir` is another directory | the plugin `lua` is replaced |
//! | events were lost | everything is scanned |

mod apply;
mod debounce;
mod scan;
mod subject;
mod watch;
mod watcher;

pub(super) use watch::follow;
