use std::path::Path;

use serde_json::{Value, json};
use talon_sdk::testing::Call;
use tokio::task::JoinHandle;

use super::*;

fn call(directory: &Path, args: Value) -> Call {
    let config = Config { directory: Some(directory.to_owned()) };
    Call::new(run::run()).args(args).with(Scratch::open(config).expect("a directory"))
}

async fn ran(command: &str) -> (String, Value) {
    let dir = tempfile::tempdir().expect("a directory");
    let output = call(dir.path(), json!({"command": command})).run().await.expect("answers");
    (output.content().to_owned(), output.structured_content().cloned().expect("structured"))
}

#[tokio::test]
async fn a_command_tells_its_exit_code_and_both_outputs() {
    let (text, told) = ran("pwd >&2; echo out; cat; exit 3").await;
    assert!(text.starts_with("exit code 3\nstdout:\nout\n\nstderr:\n/"), "{text}");
    assert_eq!((&told["exit_code"], &told["timed_out"]), (&json!(3), &json!(false)));
    let (text, told) = ran("kill -9 $$").await;
    assert_eq!((text.as_str(), &told["signal"]), ("killed by signal 9", &json!(9)));
}

// Promises: EXT-143
#[tokio::test]
async fn its_lines_are_shown_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let log = talon_sdk::testing::ProgressLog::new();
    let args = json!({"command": "mkfifo go; echo one; printf 'two\\r\\nthr'; read line < go; echo ee"});
    let running = tokio::spawn(call(dir.path(), args).progress(&log).run());
    while log.lines() != ["one", "two"] {
        tokio::task::yield_now().await;
    }
    tokio::fs::write(dir.path().join("go"), "on\n").await.unwrap();
    running.await.unwrap().expect("answers");
    assert_eq!(log.lines(), ["one", "two", "three"]);
}

#[tokio::test]
async fn its_time_ends_it_with_all_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let gone = witness(dir.path());
    let command = "exec 3>witness; sleep 1000 & echo begun; wait";
    let args = json!({"command": command, "timeout_seconds": 1});
    let output = call(dir.path(), args).run().await.unwrap();
    assert_eq!(output.content(), "killed after 1 s\nstdout:\nbegun\n");
    gone.await.unwrap();
}

#[tokio::test]
async fn what_it_leaves_in_the_background_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let gone = witness(dir.path());
    let args = json!({"command": "exec 3>witness; sleep 1000 & echo begun"});
    let output = call(dir.path(), args).run().await.unwrap();
    assert_eq!(output.content(), "exit code 0\nstdout:\nbegun\n");
    gone.await.unwrap();
}

#[tokio::test]
async fn a_cancelled_call_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (gone, begun) = (witness(dir.path()), pipe(&dir.path().join("begun")));
    let running = call(dir.path(), json!({"command": "exec 3>witness; echo > begun; sleep 1000"}));
    let running = tokio::spawn(async move { running.run().await });
    begun.await.unwrap();
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    gone.await.unwrap();
}

/// Ends when no process holds `witness` open any more: those that opened it, and all their children, are
/// gone.
fn witness(directory: &Path) -> JoinHandle<()> {
    pipe(&directory.join("witness"))
}

fn pipe(path: &Path) -> JoinHandle<()> {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .expect("a pipe is made");
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || {
        std::fs::read(path).expect("a pipe is read");
    })
}

#[tokio::test]
async fn what_cannot_be_run_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (args, says) in [
        (json!({"command": ""}), "a command has"),
        (json!({"command": "a\0b"}), "no zero byte"),
        (json!({"command": "x".repeat(200_000)}), "a command has"),
        (json!({"command": "true", "timeout_seconds": 0}), "1 to 300"),
        (json!({"command": "true", "timeout_seconds": 301}), "1 to 300"),
    ] {
        let error = call(dir.path(), args).run().await.unwrap_err();
        assert!(error.message().contains(says), "{error:?}");
    }
    let config = Config { directory: Some("/etc/hostname".into()) };
    assert!(Scratch::open(config).unwrap_err().message().contains("no directory"));
}
