use talon_proto::host::Instance;

use super::*;

fn asked(mode: Mode, plugins: &[(&str, Mode)]) -> RequestedModes {
    RequestedModes { mode, plugins: plugins.iter().map(|(name, mode)| ((*name).to_owned(), *mode)).collect() }
}

fn plugin(pid: u32, not_enforced: &[&str]) -> Plugin {
    Plugin {
        instances: vec![Instance { pid, ..Instance::default() }],
        not_enforced: not_enforced.iter().map(|text| (*text).to_owned()).collect(),
        ..Plugin::default()
    }
}

#[test]
fn plugins_that_differ_are_counted_and_named() {
    let all = [("a", Mode::Enforce), ("b", Mode::Off), ("c", Mode::BestEffort)];
    let some = asked(Mode::Enforce, &all);
    assert_eq!(some.word(), "enforce, 1 best-effort, 1 off");
    let check = some.check();
    assert_eq!(check.message, "enforce; 3 plugins, 1 best-effort: c, 1 off: b");
    assert_eq!(check.verdict, Verdict::Warn);
    assert_eq!(asked(Mode::Enforce, &all[..1]).check().verdict, Verdict::Ok);
    assert_eq!(asked(Mode::Enforce, &[]).check().message, "enforce; no plugins");
    assert!(asked(Mode::BestEffort, &all).enforce(), "one plugin is enough");
    assert!(!asked(Mode::Off, &all[1..]).enforce());
    assert!(asked(Mode::Off, &[]).check().message.contains("without a jail"));
}

// Promises: CLI-18
#[test]
fn what_a_report_does_not_name_is_in_force() {
    let status = GetStatusResponse {
        plugins: vec![
            plugin(10, &["landlock: the kernel has none", "own-uid: only a stand-in: shared"]),
            plugin(11, &["own-uid: shared", "network-of-another-name: x"]),
            plugin(0, &["landlock: an earlier start's"]),
        ],
        ..GetStatusResponse::default()
    };
    let running = RunningPlugins::from_status(&status);
    let shown = |name| enforced(Some(running.enforcement(name)));
    assert_eq!(shown("landlock"), "1 of 2");
    assert_eq!(shown("own-uid"), "0 of 2, 1 stand-in");
    assert_eq!(shown("network"), "2 of 2", "the word must match whole");
    assert_eq!(enforced(Some(EnforcementCount { plugins: 2, enforced: 0, stand_in: 2 })), "stand-in");
    assert_eq!(enforced(Some(EnforcementCount { plugins: 0, enforced: 0, stand_in: 0 })), "-");
    assert_eq!(enforced(None), "-");
}

// Promises: CLI-53
#[test]
fn without_a_cgroup_it_says_how_to_get_one() {
    let machine = |status, remedy: &str| Machine {
        tier: talon_jail::Tier::Root,
        kernel: "6.18.0".into(),
        limits_ports: true,
        protections: vec![ProtectionSupport {
            name: MEMORY_GROUP,
            status,
            provided_by: "a cgroup of its own: memory, pids".into(),
            remedy: remedy.into(),
        }],
    };
    let status = |not_enforced: &[&str]| GetStatusResponse {
        plugins: vec![plugin(10, not_enforced)],
        ..GetStatusResponse::default()
    };
    let report = |machine, status: Option<&GetStatusResponse>| JailReport {
        machine,
        requested: asked(Mode::Enforce, &[]),
        running: status.map(RunningPlugins::from_status),
    };
    let none =
        || machine(Status::StandIn("2 other processes are in it".into()), "start it by `systemd-run …`");
    let check = report(none(), None).cgroup();
    assert_eq!(check.verdict, Verdict::Warn);
    assert!(check.message.contains("2 other processes") && !check.reason.is_empty(), "{check:?}");
    assert_eq!(check.fix, "start it by `systemd-run …`");
    // The supervisor may have what this shell has not, and the other way around.
    let check = report(none(), Some(&status(&[]))).cgroup();
    assert_eq!((check.verdict, check.fix.as_str()), (Verdict::Ok, ""));
    let stand_in = ["memory-group: only a stand-in: no cgroup"];
    let check = report(machine(Status::Enforced, ""), Some(&status(&stand_in))).cgroup();
    assert_eq!(check.verdict, Verdict::Warn);
    assert!(check.message.starts_with("1 of 1 plugins") && check.fix.contains("Delegate=yes"), "{check:?}");
    assert_eq!(report(machine(Status::Enforced, ""), None).cgroup().verdict, Verdict::Ok);
}
