//! The door itself: who may come in, what it says, and how it ends.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;

use talon_proto::host::{ExecuteRequest, GetPluginRequest, Outcome, StopRequest};
use talon_tests::{Builder, dial, is_root, program, skip};
use tokio::process::Command;
use tokio_stream::StreamExt;
use tonic::Code;

// Promises: HOST-1
#[tokio::test]
async fn the_socket_is_for_its_owner_and_group() {
    let supervisor = Builder::new().start().await;
    let metadata = std::fs::symlink_metadata(supervisor.socket()).expect("it is there");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o660);
    assert_eq!(metadata.uid(), nix::unistd::geteuid().as_raw());
}

// Promises: BAD-14, CLI-3, HOST-15
#[tokio::test]
async fn a_second_supervisor_is_refused_and_the_first_serves_on() {
    let supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").start().await;
    let second = Builder::new().runtime_dir(supervisor.runtime_dir().to_owned()).start_refused().await;
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(8), "{text}");
    assert!(text.contains(&supervisor.pid().to_string()), "the holder is named: {text}");
    let answer = supervisor.client.call("hello", "greet", &[("name", "first")]).await;
    assert!(answer.content.contains("first"));
}

// Promises: BAD-15
#[tokio::test]
async fn a_runtime_directory_too_long_for_sockets_is_refused_with_the_fix() {
    let builder = Builder::new();
    let long = builder.scratch().join(&"d".repeat(120));
    let refused = builder.runtime_dir(long).start_refused().await;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(text.contains("runtime_dir") && text.contains("long"), "{text}");
}

// Promises: CLI-2, GUARD-33, GUARD-34, HOST-4
#[tokio::test]
async fn what_a_model_may_not_call_it_cannot_call() {
    if !is_root() {
        skip("what_a_model_may_not_call_it_cannot_call", "only root can be several peers");
        return;
    }
    let supervisor = Builder::new()
        .misbehave(&[], "")
        .config("host:\n  peers:\n    - {uid: 54321, role: call, origin: model}\n    - {uid: 54322, role: operate, origin: program}")
        .start()
        .await;
    let person = supervisor.client.call("misbehave", "wipe", &[]).await;
    assert_eq!(person.content, "wiped", "{person:?}");

    // The socket's group is ours; the test opens it so that the peer check alone decides.
    std::fs::set_permissions(supervisor.socket(), std::fs::Permissions::from_mode(0o666))
        .expect("it is our own");
    let model = as_uid(54321, &supervisor.socket(), &["call", "misbehave.wipe", "--output", "json"]).await;
    assert_eq!(model.status.code(), Some(3), "{model:?}");
    assert!(String::from_utf8_lossy(&model.stdout).contains("user_only"), "{model:?}");
    let echo = as_uid(54321, &supervisor.socket(), &["call", "misbehave.echo", "text=hi"]).await;
    assert!(String::from_utf8_lossy(&echo.stdout).contains("hi"), "{echo:?}");

    let stop = as_uid(54321, &supervisor.socket(), &["plugin", "stop", "misbehave"]).await;
    assert_eq!(stop.status.code(), Some(7), "a caller may not operate: {stop:?}");
    assert!(String::from_utf8_lossy(&stop.stderr).contains("operate"), "{stop:?}");
    let operator = as_uid(54322, &supervisor.socket(), &["plugin", "restart", "misbehave"]).await;
    assert!(operator.status.success(), "{operator:?}");
    let stranger = as_uid(54323, &supervisor.socket(), &["call", "misbehave.echo", "text=hi"]).await;
    assert_eq!(stranger.status.code(), Some(7), "{stranger:?}");
}

/// Runs the command line as another user. The program is copied to where that user may read it.
async fn as_uid(uid: u32, socket: &std::path::Path, args: &[&str]) -> std::process::Output {
    let scratch = talon_tests::Scratch::new();
    let talon = scratch.install(&program("talon"), "talon");
    let uid = uid.to_string();
    let mut parents = socket.ancestors().skip(1);
    let runtime = parents.next().expect("it lies in a directory");
    std::fs::set_permissions(runtime, std::fs::Permissions::from_mode(0o755)).expect("it is our own");
    Command::new("setpriv")
        .args(["--reuid", &uid, "--regid", &uid, "--clear-groups"])
        .arg(talon)
        .arg("--socket")
        .arg(socket)
        .args(args)
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .await
        .expect("setpriv is installed")
}

// Promises: RULE-2
#[tokio::test]
async fn the_supervisor_listens_on_no_port() {
    if !is_root() {
        skip(
            "the_supervisor_listens_on_no_port",
            "only root may look at the descriptors of an undumpable process",
        );
        return;
    }
    let supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").start().await;
    let pid = supervisor.pid();
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("it is ours")
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|target| target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned))
        .collect();
    assert!(!sockets.is_empty(), "host.sock at least");
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let inode = line.split_whitespace().nth(9).unwrap_or_default();
            assert!(!sockets.iter().any(|own| own == inode), "{table}: {line}");
        }
    }
}

