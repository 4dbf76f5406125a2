//! Scripts that change while messages come.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use support::{hook, launch, scripts, status, wait_for, write};
use talon_sdk::testing::Host;
use tokio::sync::watch;

/// How often the script changes; `make long` sets 100.
const CHANGES: &str = "TALON_TEST_SCRIPT_CHANGES";
const CHANGES_IN_CI: usize = 10;
/// How many messages there are for each change.
const MESSAGES_A_CHANGE: usize = 100;
/// How many callers send them at once.
const CALLERS: usize = 4;

/// What the callers share.
struct Traffic<'h> {
    host: &'h Host,
    next: AtomicUsize,
    messages: usize,
    /// The newest version that answered.
    newest: watch::Sender<usize>,
    changes: usize,
}

// Promises: LUA-24
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_message_meets_exactly_one_version_while_the_script_changes() {
    let changes = std::env::var(CHANGES).ok().and_then(|text| text.parse().ok()).unwrap_or(CHANGES_IN_CI);
    let version = |n: usize| format!("function pre_hook(ctx) ctx.message = ctx.message .. ' v{n}' end");
    let dir = scripts(&[("v.lua", &version(0))]);
    let host = launch(dir.path(), json!({})).await;
    let messages = changes * MESSAGES_A_CHANGE;
    let traffic =
        Traffic { host: &host, next: AtomicUsize::new(0), messages, newest: watch::Sender::new(0), changes };
    let writer = async {
        let mut newest = traffic.newest.subscribe();
        for n in 1..=changes {
            write(dir.path(), "v.lua", version(n));
            let live = newest.wait_for(|newest| *newest == n);
            let live = tokio::time::timeout(Duration::from_secs(60), live).await;
            let _ = live.unwrap_or_else(|_| panic!("version {n} is not live")).expect("callers are there");
        }
    };
    let callers = futures_util::future::join_all((0..CALLERS).map(|_| traffic.send()));
    let ((), sent) = tokio::join!(writer, callers);
    // `send` fails the test for a message that no version, or more than one, answered.
    let sent: usize = sent.into_iter().sum();
    assert!(sent >= messages, "{sent} of {messages}");
    let status = status(&host).await;
    assert_eq!(status["scripts"][0]["loads"], changes + 1, "{status}");
    assert_eq!(status["counts"]["failed"], 0, "{status}");
    assert_eq!(status["counts"]["calls"], sent, "{status}");
}

impl Traffic<'_> {
    /// Sends messages, one after the other, until there were enough and the last version has answered. Returns how many.
    async fn send(&self) -> usize {
        let (mut sent, mut last) = (0, 0);
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            if n >= self.messages && *self.newest.borrow() == self.changes {
                return sent;
            }
            let answer = hook(self.host, "v-pre_hook", &n.to_string()).await;
            let data =
                answer.structured.clone().unwrap_or_else(|| panic!("message {n} was lost: {answer:?}"));
            let text = data["message"].as_str().expect("a text").to_owned();
            let seen: usize = text
                .strip_prefix(&format!("{n} v"))
                .and_then(|version| version.parse().ok())
                .unwrap_or_else(|| panic!("not exactly one version answered: {text:?}"));
            assert!(seen >= last, "version {seen} after {last}");
            (sent, last) = (sent + 1, seen);
            self.newest.send_if_modified(|newest| {
                let newer = seen > *newest;
                *newest = seen.max(*newest);
                newer
            });
        }
    }
}

#[tokio::test]
async fn files_that_go_away_or_are_replaced_while_they_are_used_harm_nobody() {
    let answers = |text: &str| format!("function pre_hook(ctx) ctx.message = '{text}' end");
    let dir = scripts(&[("a.lua", &answers("a")), ("b.lua", &answers("b"))]);
    let host = launch(dir.path(), json!({})).await;
    // A directory in the place of a file, and then a FIFO: the last good version runs on.
    let path = dir.path().join("a.lua");
    std::fs::remove_file(&path).expect("removed");
    std::fs::create_dir(&path).expect("made");
    let refused = wait_for(&host, |status| {
        status["scripts"][0]["failure"].as_str().is_some_and(|text| text.contains("no regular file"))
            || status["scripts"][0]["name"] == "b"
    })
    .await;
    if refused["scripts"][0]["name"] == "a" {
        let answer = hook(&host, "a-pre_hook", "x").await;
        assert_eq!(answer.structured, Some(json!({"verdict": "replace", "message": "a"})));
    }
    std::fs::remove_dir(&path).expect("removed");
    let _ = wait_for(&host, |status| status["scripts"][0]["name"] == "b").await;
    write(dir.path(), "a.lua", answers("again"));
    let _ = wait_for(&host, |status| {
        status["scripts"][0]["name"] == "a" && status["scripts"][0]["failure"].is_null()
    })
    .await;
    let answer = hook(&host, "a-pre_hook", "x").await;
    assert_eq!(answer.structured, Some(json!({"verdict": "replace", "message": "again"})));
    let other = hook(&host, "b-pre_hook", "x").await;
    assert_eq!(other.structured, Some(json!({"verdict": "replace", "message": "b"})));
}
