//! Limits of the kernel and of the configuration, missing programs, and odd clocks.

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::harness::{CONFLICT, Watcher};

/// Starts a program in a user namespace whose watches are limited; `$0` of the script is their number.
const LIMITED: [&str; 4] = ["unshare", "-Ur", "sh", "-c"];

fn said(watcher: &mut Watcher, part: &str) -> usize {
    watcher.said_so_far().iter().filter(|line| line.contains(part)).count()
}

// Promises: SHADOW-44
#[test]
fn the_kernels_limit_is_said_once_with_its_sysctl_and_the_rest_is_watched() {
    let script = "echo \"$0\" > /proc/sys/user/max_inotify_watches && exec \"$@\"";
    let probe = Command::new(LIMITED[0]).args(&LIMITED[1..]).args([script, "20", "true"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no user namespaces");
    }
    let starter: Vec<&str> = LIMITED.into_iter().chain([script, "20"]).collect();
    let mut watcher = Watcher::started_by(&starter, "", |work| {
        (0..60).for_each(|n| fs::create_dir(work.join(format!("d{n:02}"))).unwrap());
    });
    assert!(watcher.wait_said("sysctl fs.inotify.max_user_watches").contains("start the watcher again"));
    fs::write(watcher.work.join("a.rs"), CONFLICT).unwrap();
    assert_eq!(watcher.trigger("conflict_markers")["subject"], "a.rs");
    fs::create_dir(watcher.work.join("more")).unwrap();
    assert_eq!(watcher.findings_until_now(), Vec::<Value>::new());
    assert_eq!(said(&mut watcher, "fs.inotify.max_user_watches"), 1);
}

/// As many files as TALON_TEST_FILES says, in a tree of which only the first part is remembered.
// Promises: SHADOW-45
#[test]
fn a_tree_beyond_the_limit_is_watched_in_part_within_bounds() {
    let files: usize = std::env::var("TALON_TEST_FILES").map_or(20_000, |files| files.parse().unwrap());
    let most = files / 5;
    let config = format!("  watchers: {{ filesystem: {{ paths: [WORK], max_files: {most} }} }}\n");
    let mut watcher = Watcher::prepared(&config, |work| {
        for d in 0..files / 200 {
            let dir = work.join(format!("d{d:05}"));
            fs::create_dir(&dir).unwrap();
            (0..200).for_each(|n| drop(File::create(dir.join(n.to_string())).unwrap()));
        }
        fs::write(work.join("a.rs"), "").unwrap();
    });
    watcher.wait_said(&format!("more than {most} files"));
    // What is watched in the first place goes on being so.
    assert_eq!(watcher.findings_until_now(), Vec::<Value>::new());
    fs::write(watcher.work.join("a.rs"), CONFLICT).unwrap();
    assert_eq!(watcher.trigger("conflict_markers")["subject"], "a.rs");
    assert_eq!(said(&mut watcher, "max_files"), 1);
    let resident = watcher.status("VmRSS:");
    assert!(resident < 30 * 1024 + most as u64 / 5, "{resident} KiB");
}

// Promises: SHADOW-46
#[test]
fn without_git_that_is_said_once_and_files_are_watched() {
    let git = |watcher: &Watcher, arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(&watcher.work).args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@example.invalid",
        ]);
        command.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        assert!(command.status().unwrap().success(), "{arguments:?}");
    };
    let mut watcher = Watcher::started_by(&["env", "PATH=/nonexistent"], "", |work| {
        assert!(Command::new("git").args(["init", "-q"]).arg(work).status().unwrap().success());
    });
    for name in ["a.rs", "b.rs"] {
        fs::write(watcher.work.join(name), "// TODO: mend\n").unwrap();
        git(&watcher, &["add", name]);
        git(&watcher, &["commit", "-q", "-m", name]);
        watcher.wait_said("git");
    }
    fs::write(watcher.work.join("c.rs"), CONFLICT).unwrap();
    assert_eq!(watcher.trigger("conflict_markers")["subject"], "c.rs");
    let missing =
        watcher.said_so_far().iter().filter(|line| line.contains("git") && line.contains("install"));
    assert_eq!(missing.count(), 1, "{:?}", watcher.heard);
}

/// Times of files are compared, and never reckoned with.
// Promises: SHADOW-47
#[test]
fn a_clock_that_jumps_hides_no_change() {
    let watcher = Watcher::prepared("", |work| fs::write(work.join("a.rs"), "").unwrap());
    let century = Duration::from_secs(100 * 365 * 86_400);
    let times = [SystemTime::UNIX_EPOCH, SystemTime::now() + century, SystemTime::UNIX_EPOCH + century / 5];
    for (n, time) in times.into_iter().enumerate() {
        let text = CONFLICT.replace("ours", &format!("ours {n}"));
        let path = watcher.work.join("a.rs");
        fs::write(&path, text).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(watcher.trigger("conflict_markers")["subject"], "a.rs");
    }
    assert_eq!(watcher.findings_until_now(), Vec::<Value>::new());
}
