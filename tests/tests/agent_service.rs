//! The supervisor's side of the agent, with real processes: what it is given, which clients reach it and what
//! it reaches, and that its failures affect nothing else. The agent is `talon-test-agent`, which executes
//! commands.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_tests::test_agent::TestAgent;
use talon_tests::{Builder, Client, Supervisor, http, is_root, program, skip};
use tokio::process::Command;

/// A supervisor with the stand-in for the agent; `more` are further lines below `agent`.
fn with_agent(more: &str) -> Builder {
    with_program(&program("talon-test-agent").display().to_string(), more)
}

/// `SCRATCH` in `more` is the test's directory.
fn with_program(program: &str, more: &str) -> Builder {
    let builder = Builder::new().misbehave(&[], "backoff_initial: 10ms");
    let more = more.replace("SCRATCH", &builder.scratch().path().display().to_string());
    let mut lines = format!("agent:\n  enabled: true\n  program: {program}\n");
    for line in more.lines() {
        lines.push_str(&format!("  {line}\n"));
    }
    builder.config(&lines)
}

async fn serving(supervisor: &Supervisor) -> u32 {
    supervisor.wait_agent("an agent that serves", |agent| agent.state == "serving").await.pid
}

async fn echoes(supervisor: &Supervisor) {
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "here")]).await;
    assert_eq!(answer.content, "here", "{answer:?}\n{}", supervisor.log());
}

/// Rewrites the config and has it read.
async fn reload(supervisor: &Supervisor, from: &str, to: &str) {
    let text = std::fs::read_to_string(supervisor.config()).expect("it was written");
    assert!(text.contains(from), "{text}");
    std::fs::write(supervisor.config(), text.replace(from, to)).expect("it is ours");
    let answer = supervisor.client.reload(false).await;
    assert!(answer.accepted, "{answer:?}");
}

#[tokio::test]
async fn it_is_told_its_settings_and_what_they_name() {
    let supervisor = with_agent("")
        .config("orchestrator:\n  rules: [be brief]\n")
        .config("models:\n  providers:\n    one:\n      kind: openai\n      api_key_env: TALON_TEST_KEY\n")
        .env("TALON_TEST_KEY", "sk-1")
        .start()
        .await;
    serving(&supervisor).await;
    let agent = TestAgent::of(&supervisor).await;
    assert_eq!(agent.run("rules").await, "be brief");
    assert_eq!(agent.run("variable TALON_TEST_KEY").await, "sk-1");
    let status = supervisor.agent_status().await;
    assert_eq!(status.engine, "sqlite");
    assert!(status.place.ends_with("/data/agent/agent.db"), "{}", status.place);
    assert_eq!(status.problems, ["be brief"], "what it complains of is shown");
    assert!(!supervisor.log().contains("sk-1"));
    supervisor.stop().await;
}

// Promises: HOST-17
#[tokio::test]
async fn a_client_comes_with_what_the_kernel_says_of_it() {
    let supervisor = with_agent("").start().await;
    serving(&supervisor).await;
    let (uid, gid) = (nix::unistd::getuid(), nix::unistd::getgid());
    let user = nix::unistd::User::from_uid(uid).expect("there are users");
    let name = user.map_or_else(|| format!("uid:{uid}"), |user| user.name);
    let identity = TestAgent::of(&supervisor).await.run("identity").await;
    assert_eq!(identity, format!("{uid} {gid} {name} admin person"));
    supervisor.stop().await;
}

// Promises: HOST-16
#[tokio::test]
async fn it_calls_plugins_and_operates_nothing() {
    let supervisor = with_agent("").start().await;
    serving(&supervisor).await;
    let agent = TestAgent::of(&supervisor).await;
    assert_eq!(agent.run("you").await, "call model");
    assert_eq!(agent.run("call misbehave echo hello").await, "hello");
    for word in ["restart misbehave", "reload", "shutdown", "describe"] {
        assert_eq!(agent.run(word).await, "PermissionDenied", "{word}");
    }
    echoes(&supervisor).await;
    supervisor.stop().await;
}

