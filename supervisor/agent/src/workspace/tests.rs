use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use talon_store::Timestamp;

use super::WorkspaceFiles;
use crate::prompt::Workspace;

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room")
}

fn watched(directory: &Path) -> WorkspaceFiles {
    WorkspaceFiles::new(directory.to_owned())
}

fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    fs::write(path, text).expect("it is our own directory");
}

/// Noon of a day in November 2026, by UTC.
fn noon(day: i64) -> Timestamp {
    // 2026-11-01T12:00:00Z
    Timestamp::from_millis((1_793_534_400 + (day - 1) * 86_400) * 1000)
}

// Promises: AGENT-42
#[test]
fn built_in_texts_stand_for_what_is_not_there() {
    assert_eq!(WorkspaceFiles::new(None).current(), Workspace::default());
    assert!(WorkspaceFiles::new(None).problems().is_empty());
    let directory = directory();
    let watched = watched(directory.path());
    assert_eq!(watched.current(), Workspace::default());
    assert!(watched.problems().is_empty());
    write(directory.path().join("SOUL.md"), "# Soul\n");
    assert_eq!(watched.current(), Workspace::default());
    let gone = WorkspaceFiles::new(directory.path().join("nowhere"));
    assert_eq!(gone.current(), Workspace::default());
    assert!(gone.problems()[0].contains("correct agent.workspace"), "{:?}", gone.problems());
}

// Promises: AGENT-42
#[test]
fn a_file_that_changes_is_read_again_however_it_changes() {
    let directory = directory();
    let (user, watched) = (directory.path().join("USER.md"), watched(directory.path()));
    assert_eq!(watched.current().name, None);
    for (name, how) in
        [("Ada", "new"), ("Eva", "in its place"), ("Grace", "renamed over"), ("Barbara", "in its place")]
    {
        let text = format!("Name: {name}\n");
        if how == "renamed over" {
            write(directory.path().join("draft"), text);
            fs::rename(directory.path().join("draft"), &user).expect("both are there");
        } else {
            write(&user, text);
        }
        assert_eq!(watched.current().name.as_deref(), Some(name), "{how}");
        assert_eq!(watched.current().name.as_deref(), Some(name), "{how}, unchanged");
    }
    fs::remove_file(&user).expect("it is there");
    assert_eq!(watched.current(), Workspace::default());
}

#[test]
fn all_files_are_in_their_places() {
    let directory = directory();
    fs::create_dir(directory.path().join("memory")).expect("it is our own directory");
    for (name, text) in [
        ("IDENTITY.md", "You are Otter."),
        ("SOUL.md", "Be kind."),
        ("USER.md", "- **Name:** Ada"),
        ("memory/2026-11-22.md", "Ship it today."),
        ("memory/2026-11-21.md", "Wrote tests."),
    ] {
        write(directory.path().join(name), text);
    }
    let workspace = watched(directory.path()).on(noon(22));
    assert_eq!((workspace.identity.as_str(), workspace.soul.as_str()), ("You are Otter.", "Be kind."));
    assert_eq!(workspace.name.as_deref(), Some("Ada"));
    let daily: Vec<(&str, &str)> =
        workspace.daily.iter().map(|day| (day.date.as_str(), day.text.as_str())).collect();
    assert_eq!(daily, [("2026-11-22", "Ship it today."), ("2026-11-21", "Wrote tests.")]);
}

#[test]
fn notes_of_today_and_yesterday_are_shown_wherever_on_earth_it_is_today() {
    let directory = directory();
    fs::create_dir(directory.path().join("memory")).expect("it is our own directory");
    for day in 1..=30 {
        write(directory.path().join(format!("memory/2026-11-{day:02}.md")), format!("day {day}"));
    }
    let watched = watched(directory.path());
    let shown = |day| {
        let workspace = watched.on(noon(day));
        workspace.daily.into_iter().map(|day| day.date).collect::<Vec<_>>()
    };
    // Where it is the 23rd already.
    assert_eq!(shown(22), ["2026-11-23", "2026-11-22"]);
    fs::remove_file(directory.path().join("memory/2026-11-23.md")).expect("it is there");
    assert_eq!(shown(22), ["2026-11-22", "2026-11-21"]);
    // Where it is the 21st still.
    fs::remove_file(directory.path().join("memory/2026-11-22.md")).expect("it is there");
    assert_eq!(shown(22), ["2026-11-21", "2026-11-20"]);
    assert_eq!(shown(28), ["2026-11-29", "2026-11-28"]);
    assert!(watched.on(noon(60)).daily.is_empty());
}

