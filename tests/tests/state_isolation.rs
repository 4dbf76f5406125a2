//! Who gets at which state: a plugin at its own, and at nothing else of it, neither as a socket nor as a file
//! nor as a process. What is tried is tried from inside the jail that plugins have.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_tests::state::{self, OnDisconnect, Writer};
use talon_tests::{Builder, Scratch, Supervisor, alive, is_root, program, repository, skip};

/// Two plugins that tell what they can get at.
fn two() -> Builder {
    let misbehave = program("misbehave");
    Builder::new().plugin("one", &misbehave, &["--name", "one"], "").plugin(
        "other",
        &misbehave,
        &["--name", "other"],
        "",
    )
}

async fn state_of(supervisor: &Supervisor, plugin: &str, pairs: &[(&str, &str)]) -> String {
    let answer = supervisor.client.call(plugin, "state", pairs).await;
    assert!(answer.error.is_empty(), "{plugin} {pairs:?}: {answer:?}");
    answer.content
}

async fn set(supervisor: &Supervisor, plugin: &str, key: &str, value: &str) {
    let done = state_of(supervisor, plugin, &[("op", "set"), ("key", key), ("value", value)]).await;
    assert_eq!(done, "set");
}

async fn get(supervisor: &Supervisor, plugin: &str, key: &str) -> String {
    state_of(supervisor, plugin, &[("op", "get"), ("key", key)]).await
}

/// Nothing that a plugin tried has worked.
async fn nothing_works(supervisor: &Supervisor, action: &str, arguments: (&str, &str)) {
    let answer = supervisor.client.call("one", action, &[arguments]).await;
    let lines: Vec<&str> = answer.content.lines().collect();
    assert!(lines.len() >= 7, "{answer:?}");
    let done: Vec<&&str> = lines.iter().filter(|line| line.ends_with("DONE")).collect();
    assert!(done.is_empty(), "{arguments:?}: {done:?}");
}

async fn ends_clean(supervisor: Supervisor) {
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert_eq!(stopped.processes, Vec::<u32>::new());
}

// Promises: STATE-4
#[tokio::test]
async fn each_plugin_has_keys_of_its_own() {
    let supervisor = two().start().await;
    set(&supervisor, "one", "shared name", "of one").await;
    assert_eq!(get(&supervisor, "other", "shared name").await, "(nothing)");
    set(&supervisor, "other", "shared name", "of the other").await;
    assert_eq!(get(&supervisor, "one", "shared name").await, "of one");
    assert_eq!(get(&supervisor, "other", "shared name").await, "of the other");
    let deleted = state_of(&supervisor, "other", &[("op", "delete"), ("key", "shared name")]).await;
    assert_eq!(deleted, "existed: true");
    assert_eq!(get(&supervisor, "one", "shared name").await, "of one");
    assert_eq!(state_of(&supervisor, "other", &[("op", "keys")]).await, "");
    ends_clean(supervisor).await;
}

// Promises: STATE-4
#[tokio::test]
async fn names_that_look_like_a_way_to_others_are_only_names() {
    let supervisor = two().start().await;
    set(&supervisor, "other", "secret", "hidden").await;
    for key in ["../other/secret", "other/secret", "other:secret", "/secret", "%", "_ecret", "*", "se%"] {
        assert_eq!(get(&supervisor, "one", key).await, "(nothing)", "{key}");
        let keys = state_of(&supervisor, "one", &[("op", "keys"), ("key", key)]).await;
        assert_eq!(keys, "", "{key}");
    }
    ends_clean(supervisor).await;
}

// Promises: STATE-4
#[tokio::test]
async fn instances_of_one_plugin_share_its_keys() {
    let supervisor =
        Builder::new().plugin("one", &program("misbehave"), &["--name", "one"], "instances: 2").start().await;
    let instances = supervisor.client.plugin("one").await.instances;
    assert_eq!(instances.len(), 2);
    assert_eq!(instances[0].uid, instances[1].uid);
    assert_eq!(state::sockets(supervisor.runtime_dir()).len(), 2, "each has a socket of its own");
    set(&supervisor, "one", "k", "v").await;
    // Which instance a call reaches is not ours to say, so one is taken away at a time.
    for instance in instances {
        let pid = instance.pid;
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).expect("it runs");
        supervisor
            .client
            .wait_for("one", "one less", |plugin| {
                plugin.instances.iter().all(|now| now.pid != pid || now.state != "ready")
            })
            .await;
        assert_eq!(get(&supervisor, "one", "k").await, "v");
        supervisor
            .client
            .wait_for("one", "whole again", |plugin| {
                plugin.instances.iter().all(|now| now.state == "ready" && now.pid != pid)
            })
            .await;
    }
    ends_clean(supervisor).await;
}

