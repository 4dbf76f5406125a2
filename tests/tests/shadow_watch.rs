//! The whole shadow loop: the real watcher, a real supervisor and agent, a model's imitation, and the command line.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use talon_tests::agent::FakeAgent;
use talon_tests::ask::with_agent;
use talon_tests::kills;
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Postgres, Scratch, Supervisor, program, skip};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// Only a limit for hangs.
const WAIT: Duration = Duration::from_secs(90);
/// Between two looks at what nobody tells of.
const POLL: Duration = Duration::from_millis(100);

const PROPOSAL: &str = r#"{"observation": "A merge was not finished.", "proposal": "Resolve the conflict.", "confidence": "medium"}"#;
const CONFLICT: &str = "one\n<<<<<<< ours\ntwo\n=======\nthree\n>>>>>>> theirs\nfour\n";

fn reply(question: &Value) -> ScriptedReply {
    let is_ghost = question["messages"].to_string().contains("What was noticed");
    ScriptedReply::Text(if is_ghost { PROPOSAL } else { "It is resolved." }.to_owned())
}

async fn json(supervisor: &Supervisor, args: &[&str]) -> Value {
    let output = supervisor.cli(&[args, &["--output", "json"]].concat()).await;
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A watcher that has looked at everything once: what changes from now on counts.
async fn watcher(supervisor: &Supervisor, scratch: &Scratch) -> Child {
    let mut command = Command::new(program("talon-watch"));
    command.arg("--config").arg(scratch.join("watch.yaml"));
    command.arg("--socket").arg(supervisor.agent_socket());
    command.env("XDG_RUNTIME_DIR", scratch.join("run")).env("HOME", scratch.join("home"));
    command.env_remove("XDG_STATE_HOME").env("PATH", path_with(&scratch.join("bin")));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut watcher = command.spawn().expect("talon-watch starts");
    wait_ready(&mut watcher).await;
    watcher
}

/// The search path with a directory in front.
fn path_with(directory: &Path) -> OsString {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = [directory.to_owned()].into_iter().chain(std::env::split_paths(&others));
    std::env::join_paths(all).expect("no directory has a colon in its name")
}

/// Puts a program in the place of `notify-send`, which writes its arguments to a file, each on a line.
fn stand_in_for_the_desktop(scratch: &Scratch) {
    let (program, shown) = (scratch.join("bin/notify-send"), scratch.join("shown"));
    std::fs::create_dir(scratch.join("bin")).expect("a directory");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> {}\n", shown.display());
    // Another program makes it, so that no thread of ours has it open for writing when it is run.
    let text = scratch.write("notify-send.sh", &script);
    let made = std::process::Command::new("install").args(["-m", "755"]).args([&text, &program]).status();
    assert!(made.expect("install is there").success());
}

/// What the desktop was told: the ids of the ghosts, in their order.
fn shown_on_the_desktop(scratch: &Scratch) -> Vec<String> {
    let text = std::fs::read_to_string(scratch.join("shown")).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("talon shadow show ")).map(str::to_owned).collect()
}

async fn wait_ready(watcher: &mut Child) {
    let mut said = BufReader::new(watcher.stderr.take().expect("a pipe")).lines();
    loop {
        let line =
            timeout(WAIT, said.next_line()).await.expect("it says so").expect("a pipe").expect("a line");
        if line.contains("talon-watch: watches ") {
            return;
        }
    }
}

/// Looks at the ghosts until there are so many.
async fn ghosts(supervisor: &Supervisor, count: usize) -> Vec<Value> {
    let found = async {
        loop {
            let listed = json(supervisor, &["shadow", "list"]).await;
            let ghosts = listed["ghosts"].as_array().expect("a list").clone();
            if ghosts.len() >= count {
                return ghosts;
            }
            sleep(POLL).await;
        }
    };
    let found = timeout(WAIT, found).await;
    found.unwrap_or_else(|_| panic!("no ghost came\n{}", supervisor.log()))
}

