//! Processes that outlive their supervisor, within one process: the first registry releases them, the second
//! adopts them.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use talon_control::fd_bundle::{Packer, Unpacker};
use talon_plugin::handover::{AdoptionCounts, HandoverDocument, ReceivedHandover};
use talon_plugin::{Events, Plugin, Registry, Settings, StateSockets};
use talon_plugin_config::PluginSpec;
use talon_plugin_config::spec::NetworkAccess;

use super::state::tried;
use super::{FIXTURE, Host, call, call_with, host, host_with, name, settings, spec};

/// The handover of a registry, as the next supervisor receives it.
async fn parcel(registry: &Registry) -> ReceivedHandover {
    let mut packer = Packer::default();
    let handed = registry.hand_over(&mut packer).await.unwrap();
    changed(handed, packer, |_| {})
}

/// The same, with a modified document.
fn changed(
    handed: HandoverDocument,
    packer: Packer,
    change: impl FnOnce(&mut serde_json::Value),
) -> ReceivedHandover {
    let mut document = serde_json::to_value(&handed).unwrap();
    change(&mut document);
    let handed = serde_json::from_value(document).unwrap();
    ReceivedHandover { document: handed, unpacker: Unpacker::new(packer.into_descriptors()) }
}

pub(super) fn successor(settings: Settings, inherited: ReceivedHandover) -> Registry {
    let stage = talon_jail::Stage::from_image(std::fs::File::open(FIXTURE).unwrap()).unwrap();
    Registry::with_inherited(settings, Arc::new(stage), Events::new(), inherited).unwrap()
}

impl Host {
    /// The next supervisor on the same directories.
    pub(super) async fn handed_on(self, range: u32) -> Self {
        let inherited = parcel(&self.registry).await;
        self.released(range, inherited).await
    }

    async fn released(self, range: u32, inherited: ReceivedHandover) -> Self {
        self.registry.release().await;
        let Self { dir, registry } = self;
        drop(registry);
        let registry = successor(settings(dir.path(), range), inherited);
        Self { dir, registry }
    }
}

pub(super) fn pid(plugin: &Plugin) -> u32 {
    plugin.snapshot().instances[0].pid.unwrap()
}

fn adopted(handed: usize, taken_over: usize, refused: usize, waiting: usize) -> AdoptionCounts {
    AdoptionCounts { received: handed, taken_over, refused, waiting }
}

/// Waits until a process has ended.
pub(super) async fn ended(pid: u32) {
    let Ok(pidfd) = pidfd_open(Pid::from_raw(pid.cast_signed()).unwrap(), PidfdFlags::empty()) else {
        return;
    };
    #[expect(deprecated, reason = "its successor is unsafe; this one is owned exclusively")]
    let pidfd = tokio::io::unix::AsyncFd::new(pidfd).unwrap();
    tokio::time::timeout(Duration::from_secs(60), pidfd.readable()).await.unwrap().unwrap().retain_ready();
}

fn logged(plugin: &Plugin, text: &str) -> bool {
    plugin.logs().recent.iter().any(|line| line.text.contains(text))
}

/// The process keeps running under the next supervisor.
async fn runs_on(host: Host, spec: PluginSpec, range: u32) -> (Host, Plugin) {
    let plugin = host.up(spec.clone()).await;
    assert_eq!(call(&plugin, "count").await, "call 1 after 1 Init");
    let before = plugin.snapshot();
    assert!(!before.instances[0].taken_over);
    let next = host.handed_on(range).await;
    assert_eq!(next.registry.adoption_counts(), adopted(1, 0, 0, 1));
    let plugin = next.up(spec).await;
    let after = plugin.snapshot();
    assert_eq!(next.registry.adoption_counts(), adopted(1, 1, 0, 0), "{:#?}", plugin.logs().recent);
    assert!(after.instances[0].taken_over);
    assert_eq!(after.instances[0].pid, before.instances[0].pid);
    assert_eq!(after.starts, 1, "it was started once");
    assert_eq!((after.digest, after.dialect), (before.digest, before.dialect));
    assert_eq!(after.not_enforced, before.not_enforced);
    let ms = |at: Option<std::time::SystemTime>| {
        at.unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()
    };
    assert_eq!(ms(after.instances[0].ready_since), ms(before.instances[0].ready_since));
    assert_eq!(call(&plugin, "count").await, "call 2 after 1 Init");
    (next, plugin)
}

