//! What happens around a supervisor and must not end it.

use nix::sys::signal::Signal;
use talon_proto::host::Outcome;
use talon_tests::{Builder, Supervisor};

async fn echoes(supervisor: &Supervisor) {
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await;
    assert_eq!((answer.outcome(), answer.content.as_str()), (Outcome::Ok, "hi"), "{}", supervisor.log());
}

// Promises: HANDOVER-39
#[tokio::test]
async fn a_log_that_nobody_reads_any_more_ends_nothing() {
    let mut supervisor = Builder::new().misbehave(&[], "").start().await;
    supervisor.close_log().await;
    // Each says something.
    for _ in 0..3 {
        supervisor.client.stop("misbehave").await.expect("it stops");
        supervisor.client.start("misbehave").await.expect("it starts");
        echoes(&supervisor).await;
    }
    let (status, _, _left) = supervisor.hands_over().await;
    assert!(status.success(), "{status}");
}

// Promises: HANDOVER-39
#[tokio::test]
async fn sigpipe_ends_nothing() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    supervisor.signal(Signal::SIGPIPE);
    echoes(&supervisor).await;
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
}
