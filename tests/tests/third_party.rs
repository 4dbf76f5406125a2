//! MCP servers that other people wrote, unchanged, as guarded and jailed plugins that answer real calls.
//!
//! Their entries in the config file are those of `docs/mcp-servers.md`, word for word, with other directories
//! put in: what that page tells people works, or a test here fails. `tests/scripts/deps.sh test` installs the
//! servers at exact versions; without one of them its tests are skipped by name.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use talon_proto::host::execute_update::Kind;
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome, Progress};
use talon_tests::{Builder, Scratch, Supervisor, args, descendants, is_root, repository, skip, target};
use tokio_stream::StreamExt;

const NODE: &str = "/usr/bin/node";
const GIT: &str = "/usr/bin/git";

/// What each server is installed from, and what it leans on besides.
const SERVERS: [(&str, &str, &[&str]); 6] = [
    ("everything", "node", &[NODE]),
    ("filesystem", "node", &[NODE]),
    ("memory", "node", &[NODE]),
    ("sequential-thinking", "node", &[NODE]),
    ("git", "python", &[GIT]),
    ("time", "python", &[]),
];

/// Where packages of a kind are. A grant is a path without links, and `target` may be one.
fn installed(packages: &str) -> Option<PathBuf> {
    target().join("mcp").join(packages).canonicalize().ok()
}

/// As long as the harness waits at most: an interpreter that imports a hundred modules takes its time on a
/// machine that runs other tests beside it, at a lower priority than theirs.
fn builder() -> Builder {
    Builder::new().tools("start_timeout: 55s")
}

/// Whether a server cannot be run here, which is then said by the name of what is missing.
fn is_missing(test: &str, server: &str) -> bool {
    let (_, packages, programs) =
        SERVERS.iter().find(|(name, ..)| *name == server).expect("it is in the table");
    let lacks = match installed(packages) {
        None => Some(format!("target/mcp/{packages}")),
        Some(_) => programs.iter().find(|path| !Path::new(path).exists()).map(|path| (*path).to_owned()),
    };
    if let Some(lacks) = &lacks {
        skip(test, &format!("there is no {lacks}, which `tests/scripts/deps.sh test` installs"));
    }
    lacks.is_some()
}

/// The page's entry for a server, as lines below `plugins.tools`, with the directories of this machine.
/// `granted` stands for the page's `/srv/notes`, `/srv/memory` and `/srv/repository`.
fn documented(server: &str, granted: &Path) -> String {
    let page = std::fs::read_to_string(repository().join("docs/mcp-servers.md")).expect("the page is there");
    let section = page.split("\n## ").find(|section| section.lines().next() == Some(server));
    let section = section.unwrap_or_else(|| panic!("the page has no section {server}"));
    let block = section.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.unwrap_or_else(|| panic!("the section {server} has no entry"));
    let lines =
        block.strip_prefix("plugins:\n  tools:\n").expect("it begins at the top of a config file").lines();
    let text: String = lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    let granted_at = ["/srv/notes", "/srv/memory", "/srv/repository"];
    let mut places: Vec<_> = granted_at.iter().map(|place| (*place, granted.to_owned())).collect();
    for (documented, packages) in [("/opt/mcp/node", "node"), ("/opt/mcp/python", "python")] {
        places.extend(installed(packages).map(|path| (documented, path)));
    }
    places.iter().fold(text, |text, (from, to)| text.replace(from, &to.display().to_string()))
}

/// A supervisor with that one server, ready, whose jail was looked at.
async fn serving(server: &str, builder: Builder, granted: &Path) -> Supervisor {
    let supervisor = builder.tools(&documented(server, granted)).start().await;
    is_jailed(&supervisor, server).await;
    supervisor
}