// Promises: AGENT-49
#[tokio::test]
async fn it_sees_its_home_its_workspace_and_nothing_else_of_ours() {
    let builder = with_agent("workspace: SCRATCH/workspace");
    builder.scratch().write("workspace/SOUL.md", "be kind");
    let supervisor = builder.start().await;
    serving(&supervisor).await;
    let scratch = supervisor.scratch.path().display();
    let agent = TestAgent::of(&supervisor).await;
    let read = async |path: &str| agent.run(&format!("read {path}")).await;
    let write = async |path: &str| agent.run(&format!("write {path}")).await;
    assert_eq!(read(&format!("{scratch}/workspace/SOUL.md")).await, "be kind");
    assert_ne!(write(&format!("{scratch}/workspace/SOUL.md")).await, "written");
    assert_eq!(write(&format!("{scratch}/data/agent/mine")).await, "written");
    for hidden in ["talon.yaml", "data/identities.json", "data/state/state.db", "run/host.sock"] {
        assert_eq!(read(&format!("{scratch}/{hidden}")).await, "entity not found", "{hidden}");
    }
    // What names are resolved with.
    assert_ne!(read("/etc/hosts").await, "entity not found");
    supervisor.stop().await;
}

// Promises: AGENT-49
#[tokio::test]
async fn one_that_dies_comes_back_and_its_socket_was_there_all_the_time() {
    let supervisor = with_agent("").start().await;
    let first = serving(&supervisor).await;
    let plugin = supervisor.client.plugin("misbehave").await.instances[0].pid;
    let mut events = supervisor.client.events("").await;
    let agent = TestAgent::of(&supervisor).await;
    let died = agent.try_run("die").await;
    assert!(died.is_err(), "{died:?}");
    let told = loop {
        let event = events.message().await.expect("the stream is whole").expect("it goes on");
        if event.kind == "supervisor" && event.message == "agent" {
            break event;
        }
    };
    assert_eq!(told.fields["state"], "backoff", "{told:?}");
    assert!(told.fields["problem"].contains("exit"), "{told:?}");
    supervisor.wait_agent("its end", |agent| agent.pid != first).await;
    // A client that comes meanwhile waits until there is an agent again.
    let agent = TestAgent::of(&supervisor).await;
    assert_eq!(agent.run("configured").await, "1");
    assert_eq!(agent.run("call misbehave echo again").await, "again");
    let second = supervisor.wait_agent("another process", |agent| agent.pid != first && agent.pid != 0).await;
    assert_eq!((second.state.as_str(), second.restarts), ("serving", 1));
    kill(Pid::from_raw(second.pid.cast_signed()), Signal::SIGKILL).expect("it runs");
    supervisor.wait_agent("a third one", |agent| agent.restarts == 2 && agent.state == "serving").await;
    assert_eq!(TestAgent::of(&supervisor).await.run("call misbehave echo thrice").await, "thrice");
    assert_eq!(supervisor.client.plugin("misbehave").await.instances[0].pid, plugin);
    let stopped = supervisor.stop().await;
    assert_eq!((stopped.processes, stopped.sockets), (vec![], vec![]), "{}", stopped.log);
}

// Promises: AGENT-51
#[tokio::test]
async fn a_reload_tells_it_again() {
    let supervisor = with_agent("").config("orchestrator:\n  rules: [be brief]\n").start().await;
    let pid = serving(&supervisor).await;
    let agent = TestAgent::of(&supervisor).await;
    reload(&supervisor, "be brief", "be kind").await;
    supervisor.wait_agent("other complaints", |agent| agent.problems == ["be kind"]).await;
    assert_eq!((agent.run("rules").await, agent.run("configured").await), ("be kind".into(), "2".into()));
    assert_eq!(supervisor.agent_status().await.pid, pid, "it is the same process");
    supervisor.stop().await;
}

