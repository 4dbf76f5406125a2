//! Files: editors' ways of saving, overflow, limits, and what is no file to be read.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::harness::{CONFLICT, Watcher};

/// How editors save, as strace recorded it: what happens to which file, in order.
fn save_as(editor: &str, path: &Path, text: &str) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let beside = |other: &str| path.with_file_name(other);
    let write = |path: &Path| {
        let mut file = File::create(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.sync_all().unwrap();
    };
    match editor {
        // vim with its defaults: a swap file, a probe whether it may write, the old file as a backup.
        "vim" => {
            let swap = beside(&format!(".{name}.swp"));
            fs::write(&swap, "b0VIM 9.0").unwrap();
            File::create(beside("4913")).unwrap();
            fs::remove_file(beside("4913")).unwrap();
            let backup = beside(&format!("{name}~"));
            fs::rename(path, &backup).unwrap();
            write(path);
            fs::remove_file(backup).unwrap();
            fs::remove_file(swap).unwrap();
        }
        // vim with backupcopy=yes: the same file is written again.
        "vim in place" => {
            fs::copy(path, beside(&format!("{name}~"))).unwrap();
            write(path);
            fs::remove_file(beside(&format!("{name}~"))).unwrap();
        }
        // VS Code: truncates and writes; twice with "format on save".
        "VS Code" => {
            write(path);
            write(path);
        }
        // JetBrains with "safe write".
        "JetBrains" => {
            let (new, old) = (beside(&format!("{name}___jb_tmp___")), beside(&format!("{name}___jb_old___")));
            write(&new);
            fs::rename(path, &old).unwrap();
            fs::rename(&new, path).unwrap();
            fs::remove_file(old).unwrap();
        }
        // Emacs: a lock as a dangling link, then a backup by renaming.
        "Emacs" => {
            let lock = beside(&format!(".#{name}"));
            std::os::unix::fs::symlink("me@host.1234:1700000000", &lock).unwrap();
            fs::rename(path, beside(&format!("{name}~"))).unwrap();
            write(path);
            fs::remove_file(lock).unwrap();
        }
        // A new file in the old one's place.
        "rename" => {
            let new = beside(&format!(".{name}.tmp"));
            write(&new);
            fs::rename(&new, path).unwrap();
        }
        editor => panic!("{editor}"),
    }
}

// Promises: SHADOW-65, SHADOW-66
#[test]
fn every_editors_save_is_one_change() {
    const EDITORS: [&str; 6] = ["vim", "vim in place", "VS Code", "JetBrains", "Emacs", "rename"];
    let watcher = Watcher::prepared("", |work| {
        for (n, _) in EDITORS.iter().enumerate() {
            fs::write(work.join(format!("file{n}.rs")), "fn main() {}\n").unwrap();
        }
    });
    for (n, editor) in EDITORS.iter().enumerate() {
        save_as(editor, &watcher.work.join(format!("file{n}.rs")), CONFLICT);
        let found = watcher.trigger("conflict_markers");
        assert_eq!(found["subject"], format!("file{n}.rs"), "{editor}");
        assert_eq!(
            (&found["kind"], &found["language"]),
            (&"file_changed".into(), &"rust".into()),
            "{editor}"
        );
        assert_eq!(found["path_hash"].as_str().map(str::len), Some(64));
        assert_eq!(watcher.findings_until_now(), Vec::<serde_json::Value>::new(), "{editor}");
    }
}

// Promises: SHADOW-65
#[test]
fn a_real_vim_saves_one_change() {
    let watcher =
        Watcher::prepared("", |work| fs::write(work.join("a.rs"), CONFLICT.replace("=======", "")).unwrap());
    let saved = Command::new("vim")
        .args(["-Nes", "-u", "NONE", "-c", "call append(3, '=======')", "-c", "wq"])
        .arg(watcher.work.join("a.rs"))
        .status();
    match saved {
        Ok(_) => {
            assert_eq!(watcher.trigger("conflict_markers")["subject"], "a.rs");
            assert_eq!(watcher.findings_until_now(), Vec::<serde_json::Value>::new());
        }
        Err(error) => eprintln!("skipped: no vim ({error})"),
    }
}