/// The server is ready, under the default profile, without a network, and under a separate uid.
async fn is_jailed(supervisor: &Supervisor, server: &str) {
    let shown = supervisor.client.show(server).await;
    let (plugin, settings) = (shown.plugin.expect("it is there"), shown.settings.expect("it has some"));
    assert_eq!(plugin.state, "ready", "{}\n{}", plugin.reason, supervisor.log());
    let jail = [&settings.sandbox_mode, &settings.sandbox_profile, &settings.sandbox_network];
    assert_eq!(jail, ["enforce", "strict", "none"]);
    // What this machine lacks altogether has a stand-in; with `enforce` nothing may be missing.
    let missing: Vec<_> = plugin.not_enforced.iter().filter(|line| !line.contains("stand-in")).collect();
    assert!(missing.is_empty(), "{missing:?}");

    let instance = &plugin.instances[0];
    let family = descendants(instance.pid);
    assert!(!family.is_empty(), "the server is a child of the bridge: {instance:?}");
    for pid in family {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim();
        // It may have ended meanwhile, as a child of git's does.
        if status.is_empty() || field("State:").starts_with('Z') {
            continue;
        }
        if is_root() {
            assert!(instance.uid >= 65_600, "{instance:?}");
            let uids: Vec<&str> = field("Uid:").split_whitespace().collect();
            assert_eq!(uids, vec![instance.uid.to_string(); 4], "{status}");
        }
        // Filtered, without a way to more, and without a capability.
        assert_eq!((field("Seccomp:"), field("NoNewPrivs:")), ("2", "1"), "{status}");
        assert_eq!(
            (field("CapEff:"), field("CapBnd:")),
            ("0000000000000000", "0000000000000000"),
            "{status}"
        );
    }
}

/// The answer, which must be one.
async fn answered(
    supervisor: &Supervisor,
    plugin: &str,
    action: &str,
    pairs: &[(&str, &str)],
) -> ExecuteResponse {
    let answer = supervisor.client.call(plugin, action, pairs).await;
    assert_eq!(answer.outcome(), Outcome::Ok, "{plugin}.{action}: {answer:?}");
    assert!(answer.block.starts_with("[plugin_output]\n"), "{}", answer.block);
    answer
}

