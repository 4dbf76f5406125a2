//! Plans over configurations without files behind them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::config::Environment;

fn config() -> Config {
    let mut config = Config::built_in(&Environment::of_process().default_paths());
    config.plugins.tools.plugin_dir = Some(PathBuf::from("/plugins"));
    config
}

fn spec(name: &str) -> PluginSpec {
    config().spec_defaults().spec(PluginName::new(name).unwrap(), format!("/plugins/{name}"), "/plugins/x")
}

fn refused(name: &str, path: &str) -> RejectedPlugin {
    RejectedPlugin {
        name: name.to_owned(),
        path: PathBuf::from(path),
        reason: "its sha256 differs".to_owned(),
    }
}

/// Each step as `plugin what why`.
fn planned(wanted: &Config, registered: &[PluginSpec], found: ScanResult) -> (Vec<String>, usize) {
    let registered: Vec<_> = registered.iter().cloned().map(Arc::new).collect();
    let plan = plan(&config(), wanted, &registered, found);
    let word = |what: &StepAction| match what {
        StepAction::Add(_) => "add",
        StepAction::Remove => "remove",
        StepAction::Replace(_) => "replace",
        StepAction::Change(Some(_)) => "change",
        StepAction::Change(None) => "guard",
        StepAction::Refuse => "refuse",
    };
    let steps =
        plan.steps.iter().map(|step| format!("{} {} ({})", step.plugin, word(&step.action), step.why));
    (steps.collect(), plan.left)
}

// Promises: RELOAD-3
#[test]
fn only_what_differs_is_touched() {
    let old = [spec("gone"), spec("limits"), spec("same"), spec("process")];
    let mut limits = spec("limits");
    limits.calls.timeout = Some(Duration::from_secs(1));
    let process = PluginSpec { args: vec!["-v".to_owned()], instances: 2, ..spec("process") };
    let found = ScanResult { plugins: vec![spec("same"), limits, process, spec("new")], refused: Vec::new() };
    let (steps, left) = planned(&config(), &old, found);
    assert_eq!(
        steps,
        [
            "gone remove (it is no longer there)",
            "limits change (limits of calls)",
            "new add (/plugins/new)",
            "process replace (args, instances)"
        ]
    );
    assert_eq!(left, 1);
}

#[test]
fn guard_settings_take_no_new_process() {
    let mut wanted = config();
    wanted.guard.concurrency = 7;
    let found = ScanResult { plugins: vec![spec("a")], refused: Vec::new() };
    assert_eq!(planned(&wanted, &[spec("a")], found).0, ["a guard (guard)"]);
}

// Promises: RELOAD-5
#[test]
fn what_is_refused_now_stays_as_it_is() {
    let found =
        ScanResult { plugins: Vec::new(), refused: vec![refused("my_tool.py", "/plugins/my_tool.py")] };
    assert_eq!(planned(&config(), &[spec("my-tool")], found).0, ["my-tool refuse (its sha256 differs)"]);
}

// Promises: UPGRADE-13
#[test]
fn a_plugin_directory_that_vanishes_stops_nothing() {
    let lost = || ScanResult { plugins: Vec::new(), refused: vec![refused("plugins", "/plugins")] };
    let (steps, _) = planned(&config(), &[spec("a")], lost());
    assert_eq!(steps, ["a refuse (plugin_dir cannot be read, so it stays as it is)"]);
    // A different directory is intended.
    let mut wanted = config();
    wanted.plugins.tools.plugin_dir = None;
    assert_eq!(planned(&wanted, &[spec("a")], ScanResult::default()).0, ["a remove (it is no longer there)"]);
}

// Promises: RELOAD-12
#[test]
fn another_plugin_directory_that_is_not_there_stops_nothing() {
    let mut wanted = config();
    wanted.plugins.tools.plugin_dir = Some(PathBuf::from("/plugin"));
    let found = ScanResult { plugins: Vec::new(), refused: vec![refused("plugin", "/plugin")] };
    let (steps, _) = planned(&wanted, &[spec("a")], found);
    assert_eq!(steps, ["a refuse (plugin_dir cannot be read, so it stays as it is)"]);
}

// Promises: RELOAD-14
#[test]
fn a_new_plugin_that_is_refused_is_part_of_the_outcome() {
    let new = refused("new", "/nowhere/new");
    let known = Arc::new(spec("my-tool"));
    let found = ScanResult {
        plugins: Vec::new(),
        refused: vec![
            new.clone(),
            refused("my_tool.py", "/plugins/my_tool.py"),
            refused("plugins", "/plugins"),
        ],
    };
    let plan = plan(&config(), &config(), &[known], found);
    assert_eq!(plan.not_started, [new], "the others are a plugin that runs, and the directory");
}

#[test]
fn of_two_with_one_name_the_one_that_was_named_wins() {
    let named = PluginSpec { source: "plugins.tools.plugins.a".to_owned(), ..spec("a") };
    let found = ScanResult { plugins: vec![named.clone(), spec("a")], refused: Vec::new() };
    assert_eq!(planned(&config(), &[named], found), (Vec::new(), 1));
}
