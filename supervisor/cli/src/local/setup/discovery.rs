//! What is on this machine already: keys of providers in the environment, and plugins.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A provider with a key, and the model that its entry begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyedProvider {
    /// The environment variable with the key, and the provider's name and kind.
    pub(super) variable: &'static str,
    pub(super) name: &'static str,
    /// Its model, and the entry of that in the catalog.
    pub(super) model: &'static str,
    pub(super) entry: &'static str,
}

/// The entries of docs/models.md; costs are US dollars a million tokens.
const KEYED: [KeyedProvider; 2] = [
    KeyedProvider {
        variable: "ANTHROPIC_API_KEY",
        name: "anthropic",
        model: "claude-haiku-4-5",
        entry: "{ tier: mid, context_window: 200000, tools: true, cost: { input: 1, cached_input: 0.10, output: 5 } }",
    },
    KeyedProvider {
        variable: "OPENAI_API_KEY",
        name: "openai",
        model: "gpt-4o-mini",
        entry: "{ tier: cheap, context_window: 128000, tools: true, cost: { input: 0.15, cached_input: 0.075, output: 0.60 } }",
    },
];
/// Where packages install plugins.
const PACKAGED: [&str; 2] = ["/usr/local/lib/talon/plugins", "/usr/lib/talon/plugins"];
/// Entries of a directory that are counted: more is not a directory of plugins.
const MAX_ENTRIES: usize = 1000;

/// The providers whose keys are set.
pub(super) fn keyed_providers(
    variable: impl Fn(&str) -> Option<OsString>,
) -> impl Iterator<Item = KeyedProvider> {
    KEYED.into_iter().filter(move |provider| variable(provider.variable).is_some_and(|key| !key.is_empty()))
}

/// The variables that [`keyed_providers`] looks at, for messages.
pub(super) fn key_variables() -> String {
    KEYED.map(|provider| provider.variable).join(" or ")
}

/// A directory with plugins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PluginDirectory {
    pub(super) path: PathBuf,
    pub(super) plugins: usize,
}

/// The first directory that has plugins: the user's own, then those of packages.
pub(super) fn plugin_directory(data_home: Option<&Path>) -> Option<PluginDirectory> {
    let own = data_home.map(|dir| dir.join("talon/plugins"));
    let all = own.into_iter().chain(PACKAGED.map(PathBuf::from));
    all.map(|path| PluginDirectory { plugins: count_plugins(&path), path }).find(|dir| dir.plugins > 0)
}

/// Programs, and directories that describe one.
fn count_plugins(dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let is_plugin = |path: PathBuf| match path.metadata() {
        Ok(about) if about.is_dir() => path.join("plugin.yaml").is_file(),
        Ok(about) => about.is_file() && about.permissions().mode() & 0o111 != 0,
        Err(_) => false,
    };
    entries.take(MAX_ENTRIES).filter_map(Result::ok).filter(|entry| is_plugin(entry.path())).count()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn keys_that_are_set_are_found_and_empty_ones_are_not() {
        let set = |name: &str| match name {
            "OPENAI_API_KEY" => Some(OsString::from("k")),
            "ANTHROPIC_API_KEY" => Some(OsString::new()),
            _ => None,
        };
        assert_eq!(keyed_providers(set).map(|provider| provider.name).collect::<Vec<_>>(), ["openai"]);
    }

    #[test]
    fn a_directory_with_a_program_or_a_manifest_has_plugins() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("talon/plugins");
        std::fs::create_dir_all(dir.join("described")).unwrap();
        std::fs::write(dir.join("README"), "").unwrap();
        assert_eq!(count_plugins(&dir), 0);
        std::fs::write(dir.join("described/plugin.yaml"), "").unwrap();
        std::fs::write(dir.join("program"), "").unwrap();
        std::fs::set_permissions(dir.join("program"), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(plugin_directory(Some(home.path())), Some(PluginDirectory { path: dir, plugins: 2 }));
    }
}