// Promises: HANDOVER-1
#[tokio::test]
async fn a_process_runs_on_under_the_next_supervisor_and_the_one_after() {
    let (next, plugin) = runs_on(host(60), spec("serve"), 60).await;
    let pid = pid(&plugin);
    let third = next.handed_on(60).await;
    let plugin = third.up(spec("serve")).await;
    assert_eq!(self::pid(&plugin), pid);
    assert_eq!(call(&plugin, "count").await, "call 3 after 1 Init");
    assert!(!third.registry.adopted_monitors().is_empty());
    third.done().await;
    ended(pid).await;
}

// Promises: HANDOVER-1
#[tokio::test]
async fn every_way_to_shake_hands_goes_on() {
    for (what, range) in [("handed", 61), ("opentalon", 62), ("grandchild", 63)] {
        let (next, plugin) = runs_on(host(range), spec(what), range).await;
        let pid = pid(&plugin);
        // It is watched, and stops, as one that was started here.
        plugin.stop().await.unwrap();
        ended(pid).await;
        next.done().await;
    }
}

// Promises: HANDOVER-2
#[tokio::test]
async fn a_supervisor_that_has_handed_over_goes_on_if_nothing_comes_of_it() {
    let host = host(64);
    let plugin = host.up(spec("serve")).await;
    let pid = pid(&plugin);
    drop(parcel(&host.registry).await);
    drop(parcel(&host.registry).await);
    assert_eq!(call(&plugin, "count").await, "call 1 after 1 Init");
    assert_eq!(self::pid(&plugin), pid);
    host.done().await;
    ended(pid).await;
}

// Promises: HANDOVER-3
#[tokio::test]
async fn without_a_successor_everything_dies_by_its_lifeline() {
    let host = host(65);
    let plugin = host.up(spec("grandchild")).await;
    let pid = pid(&plugin);
    let inherited = parcel(&host.registry).await;
    host.registry.release().await;
    let Host { dir, registry } = host;
    drop((registry, plugin));
    assert!(std::fs::read_dir(dir.path().join("run/p")).unwrap().next().is_some());
    drop(inherited);
    ended(pid).await;
    // The next supervisor finds the directories and clears them.
    let registry = super::registry(settings(dir.path(), 65)).unwrap();
    Host { dir, registry }.done().await;
}

// Promises: HANDOVER-3
#[tokio::test]
async fn dropping_the_successor_kills() {
    let host = host(66);
    let plugin = host.up(spec("serve")).await;
    let pid = pid(&plugin);
    drop(plugin);
    let Host { dir, registry } = host.handed_on(66).await;
    // Before anybody asked for it.
    drop(registry);
    ended(pid).await;
    drop(dir);
}

// Promises: HANDOVER-6
#[tokio::test]
async fn a_process_that_died_meanwhile_is_started_cold() {
    let host = host(67);
    let plugin = host.up(spec("serve")).await;
    let pid = pid(&plugin);
    let inherited = parcel(&host.registry).await;
    host.registry.release().await;
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    ended(pid).await;
    drop(plugin);
    let next = host.released(67, inherited).await;
    let plugin = next.up(spec("serve")).await;
    assert_ne!(self::pid(&plugin), pid);
    assert_eq!(call(&plugin, "count").await, "call 1 after 1 Init");
    assert_eq!(next.registry.adoption_counts(), adopted(1, 0, 1, 0));
    assert!(!plugin.snapshot().instances[0].taken_over);
    next.done().await;
}

// Promises: HANDOVER-6
#[tokio::test]
async fn one_that_dies_on_the_shelf_is_started_cold() {
    let host = host(68);
    let plugin = host.up(spec("serve")).await;
    let pid = pid(&plugin);
    drop(plugin);
    let next = host.handed_on(68).await;
    assert_eq!(next.registry.adoption_counts(), adopted(1, 0, 0, 1));
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    ended(pid).await;
    let plugin = next.up(spec("serve")).await;
    assert_ne!(self::pid(&plugin), pid);
    assert_eq!(next.registry.adoption_counts(), adopted(1, 0, 1, 0));
    assert!(logged(&plugin, "is not taken over"), "{:#?}", plugin.logs().recent);
    next.done().await;
}

