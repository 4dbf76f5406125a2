use std::path::Path;

use super::check::Problem;
use super::file::parse;
use super::*;

fn parsed(text: &str) -> Config {
    parse(text, Some(Path::new("/home/me"))).expect("it is a configuration")
}

// Promises: SHADOW-61
#[test]
fn nothing_is_watched_by_default() {
    for text in ["", "shadow: {}", "{}"] {
        let config = parsed(text);
        assert!(!config.enabled && config.watchers.filesystem.paths.is_empty() && config.checkers.is_empty());
    }
}

// Promises: SHADOW-62
#[test]
fn the_founding_spelling_and_ours_say_the_same() {
    let founding = parsed(
        "shadow:
  enabled: true
  watchers:
    filesystem: { paths: [~/work], ignore: ['*.log'], events: [add, change, unlink] }
    shell: { historyFile: ~/.zsh_history, watchErrors: false }
    git: { enabled: true, events: [commit, push, merge-conflict] }
  cooldown: 30000
  maxGhostsPerHour: 10
",
    );
    let ours = parsed(
        "shadow:
  enabled: true
  watchers:
    filesystem: { paths: [/home/me/work], ignore: ['*.log'], events: [add, change, unlink] }
    shell: { history_file: /home/me/.zsh_history, watch_errors: false }
    git: { enabled: true, events: [commit, push, merge_conflict] }
  cooldown: 30s
  max_ghosts_per_hour: 10
",
    );
    assert_eq!(format!("{founding:?}"), format!("{ours:?}"));
    assert_eq!(ours.cooldown, Some(Span(Duration::from_secs(30))));
    assert_eq!(ours.watchers.filesystem.paths, [Path::new("/home/me/work")]);
    assert_eq!(ours.watchers.git.events, [GitKind::Commit, GitKind::Push, GitKind::MergeConflict]);
}

// Promises: SHADOW-62
#[test]
fn what_is_wrong_is_said() {
    for (text, part) in [
        ("shadow: { enbled: true }", "enbled"),
        ("shadow: { cooldown: soon }", "is no duration"),
        ("shadow: { cooldown: 0 }", "more than none"),
        ("shadow: { cooldown: 2d }", "at most 24h"),
        ("shadow: { watchers: { git: { events: [pull] } } }", "pull"),
        ("shadow: [", ""),
    ] {
        let error = parse(text, None).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
}

// Promises: SHADOW-63
#[test]
fn only_this_users_own_directories_are_watched() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("a/b");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let mut config = Config { enabled: true, ..Config::default() };
    assert_eq!(checked(&config).1, [Problem::NoPaths]);
    config.watchers.filesystem.paths = vec![inside, dir.path().join("a"), dir.path().join("a/../a")];
    let (roots, problems) = checked(&config);
    assert_eq!((roots.len(), problems.len()), (1, 0), "{problems:?}");
    config.watchers.filesystem.paths =
        vec!["/".into(), "relative".into(), dir.path().join("file"), dir.path().join("missing")];
    let (roots, problems) = checked(&config);
    assert!(roots.is_empty());
    assert!(matches!(
        problems.as_slice(),
        [Problem::TooWide(_), Problem::Relative(_), Problem::NoDirectory(_), Problem::Missing { .. }]
    ));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(dir.path(), Some(12345), None).unwrap();
        config.watchers.filesystem.paths = vec![dir.path().to_owned()];
        assert!(matches!(checked(&config).1.as_slice(), [Problem::OtherUser { owner: 12345, .. }]));
    }
}

// Promises: SHADOW-64
#[test]
fn a_checker_needs_a_program_and_a_watched_directory() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let checker = |directory: &Path, command: &[&str]| Checker {
        directory: directory.to_owned(),
        command: command.iter().map(|&word| word.to_owned()).collect(),
        files: Vec::new(),
        timeout: checker_timeout(),
    };
    let mut config = Config { enabled: true, ..Config::default() };
    config.watchers.filesystem.paths = vec![dir.path().to_owned()];
    config.checkers = vec![checker(dir.path(), &["true"])];
    assert_eq!(checked(&config).1, []);
    config.checkers = vec![checker(dir.path(), &[]), checker(elsewhere.path(), &["true"])];
    assert!(matches!(
        checked(&config).1.as_slice(),
        [Problem::EmptyCommand(_), Problem::UnwatchedChecker(_)]
    ));
}