// Promises: STATE-5
#[tokio::test]
async fn a_jailed_plugin_reaches_no_socket_but_its_own() {
    let test = "a_jailed_plugin_reaches_no_socket_but_its_own";
    if !is_root() {
        return skip(
            test,
            "plugins have uids of their own only under root, and sockets are told apart by these",
        );
    }
    let supervisor = two().start().await;
    set(&supervisor, "one", "k", "mine").await;
    set(&supervisor, "other", "k", "theirs").await;
    let theirs = state::socket_of(&supervisor, "other").await;
    let path = theirs.to_str().expect("our paths are text");
    nothing_works(&supervisor, "attempts_at", ("path", path)).await;
    let answer = supervisor.client.call("one", "state", &[("op", "get"), ("key", "k"), ("path", path)]).await;
    assert!(answer.error.contains("No such file"), "{answer:?}");
    // The directory that it lies in is not there either, nor anything else that is the other's or the
    // supervisor's.
    let directory = theirs.parent().expect("it lies in a directory").to_str().expect("our paths are text");
    nothing_works(&supervisor, "attempts_at", ("path", directory)).await;
    let socket = supervisor.socket().display().to_string();
    nothing_works(&supervisor, "attempts_at", ("path", &socket)).await;
    assert_eq!(get(&supervisor, "one", "k").await, "mine");
    assert_eq!(get(&supervisor, "other", "k").await, "theirs");
    ends_clean(supervisor).await;
}

// Promises: STATE-5
#[tokio::test]
async fn a_jailed_plugin_does_not_get_at_the_database() {
    let supervisor = two().start().await;
    set(&supervisor, "one", "k", "mine").await;
    let database = state::database(&supervisor.scratch);
    assert!(database.is_file());
    let data = supervisor.scratch.join("data");
    for path in [
        database.clone(),
        database.with_extension("db-wal"),
        database.with_extension("db-shm"),
        database.with_extension("db.lock"),
        data.join("state"),
        data.join("identities.json"),
        data,
    ] {
        let path = path.to_str().expect("our paths are text");
        nothing_works(&supervisor, "attempts_at", ("path", path)).await;
    }
    assert!(database.is_file());
    assert_eq!(get(&supervisor, "one", "k").await, "mine");
    ends_clean(supervisor).await;
}

// Promises: STATE-5
#[tokio::test]
async fn a_jailed_plugin_does_not_get_at_the_process_that_keeps_state() {
    let supervisor = two().start().await;
    let service = supervisor.state_service().await;
    for pid in [service.pid, supervisor.pid()] {
        nothing_works(&supervisor, "attempts_on", ("pid", &pid.to_string())).await;
    }
    assert!(alive(service.pid));
    assert_eq!(supervisor.state_service().await, service, "it is the same, and was not started again");
    set(&supervisor, "one", "k", "mine").await;
    ends_clean(supervisor).await;
}

/// What a process of this uid hears at a socket that it can reach.
fn knock(scratch: &Scratch, socket: &Path, uid: u32, gid: u32) -> std::process::Output {
    let copy = scratch.install(&program("talon-state-writer"), "bin/talon-state-writer");
    let mut command = std::process::Command::new(copy);
    command.arg(socket).args(["0", "end"]).stdin(Stdio::null());
    command.uid(uid).gid(gid).output().expect("it starts")
}

// Promises: STATE-6
#[tokio::test]
async fn another_uid_that_reaches_the_socket_is_not_served() {
    let test = "another_uid_that_reaches_the_socket_is_not_served";
    if !is_root() {
        return skip(test, "only root can be another user");
    }
    let supervisor = two().start().await;
    let socket = state::socket_of(&supervisor, "one").await;
    let [own, other] = [
        supervisor.client.plugin("one").await.instances[0].uid,
        supervisor.client.plugin("other").await.instances[0].uid,
    ];
    // As another plugin that left its jail would: the modes of the socket and its directory keep it away.
    let closed = knock(&supervisor.scratch, &socket, other, other);
    let said = String::from_utf8_lossy(&closed.stderr).into_owned();
    assert!(!closed.status.success() && said.contains("Permission denied"), "{said}");
    // One that has the plugin's group gets through them, as root does: it is the uid that is looked at.
    for uid in [other, 0] {
        let refused = knock(&supervisor.scratch, &socket, uid, own);
        let said = String::from_utf8_lossy(&refused.stdout).into_owned();
        assert!(!refused.status.success(), "uid {uid} was served: {said}");
        assert!(!said.contains("checked"), "{said}");
    }
    // The right one is served, so that it is not the knocking that is at fault.
    let mut writer = Writer::start(&supervisor, "one", 0, OnDisconnect::Retry).await;
    writer.found().await;
    assert!(!writer.stop(&mut state::ValueNumbers::new()).await.is_empty());
    ends_clean(supervisor).await;
}