// Promises: HANDOVER-5
#[tokio::test]
async fn another_file_or_other_settings_start_it_cold() {
    let own = |host: &Host| {
        let program = host.dir.path().join("plugin");
        std::fs::copy(FIXTURE, &program).unwrap();
        PluginSpec { program, ..spec("serve") }
    };
    for (range, why) in [(69, "what lies on the disk"), (70, "its settings have changed")] {
        let host = host(range);
        let spec = own(&host);
        let pid = pid(&host.up(spec.clone()).await);
        let inherited = parcel(&host.registry).await;
        let mut wanted = spec.clone();
        if range == 69 {
            let mut program = std::fs::read(&spec.program).unwrap();
            program.push(0);
            // Another file at the same path, as a package has it.
            std::fs::write(spec.program.with_extension("new"), program).unwrap();
            std::fs::set_permissions(
                spec.program.with_extension("new"),
                std::fs::metadata(&spec.program).unwrap().permissions(),
            )
            .unwrap();
            std::fs::rename(spec.program.with_extension("new"), &spec.program).unwrap();
        } else {
            wanted.env.insert("A".to_owned(), "b".to_owned());
        }
        let next = host.released(range, inherited).await;
        let plugin = next.up(wanted).await;
        assert!(logged(&plugin, why), "{:#?}", plugin.logs().recent);
        assert_ne!(self::pid(&plugin), pid);
        ended(pid).await;
        assert_eq!(call(&plugin, "count").await, "call 1 after 1 Init");
        assert_eq!(next.private_dirs().len(), 1, "nothing of the other one is left");
        next.done().await;
    }
}

// Promises: HANDOVER-4
#[tokio::test]
async fn whoever_is_not_who_the_document_says_is_killed() {
    let changes: [fn(&mut serde_json::Value); 4] = [
        |process| process["program"]["started"] = 1.into(),
        |process| process["monitor"]["who"]["started"] = 1.into(),
        |process| process["stdout"] = 1_000_000.into(),
        |process| process["dir"]["name"] = "../..".into(),
    ];
    for (index, change) in (71..).zip(changes) {
        let host = host(index);
        let pid = pid(&host.up(spec("serve")).await);
        let mut packer = Packer::default();
        let handed = host.registry.hand_over(&mut packer).await.unwrap();
        let inherited = changed(handed, packer, |document| change(&mut document["processes"][0]));
        let next = host.released(index, inherited).await;
        assert_eq!(next.registry.adoption_counts(), adopted(1, 0, 1, 0));
        ended(pid).await;
        let plugin = next.up(spec("serve")).await;
        assert_eq!(call(&plugin, "count").await, "call 1 after 1 Init");
        next.done().await;
    }
}

// Promises: HANDOVER-7
#[tokio::test]
async fn what_nobody_asks_for_is_ended() {
    let host = host(75);
    let kept = pid(&host.up(spec("serve")).await);
    let gone = pid(&host.up(PluginSpec { name: name("removed"), ..spec("serve") }).await);
    let next = host.handed_on(75).await;
    let plugin = next.up(spec("serve")).await;
    assert_eq!(next.registry.adoption_counts(), adopted(2, 1, 0, 1));
    assert_eq!(next.registry.discard_unclaimed(), 1);
    ended(gone).await;
    assert_eq!(pid(&plugin), kept);
    assert_eq!(call(&plugin, "count").await, "call 1 after 1 Init");
    assert_eq!(next.registry.discard_unclaimed(), 0);
    next.done().await;
}

// Promises: HANDOVER-1, HANDOVER-7
#[tokio::test]
async fn each_instance_goes_on_as_itself() {
    let host = host(76);
    let three = || PluginSpec { instances: 3, ..spec("serve") };
    let plugin = host.up(three()).await;
    plugin.settled().await;
    let pids = |plugin: &Plugin| -> Vec<_> {
        plugin.snapshot().instances.iter().map(|instance| instance.pid).collect()
    };
    let before = pids(&plugin);
    // One instance fewer is configured.
    let next = host.handed_on(76).await;
    let plugin = next.up(PluginSpec { instances: 2, ..three() }).await;
    plugin.settled().await;
    assert_eq!(pids(&plugin), before[..2]);
    assert_eq!(next.registry.discard_unclaimed(), 1);
    ended(before[2].unwrap()).await;
    next.done().await;
}

