//! Plugins started by Talon's own plugin manager.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use talon_plugin::{Events, OperateError, Plugin, Registry};
use talon_supervisor::config::{LoadOptions, load};
use talon_tests::{Scratch, is_root, program};
use tokio::task::JoinSet;

/// How long plugins may take to end; they have nothing to finish.
const GRACE: Duration = Duration::from_secs(2);

/// Uids that are unused on this machine, for the plugins when run as root.
const FIRST_UID: usize = 92_000;

/// The jail that they run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JailKind {
    /// That of a profile.
    Jailed(&'static str),
    /// None.
    Plain,
}

impl JailKind {
    pub(super) const ALL: [Self; 4] =
        [Self::Plain, Self::Jailed("strict"), Self::Jailed("ports"), Self::Jailed("wide")];

    /// Its name in the table.
    pub(super) fn name(self) -> String {
        match self {
            Self::Jailed(profile) => format!("{profile} jail"),
            Self::Plain => "plain (no sandbox)".to_owned(),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Jailed(profile) => profile,
            Self::Plain => "plain",
        }
    }

    fn sandbox(self) -> String {
        match self {
            Self::Jailed(profile) => format!("{{ profile: {profile} }}"),
            Self::Plain => "{ mode: off }".to_owned(),
        }
    }
}

/// Plugins that are registered but not running.
pub(super) struct TalonPlugins {
    registry: Registry,
    plugins: Vec<(JailKind, Plugin)>,
}

impl TalonPlugins {
    /// This many of each kind.
    pub(super) fn new(scratch: &Scratch, kinds: &[JailKind], each: usize) -> Result<Self> {
        let plugin = program("talon-bench-plugin");
        let file = scratch.write("talon.yaml", &config(scratch.path(), &plugin, kinds, each));
        let loaded = load(&LoadOptions { file: Some(file), ..LoadOptions::of_process() })?;
        let stage = Arc::new(talon_jail::Stage::from_current_exe()?.with_standby());
        let registry = Registry::new(loaded.config.talon_plugin_settings(), stage, Events::new())?;
        let (specs, _) = loaded.config.configured_plugins();
        let mut plugins = Vec::with_capacity(specs.len());
        for spec in specs {
            let of = |kind: &&JailKind| spec.name.as_str().starts_with(kind.word());
            let kind = *kinds.iter().find(of).context("each plugin is of a kind")?;
            plugins.push((kind, registry.register(spec)?));
        }
        Ok(Self { registry, plugins })
    }

    /// The time until all plugins of a kind, started at once, are ready. They are stopped afterwards.
    pub(super) async fn start(&self, kind: JailKind) -> Result<Duration> {
        let of_kind =
            self.plugins.iter().filter(|(other, _)| *other == kind).map(|(_, plugin)| plugin.clone());
        let plugins: Vec<Plugin> = of_kind.collect();
        let begin = Instant::now();
        at_once(&plugins, |plugin| async move { plugin.start().await }).await?;
        let took = begin.elapsed();
        at_once(&plugins, |plugin| async move { plugin.stop().await }).await?;
        Ok(took)
    }

    pub(super) async fn end(self) {
        self.registry.shutdown(GRACE).await;
    }
}

async fn at_once<F>(plugins: &[Plugin], what: impl Fn(Plugin) -> F) -> Result<()>
where
    F: Future<Output = Result<(), OperateError>> + Send + 'static,
{
    let mut under_way: JoinSet<_> = plugins.iter().cloned().map(what).collect();
    while let Some(done) = under_way.join_next().await {
        done.context("a task panicked")??;
    }
    Ok(())
}

/// The configuration of this many plugins of each kind, none of which is started automatically.
fn config(scratch: &Path, plugin: &Path, kinds: &[JailKind], each: usize) -> String {
    let scratch = scratch.display();
    let mut config =
        format!("runtime_dir: {scratch}/run\nstate:\n  engine: off\n  data_dir: {scratch}/data\n");
    if is_root() {
        let last = FIRST_UID + kinds.len() * each;
        let _ = writeln!(config, "sandbox:\n  uid_range: {FIRST_UID}-{last}");
    }
    config.push_str("plugins:\n  tools:\n    plugins:\n");
    for kind in kinds {
        for number in 0..each {
            let _ = writeln!(config, "      {}-{number}:", kind.word());
            let _ = writeln!(config, "        command: {plugin:?}");
            let _ = writeln!(config, "        enabled: false");
            let _ = writeln!(config, "        sandbox: {}", kind.sandbox());
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_plugins_and_its_jail_and_none_runs_by_itself() {
        let scratch = Scratch::new();
        let text = config(scratch.path(), Path::new("/bin/true"), &JailKind::ALL, 2);
        let file = scratch.write("talon.yaml", &text);
        let loaded =
            load(&LoadOptions { file: Some(file), ..LoadOptions::of_process() }).expect("it is valid");
        let (specs, _) = loaded.config.configured_plugins();
        assert!(specs.iter().all(|spec| !spec.enabled));
        let jail = |name: &str| {
            let spec = specs.iter().find(|spec| spec.name.as_str() == name)?;
            let sandbox = &spec.sandbox;
            Some((sandbox.mode != talon_jail::Mode::Off).then(|| sandbox.profile.clone()))
        };
        assert_eq!(jail("plain-1"), Some(None));
        for profile in ["strict", "ports", "wide"] {
            assert_eq!(jail(&format!("{profile}-1")), Some(Some(profile.to_owned())));
        }
        assert_eq!(specs.len(), 8);
    }
}