/// The text of the tool's own refusal.
async fn refused(supervisor: &Supervisor, plugin: &str, action: &str, pairs: &[(&str, &str)]) -> String {
    let answer = supervisor.client.call(plugin, action, pairs).await;
    assert_eq!(answer.outcome(), Outcome::ToolError, "{plugin}.{action}: {answer:?}");
    answer.error
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

// Promises: MCP-2
#[tokio::test]
async fn everything_answers_each_kind_of_call() {
    if is_missing("everything_answers_each_kind_of_call", "everything") {
        return;
    }
    let builder = builder().env("SECRET_OF_THE_HOST", "sesame");
    let nothing = builder.scratch().path().to_owned();
    let supervisor = serving("everything", builder, &nothing).await;
    let call =
        async |action: &str, pairs: &[(&str, &str)]| answered(&supervisor, "everything", action, pairs).await;

    assert_eq!(call("echo", &[("message", "Grüße, ⭐")]).await.content, "Echo: Grüße, ⭐");
    // Numbers that travel as text are numbers there.
    assert!(call("get-sum", &[("a", "2"), ("b", "3.5")]).await.content.contains("5.5"));

    let answer = call("get-structured-content", &[("location", "Chicago")]).await;
    let weather = json(&answer.structured_content);
    assert!(weather["temperature"].is_number() && weather["humidity"].is_number(), "{answer:?}");

    // An image is described, and is not in the text of an answer that a model pays for.
    let answer = call("get-tiny-image", &[]).await;
    assert!(answer.content.contains("image/png"), "{answer:?}");
    assert!(!answer.content.contains("iVBORw0KGgo") && answer.content.len() < 2_000, "{answer:?}");

    let pairs = [("messageType", "error"), ("includeImage", "true")];
    let answer = call("get-annotated-message", &pairs).await;
    assert!(answer.content.contains("Operation failed"), "{answer:?}");
    assert!(answer.content.contains("image/png"), "{answer:?}");

    let answer = call("get-resource-links", &[("count", "2")]).await;
    assert!(answer.content.contains("demo://resource/dynamic/"), "{answer:?}");
    let pairs = [("resourceType", "Text"), ("resourceId", "1")];
    let answer = call("get-resource-reference", &pairs).await;
    assert!(answer.content.contains("demo://resource/dynamic/text/1"), "{answer:?}");

    // It sees what plugins see of our environment.
    let environment = call("get-env", &[]).await.content;
    assert!(environment.contains("PATH"), "{environment}");
    assert!(!environment.contains("SECRET_OF_THE_HOST") && !environment.contains("sesame"), "{environment}");

    // What it does not take is refused before it is asked, by its own schema.
    let pairs = [("messageType", "whisper")];
    let answer = supervisor.client.call("everything", "get-annotated-message", &pairs).await;
    assert_eq!((answer.outcome(), answer.reason.as_str()), (Outcome::Refused, "bad_arguments"), "{answer:?}");
}

#[tokio::test]
async fn everything_tells_how_far_a_long_call_is() {
    if is_missing("everything_tells_how_far_a_long_call_is", "everything") {
        return;
    }
    let builder = builder();
    let nothing = builder.scratch().path().to_owned();
    let supervisor = serving("everything", builder, &nothing).await;
    let mut client = supervisor.client.clone();
    let request = ExecuteRequest {
        plugin: "everything".to_owned(),
        action: "trigger-long-running-operation".to_owned(),
        args: args(&[("duration", "2"), ("steps", "4")]),
        ..ExecuteRequest::default()
    };
    let mut updates = client.raw().execute_streaming(request).await.expect("it streams").into_inner();
    let (mut told, mut done) = (Vec::<Progress>::new(), None);
    while let Some(update) = updates.next().await {
        match update.expect("the stream is whole").kind.expect("an update is one of these") {
            Kind::Progress(progress) => told.push(progress),
            Kind::Output(_) => {}
            Kind::Done(answer) => done = Some(answer),
        }
    }
    let answer = done.expect("it ends with the answer");
    assert_eq!(answer.outcome(), Outcome::Ok, "{answer:?}");
    assert!(answer.content.contains("completed"), "{answer:?}");
    assert!(told.iter().all(|progress| progress.total == Some(4.0)), "{told:?}");
    let grows = told.windows(2).all(|pair| pair[0].progress < pair[1].progress);
    assert!(!told.is_empty() && grows, "{told:?}");
}

// Promises: MCP-2
#[tokio::test]
async fn filesystem_reads_the_granted_directory_and_the_jail_refuses_the_rest() {
    let test = "filesystem_reads_the_granted_directory_and_the_jail_refuses_the_rest";
    if is_missing(test, "filesystem") {
        return;
    }
    let builder = builder();
    builder.scratch().write("notes/today.txt", "Water the plants.\n");
    let beside = builder.scratch().write("beside/secret.txt", "the key is under the mat");
    let notes = builder.scratch().join("notes");
    let supervisor = serving("filesystem", builder, &notes).await;
    let path = |path: &Path| path.to_str().expect("our paths are text").to_owned();

    let listed = answered(&supervisor, "filesystem", "list_directory", &[("path", &path(&notes))]).await;
    assert!(listed.content.contains("today.txt"), "{listed:?}");
    let today = path(&notes.join("today.txt"));
    let read = answered(&supervisor, "filesystem", "read_text_file", &[("path", &today)]).await;
    assert!(read.content.contains("Water the plants."), "{read:?}");

    // The server itself is configured to allow everything.
    let allowed = answered(&supervisor, "filesystem", "list_allowed_directories", &[]).await;
    assert!(allowed.content.ends_with("\n/"), "{allowed:?}");
    for outside in [path(&beside), "/etc/shadow".to_owned(), path(supervisor.config())] {
        let error = refused(&supervisor, "filesystem", "read_text_file", &[("path", &outside)]).await;
        assert!(error.contains("ENOENT") || error.contains("EACCES"), "{outside}: {error}");
    }
    let new = path(&notes.join("new.txt"));
    let pairs = [("path", new.as_str()), ("content", "mine")];
    let error = refused(&supervisor, "filesystem", "write_file", &pairs).await;
    assert!(error.contains("EROFS"), "{error}");
    assert!(!notes.join("new.txt").exists());
}

#[tokio::test]
async fn filesystem_writes_where_it_was_granted_to() {
    let test = "filesystem_writes_where_it_was_granted_to";
    if is_missing(test, "filesystem") {
        return;
    }
    let builder = builder();
    let notes = builder.scratch().join("notes");
    std::fs::create_dir(&notes).expect("the scratch directory takes directories");
    // The plugin's uid is not assigned yet.
    std::fs::set_permissions(&notes, std::fs::Permissions::from_mode(0o777)).expect("it is our own");
    // The page's entry, with the grant to write in place of the one to read.
    let path = notes.display();
    let (read, write) = (format!(", {path}]"), format!("]\n        write: [{path}]"));
    let entry = documented("filesystem", &notes);
    assert_eq!(entry.matches(&read).count(), 1, "{entry}");
    let entry = entry.replace(&read, &write);
    let supervisor = builder.tools(&entry).start().await;
    is_jailed(&supervisor, "filesystem").await;
    let new = notes.join("new.txt").display().to_string();
    answered(&supervisor, "filesystem", "write_file", &[("path", &new), ("content", "mine")]).await;
    assert_eq!(std::fs::read_to_string(&new).expect("it was written"), "mine");
}

// Promises: MCP-2
#[tokio::test]
async fn memory_keeps_what_it_is_given_in_the_granted_directory() {
    if is_missing("memory_keeps_what_it_is_given_in_the_granted_directory", "memory") {
        return;
    }
    let builder = builder();
    let directory = builder.scratch().join("memory");
    std::fs::create_dir(&directory).expect("the scratch directory takes directories");
    // The plugin's uid is not assigned yet.
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).expect("it is our own");
    let supervisor = serving("memory", builder, &directory).await;
    let entities = r#"[{"name":"monstera","entityType":"plant","observations":["thirsty"]}]"#;
    answered(&supervisor, "memory", "create_entities", &[("entities", entities)]).await;
    let found = answered(&supervisor, "memory", "search_nodes", &[("query", "thirsty")]).await;
    assert!(found.content.contains("monstera"), "{found:?}");
    let kept = std::fs::read_to_string(directory.join("memory.jsonl")).expect("it was written");
    assert!(kept.contains("monstera"), "{kept}");
}