// Promises: SHADOW-31, SHADOW-22, SHADOW-40
#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_in_a_saved_file_becomes_a_ghost_and_approving_it_begins_a_turn() {
    let scratch = Scratch::new();
    let code = scratch.join("code");
    for directory in ["code", "run", "home"] {
        std::fs::create_dir(scratch.join(directory)).expect("a directory");
    }
    let watch = format!(
        "shadow:\n  enabled: true\n  watchers: {{ filesystem: {{ paths: [{}] }} }}\n  idle: 1s\n  cooldown: 1\n  desktop_notifications: true\n",
        code.display()
    );
    let _config = scratch.write("watch.yaml", &watch);
    stand_in_for_the_desktop(&scratch);
    let provider = Provider::responding(reply).await;
    let builder = Builder::new()
        .plugin("liar", &program("misbehave"), &[], "")
        .config(&format!("shadow: {{ enabled: true, cooldown: 1, visible: [{}] }}", code.display()));
    let supervisor = with_agent(builder, &provider, "", "").start().await;
    let mut first = watcher(&supervisor, &scratch).await;
    std::fs::write(code.join("main.rs"), CONFLICT).expect("a file");
    let stats = async {
        loop {
            let stats = json(&supervisor, &["shadow", "stats"]).await;
            if stats["triggers"].as_array().is_some_and(|triggers| !triggers.is_empty()) {
                return stats;
            }
            sleep(POLL).await;
        }
    };
    let stats = timeout(WAIT, stats).await.expect("the watcher finds it");
    assert_eq!(stats["triggers"][0]["trigger"], "conflict_markers", "{stats}");
    let found = ghosts(&supervisor, 1).await;
    let id = found.last().expect("one")["id"].as_str().expect("an id").to_owned();
    let why = json(&supervisor, &["shadow", "why", &id]).await;
    assert_eq!(why["source"]["trigger"], "conflict_markers", "{why}");
    let asked =
        provider.questions().iter().map(Value::to_string).find(|text| text.contains("What was noticed"));
    let asked = asked.expect("the model was asked");
    let name = code.to_str().expect("our paths are text");
    assert!(asked.contains("<<<<<<<") && !asked.contains(name) && !asked.contains("main.rs"), "{asked}");
    let told = async {
        while shown_on_the_desktop(&scratch).is_empty() {
            sleep(POLL).await;
        }
    };
    timeout(WAIT, told).await.expect("the desktop is told");
    let text = std::fs::read_to_string(scratch.join("shown")).expect("it was told");
    for part in ["--app-name=Talon", "--\nTalon: conflict_markers: main.rs", "Resolve the conflict."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // A watcher that is killed, and started again, tells of the same finding no second time.
    first.kill().await.expect("it runs");
    let before = json(&supervisor, &["shadow", "list"]).await["ghosts"].as_array().expect("a list").len();
    let _second = watcher(&supervisor, &scratch).await;
    let approved = json(&supervisor, &["shadow", "approve", &id, "--yes"]).await;
    assert_eq!(approved["state"], "approved", "{approved}");
    let session = approved["session_id"].as_str().expect("a session");
    let answered = async {
        loop {
            let shown = json(&supervisor, &["session", "show", session]).await.to_string();
            if shown.contains("It is resolved.") {
                return shown;
            }
            sleep(POLL).await;
        }
    };
    let shown = timeout(WAIT, answered).await.expect("the turn ends");
    assert!(shown.contains("Resolve the conflict."), "{shown}");
    assert_eq!(
        json(&supervisor, &["shadow", "list"]).await["ghosts"].as_array().expect("a list").len(),
        before
    );
    let shown = shown_on_the_desktop(&scratch);
    assert_eq!(shown, BTreeSet::from_iter(shown.clone()).into_iter().collect::<Vec<_>>(), "each ghost once");
    supervisor.stop().await;
}