// Promises: AGENT-50
#[tokio::test]
async fn one_that_never_comes_up_disturbs_nobody() {
    let supervisor = with_program("/bin/false", "").start().await;
    echoes(&supervisor).await;
    let agent = supervisor.wait_agent("a crash loop", |agent| agent.restarts >= 2).await;
    assert!(agent.problems[0].contains("it ended"), "{agent:?}");
    echoes(&supervisor).await;
    assert_eq!(http::get(&supervisor.admin(), "/readyz").await.status, 200);
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
}

// Promises: AGENT-50
#[tokio::test]
async fn one_that_cannot_be_started_says_why_and_what_to_do() {
    // A home that others may look into is refused, whatever is in it.
    let builder = with_agent("");
    let home = builder.scratch().join("data/agent");
    std::fs::create_dir_all(&home).expect("it is ours");
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    // As root others have to get through to what is theirs.
    let mode = if talon_tests::is_root() { 0o711 } else { 0o700 };
    std::fs::set_permissions(builder.scratch().join("data"), std::fs::Permissions::from_mode(mode))
        .expect("it is ours");
    let supervisor = builder.start().await;
    echoes(&supervisor).await;
    let agent = supervisor.wait_agent("a reason", |agent| agent.state == "failed").await;
    assert!(agent.problems[0].contains("chmod 700"), "{agent:?}");
    // A client that connects learns at once that there is no agent.
    let answer = match TestAgent::connect(&supervisor.agent_socket()).await {
        Ok(agent) => agent.try_run("identity").await.is_err(),
        Err(_) => true,
    };
    assert!(answer);
    let output = supervisor.cli(&["status"]).await;
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("agent") && shown.contains("chmod 700"), "{shown}");
    supervisor.stop().await;
}

// Promises: HOST-19
#[tokio::test]
async fn where_nobody_wants_one_there_is_no_socket() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    assert_eq!(supervisor.agent_status().await.state, "off");
    assert!(!supervisor.agent_socket().exists());
    supervisor.stop().await;
}

// Promises: AGENT-49
#[tokio::test]
async fn one_that_hangs_is_killed_and_started_again() {
    let supervisor =
        with_agent("").tools("health_check_interval: 300ms\nhealth_check_timeout: 200ms").start().await;
    let first = serving(&supervisor).await;
    let agent = TestAgent::of(&supervisor).await;
    let hung = agent.try_run("hang").await;
    assert!(hung.is_err(), "{hung:?}");
    supervisor.wait_agent("another process", |agent| agent.pid != first && agent.state == "serving").await;
    supervisor.stop().await;
}

// Promises: AGENT-49
#[tokio::test]
async fn one_that_says_too_much_is_ended() {
    let supervisor = with_agent("").start().await;
    serving(&supervisor).await;
    let _ = TestAgent::of(&supervisor).await.try_run("chatter").await;
    supervisor.wait_agent("a restart", |agent| agent.restarts > 0 && agent.state == "serving").await;
    supervisor.wait_log("the agent says too much").await;
    echoes(&supervisor).await;
    supervisor.stop().await;
}

// Promises: HOST-16
#[tokio::test]
async fn another_connection_to_the_host_takes_the_place_of_the_one_before() {
    let supervisor = with_agent("").start().await;
    serving(&supervisor).await;
    let agent = TestAgent::of(&supervisor).await;
    assert_eq!(agent.run("hosts").await, "1");
    agent.run("another").await;
    supervisor
        .client
        .wait_until("a second connection", async |_: &Client| agent.run("hosts").await == "2")
        .await;
    assert_eq!(agent.run("call misbehave echo anew").await, "anew");
    supervisor.stop().await;
}