// Promises: MCP-2
#[tokio::test]
async fn sequential_thinking_takes_numbers_and_truth_values() {
    let test = "sequential_thinking_takes_numbers_and_truth_values";
    if is_missing(test, "sequential-thinking") {
        return;
    }
    let builder = builder();
    let nothing = builder.scratch().path().to_owned();
    let supervisor = serving("sequential-thinking", builder, &nothing).await;
    let pairs = [
        ("thought", "Water them."),
        ("nextThoughtNeeded", "true"),
        ("thoughtNumber", "1"),
        ("totalThoughts", "2"),
    ];
    let answer = answered(&supervisor, "sequential-thinking", "sequentialthinking", &pairs).await;
    let structured = json(&answer.structured_content);
    assert_eq!((&structured["thoughtNumber"], &structured["nextThoughtNeeded"]), (&1.into(), &true.into()));
}

/// A repository with one commit and one new file. Nothing of the machine's or the user's settings for git is
/// wanted.
fn make_repository(scratch: &Scratch) -> PathBuf {
    let directory = scratch.join("repository");
    scratch.write("repository/README", "A repository.\n");
    let git = |arguments: &[&str]| {
        let mut command = Command::new(GIT);
        command
            .env_clear()
            .env("HOME", "/nonexistent")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(&directory);
        for (name, value) in [("NAME", "Ada"), ("EMAIL", "ada@example.org")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        let output = command.args(arguments).output().expect("git starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "README"]);
    git(&["commit", "--quiet", "--message", "Begin with a page"]);
    scratch.write("repository/notes.txt", "Not committed.\n");
    directory
}

// Promises: MCP-2
#[tokio::test]
async fn git_tells_status_and_history_of_the_granted_repository() {
    if is_missing("git_tells_status_and_history_of_the_granted_repository", "git") {
        return;
    }
    let builder = builder();
    let directory = make_repository(builder.scratch());
    let supervisor = serving("git", builder, &directory).await;
    let path = directory.to_str().expect("our paths are text");

    let status = answered(&supervisor, "git", "git_status", &[("repo_path", path)]).await;
    assert!(status.content.contains("On branch main") && status.content.contains("notes.txt"), "{status:?}");
    let pairs = [("repo_path", path), ("max_count", "5")];
    let log = answered(&supervisor, "git", "git_log", &pairs).await;
    assert!(log.content.contains("Begin with a page") && log.content.contains("Ada"), "{log:?}");

    // Read-only is what the grant says, and a list travels as JSON text.
    let pairs = [("repo_path", path), ("files", r#"["notes.txt"]"#)];
    let error = refused(&supervisor, "git", "git_add", &pairs).await;
    assert!(error.contains("Read-only file system"), "{error}");
    // Another repository is none, to a server that sees this one alone.
    let elsewhere = repository().to_str().expect("our paths are text");
    refused(&supervisor, "git", "git_log", &[("repo_path", elsewhere)]).await;
}

// Promises: MCP-2
#[tokio::test]
async fn time_converts_between_zones() {
    if is_missing("time_converts_between_zones", "time") {
        return;
    }
    let builder = builder();
    let nothing = builder.scratch().path().to_owned();
    let supervisor = serving("time", builder, &nothing).await;
    // Kathmandu's offset has three quarters of an hour, and never another: no rule of thumb gets it right.
    let pairs = [("source_timezone", "Asia/Kathmandu"), ("time", "12:00"), ("target_timezone", "Asia/Tokyo")];
    let answer = answered(&supervisor, "time", "convert_time", &pairs).await;
    assert!(answer.content.contains("15:15:00+09:00"), "{answer:?}");
    assert_eq!(json(&answer.structured_content)["time_difference"], "+3.25h", "{answer:?}");
    let answer = answered(&supervisor, "time", "get_current_time", &[("timezone", "Europe/Warsaw")]).await;
    assert_eq!(json(&answer.structured_content)["timezone"], "Europe/Warsaw", "{answer:?}");
    let error = refused(&supervisor, "time", "get_current_time", &[("timezone", "Middle/Earth")]).await;
    assert!(error.contains("Middle/Earth"), "{error}");
}

/// Tool names that two servers share are two actions, since an action is a plugin's.
// Promises: MCP-1
#[tokio::test]
async fn all_serve_side_by_side() {
    let test = "all_serve_side_by_side";
    if SERVERS.iter().any(|(server, ..)| is_missing(test, server)) {
        return;
    }
    let builder = builder();
    let directory = make_repository(builder.scratch());
    let entries: String =
        SERVERS.iter().map(|(server, ..)| documented(server, &directory).replace("plugins:\n", "")).collect();
    let supervisor = builder.tools(&format!("plugins:\n{entries}")).start().await;
    let mut uids = Vec::new();
    for (server, ..) in SERVERS {
        is_jailed(&supervisor, server).await;
        uids.push(supervisor.client.plugin(server).await.instances[0].uid);
    }
    uids.sort_unstable();
    uids.dedup();
    assert_eq!(uids.len(), if is_root() { SERVERS.len() } else { 1 }, "{uids:?}");

    let path = directory.to_str().expect("our paths are text");
    let (in_directory, in_repository) = ([("path", path)], [("repo_path", path)]);
    let (listed, status) = tokio::join!(
        answered(&supervisor, "filesystem", "list_directory", &in_directory),
        answered(&supervisor, "git", "git_status", &in_repository),
    );
    assert!(listed.content.contains("README") && status.content.contains("On branch main"));
    // The description that models see is the server's text, and which tools are read-only is kept.
    let shown = supervisor.client.show("filesystem").await.capabilities.expect("it has some");
    let action =
        |name: &str| shown.actions.iter().find(|a| a.name == name).unwrap_or_else(|| panic!("no {name}"));
    assert!(action("read_text_file").read_only && !action("write_file").read_only);
    assert_eq!(action("write_file").destructive, Some(true));
    assert!(supervisor.stop().await.processes.is_empty());
}