// Promises: AGENT-42
#[test]
fn a_link_that_leads_out_is_refused_and_one_within_is_followed() {
    let (directory, outside) = (directory(), directory());
    write(outside.path().join("secret"), "Name: Mallory");
    symlink(outside.path().join("secret"), directory.path().join("USER.md")).expect("it is new");
    symlink("/etc/passwd", directory.path().join("SOUL.md")).expect("it is new");
    symlink(outside.path(), directory.path().join("memory")).expect("it is new");
    write(outside.path().join("2026-11-22.md"), "out");
    write(directory.path().join("mine.md"), "You are Otter.");
    symlink("mine.md", directory.path().join("IDENTITY.md")).expect("it is new");
    let watched = watched(directory.path());
    let workspace = watched.on(noon(22));
    assert_eq!(workspace.identity, "You are Otter.");
    assert_eq!(workspace, Workspace { identity: workspace.identity.clone(), ..Workspace::default() });
    let problems = watched.cached_problems();
    assert_eq!(
        problems.iter().filter(|problem| problem.contains("leads out of the workspace")).count(),
        6,
        "{problems:?}"
    );
}

#[test]
fn links_are_followed_part_by_part_and_never_above_the_workspace() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("kept/now")).expect("it is our own directory");
    // As Kubernetes mounts files: each a link through a link to a directory.
    symlink("kept/now", at("..data")).expect("it is new");
    symlink("..data/IDENTITY.md", at("IDENTITY.md")).expect("it is new");
    write(at("kept/now/IDENTITY.md"), "You are Otter.");
    // Up and down again, without leaving.
    symlink("kept/../kept/now/../soul", at("SOUL.md")).expect("it is new");
    write(at("kept/soul"), "Be kind.");
    symlink("USER.md", at("USER.md")).expect("it is new");
    symlink("kept/now/days", at("memory")).expect("it is new");
    fs::create_dir(at("kept/now/days")).expect("it is our own directory");
    symlink("../../../../outside", at("kept/now/days/2026-11-22.md")).expect("it is new");
    symlink("nowhere", at("kept/now/days/2026-11-21.md")).expect("it is new");
    let watched = watched(directory.path());
    let workspace = watched.on(noon(22));
    assert_eq!((workspace.identity.as_str(), workspace.soul.as_str()), ("You are Otter.", "Be kind."));
    assert!(workspace.user.is_empty() && workspace.daily.is_empty(), "{workspace:?}");
    let problems = watched.cached_problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("USER.md: it cannot be opened (Too many levels"), "{problems:?}");
    assert!(problems[1].contains("2026-11-22.md: it is a link that leads out"), "{problems:?}");
}

// Promises: AGENT-42
#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let directory = directory();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        directory.path().join("USER.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("it is our own directory");
    fs::create_dir(directory.path().join("SOUL.md")).expect("it is our own directory");
    let _socket =
        std::os::unix::net::UnixListener::bind(directory.path().join("IDENTITY.md")).expect("a short path");
    let watched = watched(directory.path());
    assert_eq!(watched.current(), Workspace::default());
    let problems = watched.problems();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(
        problems.iter().all(|problem| problem.contains("no regular file; put one there")),
        "{problems:?}"
    );
}

#[test]
fn a_file_that_is_too_long_or_no_text_is_shown_as_far_as_it_goes() {
    let directory = directory();
    write(directory.path().join("SOUL.md"), "é".repeat(2 * 1024 * 1024));
    write(directory.path().join("USER.md"), b"Name: Ada\n\xff\xfe");
    let watched = watched(directory.path());
    let workspace = watched.current();
    assert!(workspace.soul.len() < 20_000 && workspace.soul.ends_with("bytes left out]"));
    assert_eq!(workspace.name.as_deref(), Some("Ada"));
    let problems = watched.problems();
    assert!(problems.iter().any(|problem| problem.contains("more than 1 MiB")), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("save it as UTF-8")), "{problems:?}");
}

// Promises: AGENT-59
#[tokio::test]
async fn a_disk_that_hangs_holds_nobody_up_and_what_was_read_last_stands() {
    let directory = directory();
    write(directory.path().join("SOUL.md"), "Be kind.");
    let watched = Arc::new(watched(directory.path()));
    let (long, none) = (Duration::from_secs(600), Duration::ZERO);
    assert_eq!(watched.current_within(long).await.soul, "Be kind.");
    assert!(watched.problems_within(long).await.is_empty());
    write(directory.path().join("SOUL.md"), "Be brief.");
    // One look waits for the disk; the others do not even begin.
    let hanging = Arc::clone(&watched);
    let (begun, is_begun) = tokio::sync::oneshot::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
    let disk = tokio::task::spawn_blocking(move || {
        let held = hanging.hang();
        let _ = begun.send(());
        let _ = goes_on.recv();
        drop(held);
    });
    is_begun.await.expect("it begins");
    for _ in 0..8 {
        assert_eq!(watched.current_within(none).await.soul, "Be kind.");
        let problems = watched.problems_within(none).await;
        assert!(problems.len() == 1 && problems[0].contains("see whether its disk answers"), "{problems:?}");
    }
    drop(go_on);
    disk.await.expect("it ends");
    assert_eq!(watched.current_within(long).await.soul, "Be brief.");
    assert!(watched.problems_within(long).await.is_empty());
}
