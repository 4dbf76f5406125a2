//! What goes wrong with the real `talon-agent` while it serves: its process is stopped, its disk is full.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_proto::host::AgentStatus;
use talon_tests::ask::ask;
use talon_tests::{Builder, Supervisor, http, is_root, skip};

const ANSWER: &str = "Here I am.";

/// An agent whose model always says the same.
fn scripted(builder: Builder) -> Builder {
    let script = serde_json::json!({ "answers": [{ "say": ANSWER }] });
    let script = builder.scratch().write("script.yaml", &script.to_string());
    let model = "{ tier: mid, context_window: 128000, tools: true, free: true }";
    builder.config(&format!(
        "agent:\n  enabled: true\nmodels:\n  providers:\n    scripted: {{ kind: scripted, file: {} }}\n  catalog:\n    \
         scripted/demo: {model}\n",
        script.display()
    ))
}

fn serves(agent: &AgentStatus) -> bool {
    agent.state == "serving"
}

async fn answers(supervisor: &Supervisor) {
    let asked = ask(supervisor, "Are you there?", &[]).await;
    assert_eq!((asked.code, asked.text("text")), (Some(0), ANSWER), "{asked:?}");
}

// Promises: AGENT-49
#[tokio::test]
async fn one_that_is_stopped_is_said_and_replaced_without_settings() {
    let supervisor = scripted(Builder::new()).start().await;
    let first = supervisor.wait_agent("an agent that serves", serves).await;
    answers(&supervisor).await;
    kill(Pid::from_raw(first.pid.cast_signed()), Signal::SIGSTOP).expect("it runs");
    let silent = |agent: &AgentStatus| agent.state == "unresponsive";
    let now = supervisor.wait_agent("an agent that is said not to answer", silent).await;
    assert_eq!(now.pid, first.pid, "{now:?}");
    let status = supervisor.cli(&["status"]).await;
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("unresponsive"), "{status}");
    let replaced = |agent: &AgentStatus| serves(agent) && agent.pid != first.pid;
    let after = supervisor.wait_agent("another process that serves", replaced).await;
    assert!(after.restarts > first.restarts, "{after:?}");
    answers(&supervisor).await;
    assert!(supervisor.stop().await.processes.is_empty());
}

// Promises: AGENT-72
#[tokio::test]
async fn a_full_disk_is_said_where_an_operator_looks_and_no_longer_once_there_is_room() {
    let test = "a_full_disk_is_said_where_an_operator_looks_and_no_longer_once_there_is_room";
    if !is_root() {
        return skip(test, "only root may mount a small file system");
    }
    const MOUNT: &str = "mount -t tmpfs -o size=24m,mode=711 tmpfs \"$0\" && exec \"$@\"";
    let builder = scripted(Builder::new());
    let data = builder.scratch().join("data");
    std::fs::create_dir(&data).expect("the scratch directory takes directories");
    let place = data.to_str().expect("our paths are text").to_owned();
    // In a mount namespace of the supervisor's own, so that nothing of it stays.
    let words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, &place];
    let supervisor = builder.wrapped(&words).start().await;
    let first = supervisor.wait_agent("an agent that serves", serves).await;
    answers(&supervisor).await;
    let gauge = async || {
        let page = http::get(&supervisor.admin(), "/metrics").await.body;
        page.lines().find(|line| line.starts_with("talon_agent_full ")).map(str::to_owned)
    };
    let ready = http::get(&supervisor.admin(), "/readyz").await;
    assert!(ready.status == 200 && !ready.body.contains("\"agent\""), "{ready:?}");
    assert_eq!(gauge().await.as_deref(), Some("talon_agent_full 0"));

    let inside = format!("/proc/{}/root{}/ballast", supervisor.pid(), data.display());
    fill(&inside);
    while ask(&supervisor, &"Are you there? ".repeat(2_000), &[]).await.code == Some(0) {
        fill(&inside);
    }
    let full = supervisor.wait_agent("an agent without room", |agent| agent.state == "full").await;
    assert_eq!((full.pid, full.restarts), (first.pid, 0), "{full:?}");
    let status = supervisor.cli(&["status"]).await;
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("make room") && status.contains("state.max_bytes"), "{status}");
    let ready = http::get(&supervisor.admin(), "/readyz").await;
    assert!(ready.status == 200 && ready.body.contains("\"agent\":{\"state\":\"full\""), "{ready:?}");
    assert_eq!(gauge().await.as_deref(), Some("talon_agent_full 1"));
    let page = http::get(&supervisor.admin(), "/metrics").await.body;
    assert!(page.contains("\ntalon_agent_up 1\n"), "it still answers reads");

    // No turn is needed for the status to change.
    std::fs::remove_file(&inside).expect("it is ours");
    let after = supervisor.wait_agent("an agent with room", serves).await;
    assert_eq!((after.pid, after.restarts), (first.pid, 0), "without a restart");
    assert_eq!(gauge().await.as_deref(), Some("talon_agent_full 0"));
    answers(&supervisor).await;
    assert!(supervisor.stop().await.processes.is_empty());
}

/// Takes all that is left of the file system.
fn fill(ballast: &str) {
    use std::io::Write as _;

    let mut file = std::fs::File::options().create(true).append(true).open(ballast).expect("it is ours");
    let full = loop {
        if let Err(error) = file.write_all(&[0; 4096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
}