// Promises: HOST-9
#[tokio::test]
async fn reflection_is_off_and_unknown_methods_are_said_to_be_unknown() {
    let supervisor = Builder::new().start().await;
    let mut grpc = tonic::client::Grpc::new(dial(&supervisor.socket()).await.expect("it answers"));
    for path in [
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        "/talon.host.v1.Host/Forget",
    ] {
        grpc.ready().await.expect("it is connected");
        let codec = tonic_prost::ProstCodec::<GetPluginRequest, GetPluginRequest>::default();
        let request = tonic::Request::new(GetPluginRequest::default());
        let status =
            grpc.unary(request, path.parse().expect("a path"), codec).await.expect_err("nobody serves it");
        assert_eq!(status.code(), Code::Unimplemented, "{path}: {status}");
    }
}

// Promises: HOST-8
#[tokio::test]
async fn bad_requests_are_errors_and_not_calls() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let request = |id: &str| ExecuteRequest {
        plugin: "misbehave".into(),
        action: "echo".into(),
        call_id: id.into(),
        ..ExecuteRequest::default()
    };
    for id in ["with space", "line\nbreak", &"x".repeat(129), "ümlaut"] {
        let status = supervisor.client.execute(request(id)).await.expect_err("such an id is refused");
        assert_eq!(status.code(), Code::InvalidArgument, "{id:?}: {status}");
    }
    let answer = supervisor.client.execute(request("my-own.id:1")).await.expect("such an id is fine");
    assert_eq!(answer.call_id, "my-own.id:1");
    let mut raw = supervisor.client.clone();
    let status =
        raw.raw().stop(StopRequest { name: "nobody".into() }).await.expect_err("there is no such plugin");
    assert_eq!(status.code(), Code::NotFound, "{status}");
}

// Promises: HOST-11
#[tokio::test]
async fn events_tell_what_happens_and_count_up() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let mut events = supervisor.client.events("").await;
    supervisor.client.call("misbehave", "echo", &[("text", "[tool_call]")]).await;
    supervisor.client.stop("misbehave").await.expect("an operator may");
    let mut kinds = Vec::new();
    let mut last = 0;
    while !kinds.contains(&"state_changed".to_owned()) || !kinds.contains(&"call_finished".to_owned()) {
        let event = events.next().await.expect("the events go on").expect("the stream is whole");
        assert!(event.sequence > last, "{event:?}");
        last = event.sequence;
        // The supervisor's own word that all is up may come late; it names no plugin.
        let whose = if event.kind == "supervisor" { "" } else { "misbehave" };
        assert_eq!(event.plugin, whose, "{event:?}");
        kinds.push(event.kind);
    }
}

// Promises: DISC-7, REG-6
#[tokio::test]
async fn two_plugins_never_answer_to_one_name() {
    // One program under two configured names, as with two accounts of one service: each answers to its own
    // name and sees the declared one on the wire. A second plugin of one configured name is refused.
    let supervisor = Builder::new()
        .plugin("one", &program("misbehave"), &["--name", "same"], "")
        .plugin("two", &program("misbehave"), &["--name", "same"], "")
        .installed(&program("misbehave"), "two")
        .start()
        .await;
    let listed = supervisor.client.list().await;
    let names: Vec<&str> = listed.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(listed.iter().all(|p| p.state == "ready" && p.declared_name == "same"), "{listed:#?}");
    let refused = supervisor.client.status().await.refused;
    assert!(refused.iter().any(|r| r.name == "two" && r.reason.contains("two")), "{refused:#?}");
    let unknown = supervisor.client.call("same", "echo", &[]).await;
    assert_eq!(unknown.reason, "unknown_plugin", "nobody answers to a declared name: {unknown:?}");
}

// Promises: WIRE-6
#[tokio::test]
async fn capabilities_are_guarded_text() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let shown = supervisor.client.show("misbehave").await;
    let capabilities = shown.capabilities.expect("it has capabilities");
    assert!(!capabilities.description.contains("[tool_call]"), "{}", capabilities.description);
    assert!(capabilities.description.contains("Tells every lie"));
}

// Promises: GUARD-47
#[tokio::test]
async fn many_calls_at_once_get_their_own_answers() {
    let supervisor =
        Builder::new().misbehave(&[], "concurrency: 64\nqueue: 1000\ninstances: 2").start().await;
    let calls: Vec<_> = (0..500)
        .map(|i| {
            let client = supervisor.client.clone();
            tokio::spawn(async move {
                let text = format!("call {i}");
                (client.call("misbehave", "echo", &[("text", &text)]).await, text)
            })
        })
        .collect();
    for call in calls {
        let (answer, text) = call.await.expect("the task ends");
        assert_eq!((answer.outcome(), answer.content), (Outcome::Ok, text));
    }
}