/// Watcher, agent or both are killed after each save, at moments that a seed chooses: before the save is noticed, while it is sent,
/// while the model is asked, or later.
// Promises: SHADOW-22, SHADOW-41, SHADOW-42
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_no_finding_is_lost_and_no_ghost_is_made_or_shown_twice() {
    let scratch = Scratch::new();
    let code = scratch.join("code");
    for directory in ["code", "run", "home"] {
        std::fs::create_dir(scratch.join(directory)).expect("a directory");
    }
    let watch = format!(
        "shadow:\n  enabled: true\n  watchers: {{ filesystem: {{ paths: [{}] }}, git: {{ enabled: false }} }}\n  idle: 1s\n  \
         desktop_notifications: true\n",
        code.display()
    );
    let _config = scratch.write("watch.yaml", &watch);
    stand_in_for_the_desktop(&scratch);
    let provider = Provider::responding(reply).await;
    let keys = format!(
        "shadow: {{ enabled: true, cooldown: 1, max_ghosts_per_hour: 1000, boundaries_only: false, visible: [{}] }}",
        code.display()
    );
    let supervisor = with_agent(Builder::new().config(&keys), &provider, "", "").start().await;
    let rounds = kills(4);
    let mut seed = std::env::var("TALON_SEED").map_or(0x5eed, |seed| seed.parse::<u64>().expect("a number"));
    eprintln!("TALON_SEED={seed}");
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut running = watcher(&supervisor, &scratch).await;
    for round in 0..rounds {
        let text = CONFLICT.replace("two", &format!("two {round}"));
        std::fs::write(code.join(format!("round{round}.rs")), text).expect("a file");
        // A kill has no event of its own to wait for: any moment is one.
        sleep(Duration::from_millis(random(1500))).await;
        let which = random(3);
        if which != 1 {
            running.kill().await.expect("it runs");
        }
        if which != 0 {
            let before = supervisor.wait_agent("it serves", |now| now.state == "serving").await;
            let pid = Pid::from_raw(before.pid.cast_signed()).expect("a pid is no zero");
            kill_process(pid, Signal::KILL).expect("it runs");
            supervisor.wait_agent("another one", |now| now.state == "serving" && now.pid != before.pid).await;
        }
        if which != 1 {
            running = watcher(&supervisor, &scratch).await;
        }
    }
    // Each event releases one finding that waits.
    let all = async {
        for pokes in 0.. {
            let listed = json(&supervisor, &["shadow", "list", "--limit", "1000"]).await;
            let ghosts = listed["ghosts"].as_array().expect("a list").clone();
            if ghosts.len() >= rounds {
                return ghosts;
            }
            std::fs::write(code.join("poke"), pokes.to_string()).expect("a file");
            sleep(20 * POLL).await;
        }
        unreachable!("it goes on until there are enough")
    };
    let ghosts = timeout(WAIT, all).await;
    let ghosts = ghosts.unwrap_or_else(|_| panic!("a finding was lost\n{}", supervisor.log()));
    let triggers: BTreeSet<&str> = ghosts.iter().filter_map(|ghost| ghost["trigger"].as_str()).collect();
    assert_eq!((triggers.len(), ghosts.len()), (rounds, rounds), "{ghosts:#?}");
    let shown = shown_on_the_desktop(&scratch);
    let once: BTreeSet<&String> = shown.iter().collect();
    assert_eq!(once.len(), shown.len(), "{shown:?}");
    supervisor.stop().await;
}

/// A watcher of the agent's imitation, with a repository below its directory.
async fn watcher_of(agent: &FakeAgent, code: &Path, config: &Path) -> Child {
    let mut command = Command::new(program("talon-watch"));
    command.arg("--config").arg(config).arg("--socket").arg(agent.path());
    command
        .env("XDG_RUNTIME_DIR", agent.path().with_file_name("run"))
        .env("HOME", code.with_file_name("home"));
    command.env_remove("XDG_STATE_HOME");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut watcher = command.spawn().expect("talon-watch starts");
    wait_ready(&mut watcher).await;
    watcher
}

fn git(code: &Path, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command
        .current_dir(code)
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid"])
        .args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    assert!(command.status().expect("git is there").success(), "{arguments:?}");
}