// Promises: SHADOW-70
#[test]
fn after_an_overflow_no_change_is_missed() {
    let watcher = Watcher::prepared("", |work| {
        for n in 0..20 {
            fs::create_dir_all(work.join(format!("d{n}"))).unwrap();
            fs::write(work.join(format!("d{n}/old.rs")), "fn main() {}\n").unwrap();
        }
    });
    let limit: usize =
        fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    watcher.signal(Signal::STOP);
    // Each round is at least two events that the kernel cannot join.
    for _ in 0..limit {
        let noise = watcher.work.join("noise");
        File::create(&noise).unwrap();
        fs::remove_file(&noise).unwrap();
    }
    for n in 0..20 {
        fs::write(watcher.work.join(format!("d{n}/old.rs")), CONFLICT).unwrap();
        fs::create_dir(watcher.work.join(format!("new{n}"))).unwrap();
        fs::write(watcher.work.join(format!("new{n}/new{n}.rs")), CONFLICT).unwrap();
    }
    watcher.signal(Signal::CONT);
    let mut found = BTreeSet::new();
    while found.len() < 40 {
        let observation = watcher.trigger("conflict_markers");
        found.insert((observation["directory"].to_string(), observation["subject"].to_string()));
    }
}

// Promises: SHADOW-68, SHADOW-69
#[test]
fn ignored_files_fifos_links_and_odd_names_harm_nothing() {
    let watcher =
        Watcher::prepared("  watchers: { filesystem: { paths: [WORK], ignore: ['*.log'] } }\n", |work| {
            fs::create_dir_all(work.join("target/deep")).unwrap();
            fs::write(work.join(".gitignore"), "target/\n").unwrap();
            std::os::unix::fs::symlink(work, work.join("loop")).unwrap();
        });
    let at = |name: &str| watcher.work.join(name);
    rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    fs::write(at("target/a.rs"), CONFLICT).unwrap();
    fs::write(at("target/deep/a.rs"), CONFLICT).unwrap();
    fs::write(at("a.log"), CONFLICT).unwrap();
    fs::write(at("binary"), [CONFLICT.as_bytes(), &[0]].concat()).unwrap();
    std::os::unix::fs::symlink(at("a.log"), at("link.rs")).unwrap();
    assert_eq!(watcher.findings_until_now(), Vec::<serde_json::Value>::new());
    // A name with control characters is seen, and shown without them.
    fs::write(at("a\u{1b}[2J\n.rs"), CONFLICT).unwrap();
    let found = watcher.trigger("conflict_markers");
    let subject = found["subject"].as_str().unwrap();
    assert!(
        !subject.contains('\u{1b}') && !subject.contains('\n') && subject.ends_with(".rs"),
        "{subject:?}"
    );
    // What is no longer ignored is looked at.
    fs::write(at(".gitignore"), "").unwrap();
    assert_eq!(watcher.findings_until_now(), Vec::<serde_json::Value>::new());
    fs::write(at("target/b.rs"), CONFLICT.replace("ours", "mine")).unwrap();
    watcher.next(|observation| observation["subject"] == "b.rs");
}

// Promises: SHADOW-66
#[test]
fn directories_that_come_go_and_move_are_followed() {
    let watcher = Watcher::start();
    let at = |name: &str| watcher.work.join(name);
    fs::create_dir_all(at("a/b")).unwrap();
    fs::write(at("a/b/x.rs"), CONFLICT).unwrap();
    assert_eq!(watcher.trigger("conflict_markers")["subject"], "x.rs");
    fs::rename(at("a"), at("moved")).unwrap();
    watcher.findings_until_now();
    fs::write(at("moved/b/y.rs"), CONFLICT.replace("ours", "other")).unwrap();
    let found = watcher.next(|observation| observation["subject"] == "y.rs");
    assert_eq!(found["directory"], at("moved/b").to_str().unwrap());
    fs::remove_dir_all(at("moved")).unwrap();
    assert_eq!(watcher.findings_until_now(), Vec::<serde_json::Value>::new());
}