// Promises: HOST-17
#[tokio::test]
async fn who_may_do_nothing_and_who_may_call_but_some_actions_are_not_let_in() {
    if !is_root() {
        return skip(
            "who_may_do_nothing_and_who_may_call_but_some_actions_are_not_let_in",
            "needs other users",
        );
    }
    let peers = "host:\n  peers:\n    - {uid: 54321, role: call}\n    - {uid: 54322, role: call, allow: [misbehave__echo]}";
    let supervisor = with_agent("").config(peers).start().await;
    serving(&supervisor).await;
    // What answers there is no host.
    let caller = as_uid(&supervisor, 54321).await;
    assert!(caller.contains("does not know this request"), "{caller}");
    let before = supervisor.log().matches("agent.sock was closed").count();
    assert_eq!(before, 0);
    for (uid, who) in
        [(54322, "somebody who may call some actions alone"), (54323, "somebody without a role")]
    {
        as_uid(&supervisor, uid).await;
        supervisor.wait_log(&format!("agent.sock was closed to {who}")).await;
    }
    supervisor.stop().await;
}

/// Has another user connect to `agent.sock`; returns the answer.
async fn as_uid(supervisor: &Supervisor, uid: u32) -> String {
    let (socket, uid) = (supervisor.agent_socket(), uid.to_string());
    for (path, mode) in [(supervisor.runtime_dir(), 0o755), (&*socket, 0o666)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    }
    let talon = supervisor.scratch.install(&program("talon"), "bin/talon");
    let output = Command::new("setpriv")
        .args(["--reuid", &uid, "--regid", &uid, "--clear-groups"])
        .arg(talon)
        .arg("--socket")
        .arg(&socket)
        .args(["plugin", "list"])
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .await
        .expect("setpriv is installed");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

// Promises: HOST-18
#[tokio::test]
async fn there_is_room_for_so_many_and_then_for_no_more() {
    let supervisor = with_agent("limits:\n  connections: 64\n  connections_per_user: 48").start().await;
    serving(&supervisor).await;
    let mut agents = Vec::new();
    for _ in 0..48 {
        let agent = TestAgent::of(&supervisor).await;
        agent.run("identity").await;
        agents.push(agent);
    }
    let one_more = TestAgent::connect(&supervisor.agent_socket()).await;
    let refused = match one_more {
        Ok(agent) => agent.try_run("identity").await.is_err(),
        Err(_) => true,
    };
    assert!(refused);
    agents.pop();
    let again = async |_: &Client| match TestAgent::connect(&supervisor.agent_socket()).await {
        Ok(agent) => agent.try_run("identity").await.is_ok(),
        Err(_) => false,
    };
    supervisor.client.wait_until("a place that is free again", again).await;
    supervisor.stop().await;
}

// Promises: AGENT-51
#[tokio::test]
async fn a_takeover_keeps_the_socket_and_starts_the_agent_anew() {
    let old = with_agent("").start().await;
    let first = serving(&old).await;
    let inode = |supervisor: &Supervisor| {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(supervisor.agent_socket()).expect("it is there").ino()
    };
    let before = inode(&old);
    let new = old.start_sibling(&["--takeover"]);
    let (new, _) = old.succeeded_by(new).await;
    assert_ne!(serving(&new).await, first);
    assert_eq!(inode(&new), before, "nobody was refused meanwhile");
    assert_eq!(TestAgent::of(&new).await.run("call misbehave echo hello").await, "hello");
    let stopped = new.stop().await;
    assert_eq!((stopped.processes, stopped.sockets), (vec![], vec![]), "{}", stopped.log);
}

// Promises: AGENT-54
#[tokio::test]
async fn its_numbers_stand_on_the_page_and_no_others() {
    let supervisor = with_agent("").start().await;
    serving(&supervisor).await;
    let page = http::get(&supervisor.admin(), "/metrics").await.body;
    for line in [
        "# TYPE talon_agent_turns_total counter",
        "talon_agent_turns_total{outcome=\"do\\\"ne\\\\n\"} 2",
        "talon_agent_turn_seconds_bucket{le=\"0.5\"} 1",
        "talon_agent_turn_seconds_bucket{le=\"+Inf\"} 3",
        "talon_agent_turn_seconds_sum 4.5",
        "talon_agent_turn_seconds_count 3",
        "talon_agent_up 1",
        "talon_ready 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    assert!(!page.contains("talon_agent_bad"), "{page}");
    supervisor.stop().await;
}
