//! Which program is started if the replacement of a plugin has failed and the running one then dies.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use talon_plugin::{DownPolicy, Plugin, ReplaceError, State};
use talon_plugin_config::PluginSpec;

use super::handover::{ended, pid};
use super::{FIXTURE, Host, call, host, name, sha256, spec};

/// A release that does not work.
const BROKEN: &str = "#!/bin/sh\necho no such library >&2\nexit 3\n";

const FROM_LAST_READY: &str =
    "started again from the program that was last ready; what lies on the disk failed:";

/// Installs like a careful package manager: writes a new file and renames it.
fn install(path: &Path, content: &[u8]) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, content).unwrap();
    std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(beside, path).unwrap();
}

/// The fixture with ignored bytes appended, as another release.
fn release(number: u8) -> Vec<u8> {
    let mut program = std::fs::read(FIXTURE).unwrap();
    program.push(number);
    program
}

/// A plugin that is restarted after each death, and its file.
fn installed(host: &Host, what: &str) -> (PluginSpec, PathBuf) {
    let plugins = host.dir.path().join("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    let path = plugins.join(what);
    let mut spec = PluginSpec { name: name(what), program: path.clone(), ..spec("serve") };
    spec.lifecycle.restart_on_failure = true;
    spec.lifecycle.backoff_initial = Duration::from_millis(1);
    (spec, path)
}

async fn not_replaced(host: &Host, spec: &PluginSpec) {
    let error = host.registry.replace(spec.clone(), DownPolicy::Start).await.unwrap_err();
    assert!(matches!(error, ReplaceError::NewNotReady { .. }), "{error}");
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

/// Kills it, and waits until another process is ready for it.
async fn comes_back(plugin: &Plugin) {
    let killed = pid(plugin);
    let mut lines = plugin.logs();
    kill(killed);
    loop {
        let snapshot = plugin.snapshot();
        if snapshot.state == State::Ready && snapshot.instances[0].pid != Some(killed) {
            break;
        }
        assert!(!matches!(snapshot.state, State::Failed | State::Refused), "{:#?}", plugin.logs().recent);
        let _ = lines.live.recv().await.unwrap();
        plugin.settled().await;
    }
    assert_eq!(call(plugin, "count").await, "call 1 after 1 Init");
}

fn logged(plugin: &Plugin, text: &str) -> usize {
    plugin.logs().recent.iter().filter(|line| line.text.contains(text)).count()
}

// Promises: UPGRADE-14
#[tokio::test]
async fn a_native_program_outlives_its_file() {
    let host = host(85);
    let (mut spec, path) = installed(&host, "native");
    let first = release(1);
    install(&path, &first);
    spec.sha256 = Some(sha256(&first));
    let plugin = host.up(spec.clone()).await;
    let without = PluginSpec { sha256: None, ..spec };
    install(&path, BROKEN.as_bytes());
    not_replaced(&host, &without).await;
    // As often as it has to be.
    for times in 1..=2 {
        comes_back(&plugin).await;
        assert_eq!(plugin.snapshot().digest, Some(sha256(&first)));
        assert_eq!(logged(&plugin, FROM_LAST_READY), times, "{:#?}", plugin.logs().recent);
        assert_eq!(logged(&plugin, "disk failed: ended with exit code 3"), times);
    }
    // Without a file it is the same.
    std::fs::remove_file(&path).unwrap();
    comes_back(&plugin).await;
    assert_eq!(plugin.snapshot().digest, Some(sha256(&first)));
    let second = release(2);
    install(&path, &second);
    host.registry.replace(without, DownPolicy::Start).await.unwrap();
    assert_eq!(plugin.snapshot().digest, Some(sha256(&second)));
    // Nothing failed since: what lies on the disk counts again.
    let third = release(3);
    install(&path, &third);
    comes_back(&host.registry.get("native").unwrap()).await;
    assert_eq!(plugin.snapshot().digest, Some(sha256(&third)));
    assert_eq!(logged(&plugin, FROM_LAST_READY), 3);
    host.done().await;
}

// Promises: UPGRADE-15
#[tokio::test]
async fn a_program_that_was_deleted_is_started_again_from_what_was_last_ready() {
    let host = host(96);
    let (spec, path) = installed(&host, "deleted");
    let first = release(1);
    install(&path, &first);
    let plugin = host.up(spec.clone()).await;
    std::fs::remove_file(&path).unwrap();
    for times in 1..=2 {
        comes_back(&plugin).await;
        assert_eq!(plugin.snapshot().digest, Some(sha256(&first)));
        assert_eq!(logged(&plugin, "was last ready, because"), times, "{:#?}", plugin.logs().recent);
    }
    let notes = plugin.snapshot().notes;
    let note = format!("because {} is gone: put it back", path.display());
    assert!(notes.iter().any(|text| text.contains(&note)), "{notes:?}");
    // An operator's restart asks for what is on the disk.
    let refused = plugin.restart().await.unwrap_err().to_string();
    assert!(refused.contains("cannot open"), "{refused}");
    // Once there is a program again, that is started, and the note is gone.
    let second = release(2);
    install(&path, &second);
    plugin.start().await.unwrap();
    assert_eq!(plugin.snapshot().digest, Some(sha256(&second)));
    assert_eq!(plugin.snapshot().notes, Vec::<talon_sanitize::Sanitized>::new());
    host.done().await;
}

// Promises: UPGRADE-14
#[tokio::test]
async fn scripts_and_directories_outlive_their_files() {
    let host = host(86);
    let directory = host.dir.path().join("plugins/in_dir");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::copy(FIXTURE, directory.join("fixture")).unwrap();
    let (mut script, script_path) = installed(&host, "script");
    // It runs what lies elsewhere, which it has to be granted.
    script.sandbox.fs.execute = Some(vec![directory.clone()]);
    let (whole, _) = installed(&host, "whole");
    let whole_path = directory.join("run");
    let whole = PluginSpec { program: whole_path.clone(), directory: Some(directory.clone()), ..whole };
    let runs = format!("#!/bin/sh\nexec {} serve\n", directory.join("fixture").display());
    for (spec, path, good) in [
        (script, script_path, runs.as_str()),
        (whole, whole_path, "#!/bin/sh\nexec \"$(dirname \"$0\")\"/fixture serve\n"),
    ] {
        install(&path, good.as_bytes());
        let plugin = host.up(spec.clone()).await;
        let digest = plugin.snapshot().digest;
        install(&path, BROKEN.as_bytes());
        not_replaced(&host, &spec).await;
        comes_back(&plugin).await;
        assert_eq!(plugin.snapshot().digest, digest);
        assert_eq!(logged(&plugin, FROM_LAST_READY), 1, "{:#?}", plugin.logs().recent);
        install(&path, format!("{good}# better\n").as_bytes());
        host.registry.replace(spec, DownPolicy::Start).await.unwrap();
        assert_ne!(plugin.snapshot().digest, digest);
        assert_eq!(call(&plugin, "count").await, "call 1 after 1 Init");
    }
    // Copies that cannot be needed any more are removed: the newest copy of each plugin stays.
    for name in ["script", "whole"] {
        host.registry.deregister(&super::name(name)).await;
    }
    let views = std::fs::read_dir(host.dir.path().join("data/views")).unwrap();
    let copies = views.flat_map(|own| std::fs::read_dir(own.unwrap().path()).unwrap());
    assert_eq!(copies.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count(), 2);
    host.done().await;
}

// Promises: UPGRADE-14
#[tokio::test]
async fn an_operator_s_restart_looks_at_the_disk() {
    let host = host(87);
    let (spec, path) = installed(&host, "asked");
    let first = release(1);
    install(&path, &first);
    let plugin = host.up(spec.clone()).await;
    install(&path, BROKEN.as_bytes());
    not_replaced(&host, &spec).await;
    let mut lines = plugin.logs();
    let error = plugin.restart().await.unwrap_err().to_string();
    assert!(error.contains("exit code 3"), "{error}");
    // The replacement failed; what follows is a normal restart.
    while plugin.snapshot().state != State::Ready {
        let _ = lines.live.recv().await.unwrap();
        plugin.settled().await;
    }
    assert_eq!(plugin.snapshot().digest, Some(sha256(&first)));
    let second = release(2);
    install(&path, &second);
    plugin.restart().await.unwrap();
    assert_eq!(plugin.snapshot().digest, Some(sha256(&second)));
    // From here on that is what came up last.
    install(&path, BROKEN.as_bytes());
    comes_back(&plugin).await;
    assert_eq!(plugin.snapshot().digest, Some(sha256(&second)));
    host.done().await;
}

// Promises: UPGRADE-14
#[tokio::test]
async fn a_file_that_was_written_over_is_told_and_not_started() {
    let host = host(88);
    let (mut spec, path) = installed(&host, "over");
    spec.lifecycle.max_restarts = 1;
    install(&path, &release(1));
    let plugin = host.up(spec.clone()).await;
    not_replaced(&host, &PluginSpec { args: vec!["die".to_owned()], ..spec }).await;
    // The same inode: what is kept is written over with it.
    host.registry.pause();
    let killed = pid(&plugin);
    kill(killed);
    ended(killed).await;
    std::fs::write(&path, BROKEN).unwrap();
    host.registry.resume();
    let mut lines = plugin.logs();
    while plugin.snapshot().state != State::Failed {
        let _ = lines.live.recv().await.unwrap();
        plugin.settled().await;
    }
    for text in ["was last ready cannot be started again", "written over in place", "ended with exit code 3"]
    {
        assert!(logged(&plugin, text) > 0, "{text}: {:#?}", plugin.logs().recent);
    }
    host.done().await;
}

// Promises: UPGRADE-14
#[tokio::test]
async fn what_was_taken_over_is_kept_too() {
    let host = host(89);
    let (spec, path) = installed(&host, "taken");
    let first = release(1);
    install(&path, &first);
    host.up(spec.clone()).await;
    let next = host.handed_on(89).await;
    let plugin = next.up(spec.clone()).await;
    assert!(plugin.snapshot().instances[0].taken_over);
    install(&path, BROKEN.as_bytes());
    not_replaced(&next, &spec).await;
    comes_back(&plugin).await;
    assert_eq!(plugin.snapshot().digest, Some(sha256(&first)));
    next.done().await;
}