// Promises: HANDOVER-9
#[tokio::test]
async fn a_line_that_has_no_end_yet_is_logged_by_both() {
    let host = host(77);
    let plugin = host.up(spec("serve")).await;
    call_with(&plugin, "say", &[("text", "whole\nhalf a ")]).await;
    let lines = plugin.clone();
    let next = host.handed_on(77).await;
    assert!(logged(&lines, "whole") && logged(&lines, "half a"), "{:#?}", lines.logs().recent);
    let plugin = next.up(spec("serve")).await;
    call_with(&plugin, "say", &[("text", "line\n")]).await;
    let mut live = plugin.logs();
    while !logged(&plugin, "line") {
        let _ = live.live.recv().await.unwrap();
    }
    next.done().await;
}

// Promises: HANDOVER-8
#[tokio::test]
async fn its_way_out_and_its_key_values_go_on() {
    let greeter = || Some(Arc::new(super::state::Greeter::default()) as Arc<dyn StateSockets>);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap().to_string();
    let mut spec = spec("serve");
    spec.sandbox.network = NetworkAccess::Proxy;
    spec.sandbox.allow = vec![here.clone(), "no-such-host.invalid:443".to_owned()];
    let host = host_with(80, greeter());
    let plugin = host.up(spec.clone()).await;
    let pid = pid(&plugin);
    let inherited = parcel(&host.registry).await;
    host.registry.release().await;
    let Host { dir, registry } = host;
    drop((registry, plugin));
    let registry = successor(Settings { state: greeter(), ..settings(dir.path(), 80) }, inherited);
    let host = Host { dir, registry };
    let plugin = host.up(spec.clone()).await;
    assert_eq!(self::pid(&plugin), pid, "{:#?}", plugin.logs().recent);
    assert_eq!(tried(&plugin, "state", "").await, "fine you are serve");
    let answer = tried(&plugin, "proxy", &here).await;
    assert!(answer.starts_with("fine HTTP/1.1 200"), "{answer}");
    // Inside its network, too.
    let answer = tried(&plugin, "http-proxy", &here).await;
    assert!(answer.starts_with("fine HTTP/1.1 200"), "{answer}");
    assert_eq!(tried(&plugin, "tcp-read", "no-such-host.invalid:443").await, "fine ");
    assert!(logged(&plugin, "no-such-host.invalid:443"), "{:#?}", plugin.logs().recent);
    // Without a server for its key-values, its environment would be wrong.
    let next = host.handed_on(80).await;
    let plugin = next.up(spec).await;
    assert!(logged(&plugin, "its key-value socket"), "{:#?}", plugin.logs().recent);
    assert_ne!(self::pid(&plugin), pid);
    next.done().await;
}

// Promises: HANDOVER-5, HANDOVER-8
#[tokio::test]
async fn what_a_script_runs_from_goes_on_with_it() {
    let host = host(78);
    let script = host.dir.path().join("script");
    std::fs::write(&script, format!("#!/bin/sh\nexec {FIXTURE} serve\n")).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut spec = PluginSpec { program: script.clone(), args: Vec::new(), ..spec("serve") };
    spec.sandbox.fs.execute = Some(vec![std::path::Path::new(FIXTURE).parent().unwrap().to_owned()]);
    let views = |host: &Host| {
        let all = std::fs::read_dir(host.dir.path().join("data/views")).unwrap();
        let dirs = all.flat_map(|all| std::fs::read_dir(all.unwrap().path()).unwrap());
        dirs.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    };
    assert_eq!(views(&host), 0);
    let (next, plugin) = runs_on(host, spec.clone(), 78).await;
    assert_eq!(views(&next), 1);
    let pid = pid(&plugin);
    // A script that was changed meanwhile is another program.
    let inherited = parcel(&next.registry).await;
    std::fs::write(&script, format!("#!/bin/sh\n# new\nexec {FIXTURE} serve\n")).unwrap();
    let third = next.released(78, inherited).await;
    let plugin = third.up(spec).await;
    assert_ne!(self::pid(&plugin), pid);
    assert_eq!(views(&third), 1);
    third.done().await;
}

#[tokio::test]
async fn nothing_can_be_registered_with_one_that_was_released() {
    let host = host(79);
    host.up(spec("serve")).await;
    let inherited = parcel(&host.registry).await;
    host.registry.release().await;
    assert!(host.registry.register(PluginSpec { name: name("late"), ..spec("serve") }).is_err());
    assert!(host.registry.hand_over(&mut Packer::default()).await.is_err());
    drop(inherited);
}
