//! Which of the host's directories plugins can see.

use std::path::PathBuf;

use talon_plugin_config::entry::{PluginSandbox, SandboxMode};

use crate::config::Config;

/// The directories that the configuration lets plugins see; `None` if one of them sees everything. A `plugin.yaml` cannot ask for
/// more than `sandbox.fs`.
pub(super) fn visible_files(config: &Config) -> Option<Vec<PathBuf>> {
    let tools = &config.plugins.tools;
    let general = config.sandbox.as_plugin_sandbox();
    let entries = tools.plugins.values().map(|entry| &entry.plugin.settings.sandbox);
    let overrides = tools.overrides.values().map(|over| &over.settings.sandbox);
    let all: Vec<&PluginSandbox> = std::iter::once(&general).chain(entries).chain(overrides).collect();
    if all.iter().any(|sandbox| sandbox.mode == Some(SandboxMode::Off)) {
        return None;
    }
    let lists = all.iter().flat_map(|sandbox| [&sandbox.fs.read, &sandbox.fs.write]).flatten();
    let mut seen: Vec<PathBuf> = lists.flatten().cloned().collect();
    seen.sort();
    seen.dedup();
    Some(seen)
}

#[cfg(test)]
mod tests {
    use talon_plugin_config::spec::SandboxFs;

    use super::*;
    use crate::config::Environment;

    // Promises: SHADOW-12
    #[test]
    fn what_is_granted_is_visible_and_without_a_jail_everything_is() {
        let mut config = Config::built_in(&Environment::of_process().default_paths());
        assert_eq!(visible_files(&config), Some(Vec::new()));
        let paths = |names: &[&str]| Some(names.iter().map(PathBuf::from).collect());
        config.sandbox.fs = SandboxFs { read: paths(&["/srv/code"]), ..SandboxFs::default() };
        let over = serde_json::json!({ "sandbox": { "fs": { "write": ["/home/ada", "/srv/code"] } } });
        config
            .plugins
            .tools
            .overrides
            .insert("files".to_owned(), serde_json::from_value(over).expect("keys"));
        assert_eq!(visible_files(&config), paths(&["/home/ada", "/srv/code"]));
        config.sandbox.mode = SandboxMode::Off;
        assert_eq!(visible_files(&config), None);
    }
}