/// A watcher is killed; more files than are looked at, commits with notes, a file with a conflict and a staged secret come before the
/// next one.
// Promises: SHADOW-42, SHADOW-96
#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_no_watcher_runs_is_told_by_the_next_one() {
    let agent = FakeAgent::start();
    let code = agent.path().with_file_name("code");
    std::fs::create_dir(&code).expect("a directory");
    git(&code, &["init", "-q", "-b", "main"]);
    let watch = format!(
        "shadow: {{ enabled: true, watchers: {{ filesystem: {{ paths: [{}] }} }} }}\n",
        code.display()
    );
    let config = agent.file("watch.yaml", &watch);
    let state = code.with_file_name("home").join(".local/state/talon/watch");
    let mut first = watcher_of(&agent, &code, &config).await;
    let written = async {
        while !["looked", "commits"].iter().all(|name| state.join(name).exists()) {
            sleep(POLL).await;
        }
    };
    timeout(WAIT, written).await.expect("it notes that it looked");
    first.kill().await.expect("it runs");
    for number in 0..150 {
        std::fs::write(code.join(format!("old{number}.txt")), "old\n").expect("a file");
    }
    for (name, message) in [("b.rs", "one"), ("d.rs", "two"), ("e.rs", "three")] {
        std::fs::write(code.join(name), format!("// TODO: mend {message}\n")).expect("a file");
        git(&code, &["add", name]);
        git(&code, &["commit", "-q", "-m", message]);
    }
    std::fs::write(code.join("a.rs"), CONFLICT).expect("a file");
    let token = format!("let key = \"ghp_{}\";\n", "a1B2".repeat(9));
    std::fs::write(code.join("c.rs"), token).expect("a file");
    git(&code, &["add", "c.rs"]);
    let _second = watcher_of(&agent, &code, &config).await;
    let wanted = BTreeSet::from(["conflict_markers", "secret_in_commit", "todo_in_commit"]);
    let came = async {
        loop {
            let observed = agent.observed();
            let triggers: BTreeSet<&str> = observed.iter().map(|seen| seen.trigger.as_str()).collect();
            let commits = observed.iter().filter(|seen| seen.trigger == "todo_in_commit");
            let commits: Vec<&str> = commits.map(|seen| seen.subject.as_str()).collect();
            if triggers.is_superset(&wanted) && commits == ["one", "two", "three"] {
                break;
            }
            sleep(POLL).await;
        }
    };
    timeout(WAIT, came).await.expect("all of it comes");
}

/// Two agents with one database in PostgreSQL, both running while the person is forgotten by the first one.
// Promises: SHADOW-24, SHADOW-97
#[tokio::test(flavor = "multi_thread")]
async fn whom_one_agent_forgets_another_one_on_the_same_database_shows_no_more() {
    let test = "whom_one_agent_forgets_another_one_on_the_same_database_shows_no_more";
    let mut server = match Postgres::prepare() {
        Ok(server) => server,
        Err(reason) => return skip(test, reason),
    };
    server.run();
    let scratch = Scratch::new();
    let code = scratch.join("code");
    for directory in ["code", "run", "home", "bin"] {
        std::fs::create_dir(scratch.join(directory)).expect("a directory");
    }
    let watch = format!(
        "shadow:\n  enabled: true\n  watchers: {{ filesystem: {{ paths: [{}] }}, git: {{ enabled: false }} }}\n",
        code.display()
    );
    let _config = scratch.write("watch.yaml", &watch);
    let provider = Provider::responding(reply).await;
    let keys = "shadow: { enabled: true, cooldown: 1, boundaries_only: false }";
    let state = format!("engine: postgres\nurl: {}", server.url());
    let start = async || {
        let builder = Builder::new().state(&state).config(keys);
        let supervisor = with_agent(builder, &provider, "", "").start().await;
        supervisor.wait_agent("it serves", |now| now.state == "serving").await;
        supervisor
    };
    let first = start().await;
    let watching = watcher(&first, &scratch).await;
    std::fs::write(code.join("main.rs"), CONFLICT).expect("a file");
    let made = ghosts(&first, 1).await;
    let sender = made[0]["sender"].as_str().expect("a text").to_owned();
    drop(watching);
    let second = start().await;
    assert_eq!(ghosts(&second, 1).await[0]["id"], made[0]["id"]);
    let forgotten = json(&first, &["forget", &sender]).await;
    assert_eq!(forgotten["ghosts"], 1, "{forgotten}");
    let listed = json(&second, &["shadow", "list"]).await;
    assert_eq!(listed["ghosts"].as_array().map(Vec::len), Some(0), "{listed}");
    let log = json(&second, &["shadow", "log"]).await;
    assert!(!log.to_string().contains(made[0]["id"].as_str().expect("a text")), "{log}");
    let why = second.cli(&["shadow", "why", made[0]["id"].as_str().expect("a text")]).await;
    assert!(!why.status.success(), "{why:?}");
    for supervisor in [first, second] {
        supervisor.stop().await;
    }
}