/// A field of `/proc/<pid>/status`.
fn field(pid: u32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
}

// Promises: STATE-7
#[tokio::test]
async fn what_keeps_state_is_jailed_itself() {
    let supervisor = two().start().await;
    let service = supervisor.state_service().await;
    assert_eq!(field(service.pid, "NoNewPrivs"), "1");
    assert_eq!(field(service.pid, "Seccomp"), "2", "a filter");
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(field(service.pid, set).trim_start_matches('0'), "", "{set}");
    }
    let uids: Vec<u32> =
        field(service.pid, "Uid").split_whitespace().map(|uid| uid.parse().expect("a number")).collect();
    assert!(uids.iter().all(|uid| *uid == service.uid), "{uids:?}, {service:?}");
    let database = std::fs::metadata(state::database(&supervisor.scratch)).expect("it is there");
    assert_eq!((database.uid(), database.permissions().mode() & 0o777), (service.uid, 0o600));
    let directory = std::fs::metadata(supervisor.scratch.join("data/state")).expect("it is there");
    assert_eq!((directory.uid(), directory.permissions().mode() & 0o777), (service.uid, 0o700));
    ends_clean(supervisor).await;
}

// Promises: STATE-7
#[tokio::test]
async fn what_keeps_state_sees_nothing_of_the_plugins() {
    let test = "what_keeps_state_sees_nothing_of_the_plugins";
    if !is_root() {
        return skip(test, "only root may look at what another process sees");
    }
    let supervisor = two().start().await;
    let service = supervisor.state_service().await;
    let plugins: Vec<u32> =
        supervisor.client.list().await.iter().flat_map(|plugin| &plugin.instances).map(|i| i.uid).collect();
    assert!(service.uid != 0 && !plugins.contains(&service.uid), "{service:?}, {plugins:?}");
    // Its files as it sees them itself.
    let root = std::path::PathBuf::from(format!("/proc/{}/root", service.pid));
    let seen = |path: &Path| root.join(path.strip_prefix("/").expect("it is absolute")).symlink_metadata();
    for socket in state::sockets(supervisor.runtime_dir()) {
        assert!(socket.exists() && seen(&socket).is_err(), "{}", socket.display());
        let home = socket.parent().expect("it lies in a directory");
        assert!(seen(home).is_err(), "{}", home.display());
    }
    for hidden in [
        supervisor.socket(),
        supervisor.config().to_owned(),
        supervisor.scratch.join("data/identities.json"),
        "/root".into(),
    ] {
        assert!(hidden.exists() && seen(&hidden).is_err(), "{}", hidden.display());
    }
    let database = state::database(&supervisor.scratch);
    assert!(seen(&database).is_ok(), "{}: what it is for", database.display());
    for namespace in ["mnt", "pid", "net", "ipc"] {
        let of =
            |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/{namespace}")).expect("root may read it");
        assert_ne!(of(service.pid), of(supervisor.pid()), "{namespace}");
    }
    ends_clean(supervisor).await;
}

// Promises: STATE-33
#[tokio::test]
async fn neither_owner_opens_the_others_database() {
    let test = "neither_owner_opens_the_others_database";
    if !is_root() {
        return skip(test, "without root one uid owns both");
    }
    let supervisor = two().start().await;
    let foreign = repository().join("supervisor/state/tests/exchange/foreign");
    let [foreign, config] =
        [&foreign, supervisor.config()].map(|path| path.to_str().expect("our paths are text"));
    let imported = supervisor.cli(&["import", "--only", "agent", foreign, "--config", config]).await;
    let databases = ["data/state/state.db", "data/agent/agent.db"].map(|path| supervisor.scratch.join(path));
    let owner = |path: &Path| path.metadata().map(|found| found.uid()).ok();
    let owners = databases.each_ref().map(|path| owner(path));
    let [Some(state), Some(agent)] = owners else { panic!("{owners:?}: {imported:?}") };
    assert!(state != 0 && agent != 0 && state != agent, "{owners:?}");
    let open = |uid: u32, path: &Path| {
        let mut command = std::process::Command::new("cat");
        command.arg(path).uid(uid).gid(uid).output().expect("cat is there")
    };
    for (uid, others) in [(state, &databases[1]), (agent, &databases[0])] {
        for path in [others.as_path(), others.parent().expect("it lies in a directory")] {
            let said = open(uid, path);
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(said.contains("Permission denied"), "uid {uid} at {}: {said}", path.display());
        }
    }
    // Its own it reads, so that it is not the way there that is closed.
    assert!(open(agent, &databases[1]).status.success());
    ends_clean(supervisor).await;
}
