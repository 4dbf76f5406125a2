use std::process::Command;

use super::*;

/// Only a limit for hangs, not an expectation of speed.
const WAIT: Duration = Duration::from_secs(60);

fn git(work_tree: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .current_dir(work_tree)
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_look_without_time_for_all_commits_is_continued_by_the_next_ones() {
    let dir = tempfile::tempdir().unwrap();
    let work_tree = dir.path().canonicalize().unwrap();
    git(&work_tree, &["init", "-q", "-b", "main"]);
    for message in ["one", "two", "three"] {
        git(&work_tree, &["commit", "-q", "--allow-empty", "-m", message]);
    }
    let (events, received) = mpsc::sync_channel(64);
    let settings = GitSettings {
        stage: false,
        commit: true,
        commits_time: Duration::ZERO,
        recent_since: None,
        seen: HashMap::from([(work_tree.clone(), SeenCommit::default())]),
    };
    let finder = start(settings, events, Notices::default()).unwrap();
    finder.found(work_tree.clone());
    let (looked_at, all) = mpsc::channel();
    finder.all_found(|_| (), move || looked_at.send(()).unwrap());
    all.recv_timeout(WAIT).unwrap();
    let (mut told, mut last, mut looks) = (Vec::new(), None, 0);
    for event in received.try_iter() {
        match event {
            Event::Git(GitEvent { what: GitChange::Commit { id, summary, .. }, .. }) => {
                told.push(summary);
                last = Some(id);
            }
            // A watcher that is killed now has the next one go on behind it.
            Event::CommitsSeen(_, seen) => {
                assert_eq!(seen.commit, last);
                looks += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told, ["one", "two", "three"]);
    assert!(looks >= 3, "{looks}");
}