/// What a plugin tells is an observation of the person that the operator names, and goes the same way.
// Promises: SHADOW-32
#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_plugin_becomes_a_ghost_of_the_person_it_is_for() {
    let name = std::process::Command::new("id").arg("-un").output().expect("id is there");
    let name = String::from_utf8(name.stdout).expect("a name");
    let provider = Provider::responding(reply).await;
    let source = format!("{{ action: mail.tell, for: {}, topics: [build.failed] }}", name.trim());
    let builder = Builder::new()
        .plugin("mail", &program("talon-event-teller"), &["0"], "events: { per_minute: 1000 }")
        .config(&format!(
            "shadow: {{ enabled: true, cooldown: 1, boundaries_only: false, sources: [{source}] }}"
        ));
    let supervisor = with_agent(builder, &provider, "", "").start().await;
    let tell = async |id: &str, topic: &str| {
        let args = [
            ("id", id),
            ("topic", topic),
            ("summary", "The build of main failed"),
            ("details", "error: password=hunter2hunter2"),
        ];
        assert_eq!(supervisor.client.call("mail", "tell", &args).await.content, "told");
    };
    tell("b/1", "build.passed").await;
    tell("b/2", "build.failed").await;
    let found = ghosts(&supervisor, 1).await;
    let [ghost] = &found[..] else { panic!("{found:#?}") };
    assert_eq!(ghost["trigger"], "source_mail: build.failed", "{ghost}");
    let asked =
        provider.questions().iter().map(Value::to_string).find(|text| text.contains("What was noticed"));
    let asked = asked.expect("the model was asked");
    assert!(asked.contains("The build of main failed") && !asked.contains("hunter2"), "{asked}");
    let stats = json(&supervisor, &["shadow", "stats"]).await;
    assert_eq!(stats["triggers"][0]["observations"], 1, "{stats}");
    supervisor.stop().await;
}

/// A file that is saved while the agent does not answer.
// Promises: SHADOW-81
#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_does_not_take_waits_for_it_and_comes_once() {
    let agent = FakeAgent::start();
    let code = agent.path().with_file_name("code");
    std::fs::create_dir(&code).expect("a directory");
    let watch = format!(
        "shadow: {{ enabled: true, watchers: {{ filesystem: {{ paths: [{}] }} }} }}\n",
        code.display()
    );
    let file = agent.file("watch.yaml", &watch);
    let mut command = Command::new(program("talon"));
    command.arg("--socket").arg(agent.socket()).args(["watch", "--file"]).arg(file);
    command.env("XDG_RUNTIME_DIR", agent.path().with_file_name("run")).env("HOME", &code);
    command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut watcher = command.spawn().expect("talon watch starts");
    wait_ready(&mut watcher).await;
    agent.refuse_observations(2);
    for name in ["a.rs", "b.rs"] {
        std::fs::write(code.join(name), CONFLICT).expect("a file");
    }
    let came = async {
        while agent.observed().len() < 2 {
            sleep(POLL).await;
        }
    };
    timeout(WAIT, came).await.expect("they come");
    assert_eq!(agent.refusals_left(), 0, "they were refused first");
    // One that comes later shows that nothing came twice in between.
    std::fs::write(code.join("c.rs"), CONFLICT).expect("a file");
    let came = async {
        while !agent.observed().iter().any(|observation| observation.subject == "c.rs") {
            sleep(POLL).await;
        }
    };
    timeout(WAIT, came).await.expect("it comes");
    let mut subjects: Vec<String> =
        agent.observed().into_iter().map(|observation| observation.subject).collect();
    subjects.sort();
    assert_eq!(subjects, ["a.rs", "b.rs", "c.rs"]);
}
