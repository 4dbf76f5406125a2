//! What a service manager is notified of, and which descriptors it passes.

use nix::sys::signal::Signal;
use talon_tests::{Builder, ServiceManager, alive, cli, listening, program, until};

/// One that is soon given up.
const HOPELESS: &str = "backoff_initial: 10ms\nbackoff_max: 20ms\nmax_restarts: 1\nstart_timeout: 500ms";

// Promises: HANDOVER-37
#[tokio::test]
async fn ready_comes_after_every_plugin_is_ready_or_has_failed_and_the_status_says_so() {
    let manager = ServiceManager::new();
    let builder = Builder::new().misbehave(&[], "").plugin(
        "silent",
        &program("misbehave"),
        &["--lie=silent"],
        HOPELESS,
    );
    let supervisor = manager.attach(builder).start().await;
    manager.wait_message(|line| line == "READY=1").await;
    let heard = manager.messages();
    let ready = heard.iter().position(|line| line == "READY=1").expect("it was heard");
    assert!(heard[..ready].iter().any(|line| line.starts_with("EXTEND_TIMEOUT_USEC=")), "{heard:?}");
    let status =
        manager.wait_message(|line| line.starts_with("STATUS=2 plugins: 1 ready, 1 failed (silent: ")).await;
    assert!(status.len() < 250, "{status}");
    // It stays true.
    supervisor.client.stop("misbehave").await.expect("it stops");
    manager.wait_message(|line| line.ends_with("1 stopped")).await;
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert!(manager.messages().contains(&"STOPPING=1".to_owned()));
}

// Promises: HANDOVER-38
#[tokio::test]
async fn the_watchdog_is_fed_while_everything_answers() {
    let manager = ServiceManager::new();
    let builder = Builder::new().misbehave(&[], "").env("WATCHDOG_USEC", "600000");
    let supervisor = manager.attach(builder).start().await;
    for _ in 0..3 {
        manager.clear_messages();
        manager.wait_message(|line| line == "WATCHDOG=1").await;
    }
    supervisor.signal(Signal::SIGSTOP);
    manager.clear_messages();
    supervisor.signal(Signal::SIGCONT);
    manager.wait_message(|line| line == "WATCHDOG=1").await;
}

// Promises: HANDOVER-38
#[tokio::test]
async fn a_watchdog_that_waits_for_somebody_else_is_not_fed() {
    let manager = ServiceManager::new();
    let builder = Builder::new().env("WATCHDOG_USEC", "100000").env("WATCHDOG_PID", "1");
    let supervisor = manager.attach(builder).start().await;
    manager.wait_message(|line| line == "READY=1").await;
    supervisor.stop().await;
    assert!(!manager.messages().contains(&"WATCHDOG=1".to_owned()));
}

// Promises: HANDOVER-39
#[tokio::test]
async fn host_sock_can_be_handed_in_and_is_left_in_place() {
    let manager = ServiceManager::new();
    let builder = Builder::new().misbehave(&[], "");
    let path = builder.scratch().join("handed.sock");
    manager.socket("host", listening(&path));
    let runtime_dir = builder.scratch().join("run");
    std::fs::create_dir_all(&runtime_dir).expect("the directory is ours");
    // Clients look for it there.
    std::os::unix::fs::symlink(&path, runtime_dir.join("host.sock")).expect("the directory is ours");
    let supervisor = manager.attach(builder).start().await;
    assert_eq!(supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await.content, "hi");
    let plugins = supervisor.plugin_processes();
    let (status, log, _left) = supervisor.hands_over().await;
    assert!(status.success(), "{log}");
    assert!(path.exists(), "it is the unit's");
    // Its plugins wait in the store for the next one, until the manager releases them.
    manager.drop_stored();
    until("an end of the plugins", || plugins.iter().all(|pid| !alive(*pid))).await;
}

// Promises: HANDOVER-39
#[tokio::test]
async fn a_socket_that_is_not_what_its_name_says_is_refused_with_what_is_expected() {
    let manager = ServiceManager::new();
    let (socket, _other) = std::os::unix::net::UnixStream::pair().expect("there is room");
    manager.socket("host", socket.into());
    let refused = manager.attach(Builder::new()).start_refused().await;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(6), "{said}");
    assert!(said.contains("FileDescriptorName=host"), "{said}");
}

#[tokio::test]
async fn an_address_that_is_nobodys_holds_nobody_up() {
    let builder = Builder::new().misbehave(&[], "").env("NOTIFY_SOCKET", "/nonexistent/notify");
    let supervisor = builder.start().await;
    assert_eq!(supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await.content, "hi");
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
}

// Promises: HANDOVER-36
#[tokio::test]
async fn talon_stop_ends_everything_and_waits_for_it() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let (pid, socket) = (supervisor.pid(), supervisor.socket());
    let output = supervisor.cli(&["stop"]).await;
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("pid {pid}")) && said.contains("stopped"), "{said}");
    assert!(!socket.exists());
    assert!(supervisor.plugin_processes().is_empty());
    // There is no process left to stop.
    let again = cli(&["--socket", socket.to_str().expect("our paths are text"), "stop"]).await;
    assert_eq!(again.status.code(), Some(5));
}

// Promises: HANDOVER-36
#[tokio::test]
async fn talon_stop_does_nothing_where_the_unit_cannot_be_asked_about() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let output = supervisor.cli(&["stop", "--unless-restarting=nobody-has-this.service"]).await;
    assert!(output.status.success(), "{output:?}");
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await;
    // Where there is no systemd nothing was stopped; where there is one, it has no job for this unit, and all
    // was.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(answer.content == "hi" || said.contains("stopped"), "{said}");
}
