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