#[test]
fn a_directory_that_is_removed_and_made_again_is_followed() {
    let watcher = Watcher::prepared("", |work| fs::create_dir(work.join("src")).unwrap());
    let src = watcher.work.join("src");
    // Both are over before anybody looks.
    watcher.signal(Signal::STOP);
    fs::remove_dir_all(&src).unwrap();
    fs::create_dir(&src).unwrap();
    watcher.signal(Signal::CONT);
    watcher.findings_until_now();
    fs::write(src.join("a.rs"), CONFLICT).unwrap();
    assert_eq!(watcher.trigger("conflict_markers")["subject"], "a.rs");
}

// Promises: SHADOW-67
#[test]
fn a_log_that_grows_all_the_time_is_not_read_and_keeps_nobody_waiting() {
    let watcher = Watcher::start();
    let log = watcher.work.join("big.out");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        let mut file = File::create(log).unwrap();
        let chunk = CONFLICT.repeat(2000);
        let mut written = 0u64;
        // It ends by itself, should the test hang.
        while stopped.try_recv().is_err() && written < 1 << 38 {
            file.write_all(chunk.as_bytes()).unwrap();
            written += chunk.len() as u64;
            if file.stream_position().unwrap() > 64 << 20 {
                file.set_len(0).unwrap();
                file.rewind().unwrap();
            }
        }
    });
    fs::create_dir(watcher.work.join("src")).unwrap();
    fs::write(watcher.work.join("src/a.rs"), CONFLICT).unwrap();
    let found = watcher.next(|observation| observation["trigger"] == "conflict_markers");
    stop.send(()).unwrap();
    writer.join().unwrap();
    assert_eq!(found["subject"], "a.rs");
}

// Promises: SHADOW-79
#[test]
fn limits_are_said_once_and_the_rest_is_watched() {
    let config = "  watchers: { filesystem: { paths: [WORK], max_directories: 5 } }\n";
    let mut watcher = Watcher::prepared(config, |work| {
        (0..20).for_each(|n| fs::create_dir(work.join(format!("d{n:02}"))).unwrap());
    });
    watcher.wait_said("max_directories");
    fs::write(watcher.work.join("a.rs"), CONFLICT).unwrap();
    assert_eq!(watcher.trigger("conflict_markers")["subject"], "a.rs");
    let times = watcher.said_so_far().iter().filter(|line| line.contains("max_directories")).count();
    assert_eq!(times, 1);
}

/// A large tree: what is remembered of it stays small. The bound is that of the issue, in a debug build.
// Promises: SHADOW-79
#[test]
fn a_tree_of_100_000_files_is_watched_within_30_mb() {
    let watcher = Watcher::prepared("", |work| {
        for d in 0..1000 {
            let dir = work.join(format!("component-{d}/src"));
            fs::create_dir_all(&dir).unwrap();
            (0..100).for_each(|n| drop(File::create(dir.join(format!("module-{n}.rs"))).unwrap()));
        }
    });
    assert!(
        watcher.heard.iter().any(|line| line.contains("100000 files in 2002 directories")),
        "{:?}",
        watcher.heard
    );
    fs::write(watcher.work.join("component-500/src/module-50.rs"), CONFLICT).unwrap();
    watcher.trigger("conflict_markers");
    let resident = watcher.status("VmRSS:");
    assert!(resident < 30 * 1024, "{resident} KiB");
}

// Promises: SHADOW-64
#[test]
fn a_checker_that_was_opted_in_runs_after_a_save_and_its_error_is_told() {
    let config = "  checkers: [{ directory: WORK, command: [sh, check.sh], files: ['*.rs'] }]\n";
    let mut watcher = Watcher::prepared(config, |work| {
        let script = "echo \"$PWD/a.rs:1: bad\" >&2\nexit 3\n";
        fs::write(work.join("check.sh"), script).unwrap();
    });
    watcher.wait_said("after a file is saved");
    fs::write(watcher.work.join("a.txt"), "text").unwrap();
    assert_eq!(watcher.findings_until_now(), Vec::<serde_json::Value>::new());
    fs::write(watcher.work.join("a.rs"), "text").unwrap();
    let found = watcher.trigger("checker_error");
    assert_eq!(found["finding"], "the checker ended with exit code 3");
    assert_eq!(found["subject"], "sh check.sh");
    assert_eq!(found["excerpt"], "./a.rs:1: bad\n");
}
