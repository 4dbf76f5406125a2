//! What lies in the plugin directory: what is taken, what is refused, and that one bad plugin never stops the
//! others.

use std::os::unix::fs::PermissionsExt;

use talon_tests::{Builder, Scratch, example, program};

const SCRIPT: &str = "#!/bin/sh\nexec \"$(dirname \"$0\")/plugin\" \"$@\"\n";

fn chmod(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is our own file");
}

// Promises: DISC-1, DISC-2
#[tokio::test]
async fn files_and_directories_become_plugins() {
    let builder =
        Builder::new().installed(&program("hello"), "hello").installed(&program("misbehave"), "the_liar.bin");
    let scratch = builder.scratch();
    scratch.install(&program("misbehave"), "plugins/wrapped/plugin");
    scratch.script("plugins/wrapped/run.sh", SCRIPT);
    scratch.write(
        "plugins/wrapped/plugin.yaml",
        "command: run.sh\nargs: [--name, wrapped]\nenv: {COLOUR: green}\ntimeout: 700ms\ninstances: 2\n",
    );
    scratch.write("plugins/README.txt", "not a program");
    scratch.write("plugins/.hidden", "nothing");
    let supervisor = builder.start().await;
    let names: Vec<String> = supervisor.client.list().await.into_iter().map(|p| p.name).collect();
    assert_eq!(names, ["hello", "the-liar", "wrapped"]);
    let answer = supervisor.client.call("the-liar", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi", "{answer:?}");
    let wrapped = supervisor.client.plugin("wrapped").await;
    assert_eq!((wrapped.state.as_str(), wrapped.instances.len()), ("ready", 2), "{wrapped:?}");
    let env = supervisor.client.call("wrapped", "env", &[]).await.content;
    assert!(env.contains("COLOUR=green"), "{env}");
    let late = supervisor.client.call("wrapped", "hang", &[]).await;
    assert!(late.error.contains("700ms"), "the manifest's timeout counts: {late:?}");
}

// Promises: DISC-3, DISC-5, DISC-8, DISC-10
#[tokio::test]
async fn what_is_not_safe_is_refused_with_its_reason() {
    let builder = Builder::new().installed(&program("hello"), "hello");
    let scratch = builder.scratch();
    chmod(&scratch.install(&program("hello"), "plugins/writable"), 0o777);
    scratch.install(&program("hello"), "plugins/Bad Name");
    scratch.install(&program("hello"), "plugins/twin_one");
    scratch.install(&program("hello"), "plugins/twin-one");
    scratch.install(&program("hello"), "plugins/pinned/plugin");
    scratch.write("plugins/pinned/plugin.yaml", &format!("command: plugin\nsha256: {}\n", "0".repeat(64)));
    scratch.write("plugins/typo/plugin.yaml", "comand: plugin\n");
    scratch.write("plugins/broken/plugin.yaml", "command: [\n");
    scratch.write("plugins/empty/readme", "no manifest");
    scratch.write("plugins/escapes/plugin.yaml", "command: ../hello\n");
    let supervisor = builder.without_waiting().start().await;
    let status = supervisor.client.status().await;
    let reason = |path: &str| {
        let refused = status.refused.iter().find(|r| r.path.contains(path));
        refused.unwrap_or_else(|| panic!("{path} is not refused: {:#?}", status.refused)).reason.clone()
    };
    assert!(reason("writable").contains("writ"), "{}", reason("writable"));
    assert!(reason("Bad Name").contains("a-z"), "{}", reason("Bad Name"));
    assert!(reason("twin").contains("twin"), "{}", reason("twin"));
    assert!(reason("typo").contains("command"), "the nearest key is named: {}", reason("typo"));
    assert!(reason("broken").contains("plugin.yaml"), "{}", reason("broken"));
    assert!(!reason("escapes").is_empty());
    supervisor.client.wait_state("hello", "ready").await;
    let pinned = status.refused.iter().any(|r| r.path.contains("pinned") && r.reason.contains("sha256"));
    assert!(pinned || supervisor.client.wait_state("pinned", "failed").await.reason.contains("sha256"));
    let answer = supervisor.client.call("hello", "greet", &[("name", "survivor")]).await;
    assert!(answer.content.contains("survivor"));
    let shown = supervisor.cli(&["status"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("Bad Name"), "an operator sees it: {shown}");
}

// Promises: DISC-20
#[tokio::test]
async fn a_refused_entry_is_listed_and_shown_with_its_reason() {
    let builder = Builder::new().plugin("gone", std::path::Path::new("/nowhere/gone"), &[], "");
    let supervisor = builder.without_waiting().start().await;
    for args in [&["plugin", "list"][..], &["plugin", "show", "gone"]] {
        let output = supervisor.cli(args).await;
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        for part in ["gone", "refused", "/nowhere/gone"] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
        let json = supervisor.cli(&[args, &["--output", "json"]].concat()).await;
        let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
        let plugin = json.get(0).unwrap_or(&json["plugin"]);
        assert_eq!((&plugin["name"], &plugin["state"]), (&"gone".into(), &"refused".into()), "{json}");
    }
    let unknown = supervisor.cli(&["plugin", "show", "other"]).await;
    assert_eq!(unknown.status.code(), Some(3), "{unknown:?}");
}

// Promises: LAUNCH-27
#[tokio::test]
async fn what_was_checked_is_what_runs() {
    let keep = Scratch::new();
    let path = keep.install(&program("misbehave"), "plugin");
    let supervisor = Builder::new().plugin("pinned", &path, &[], "backoff_initial: 10ms").start().await;
    let digest = supervisor.client.show("pinned").await.settings.expect("it has settings").sha256;
    assert_eq!(digest.len(), 64, "{digest}");
    let output = std::process::Command::new("sha256sum").arg(&path).output().expect("coreutils are there");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with(&digest));
    // The running one continues when its file is replaced: it was executed by its descriptor.
    std::fs::remove_file(&path).expect("it is our own file");
    let answer = supervisor.client.call("pinned", "echo", &[("text", "on")]).await;
    assert_eq!(answer.content, "on");
}

// Promises: DISC-11
#[tokio::test]
async fn a_script_that_changes_after_its_check_does_not_change_what_runs() {
    let builder = Builder::new();
    let scratch = builder.scratch();
    scratch.install(&program("misbehave"), "plugins/wrapped/plugin");
    let script = scratch.script("plugins/wrapped/run.sh", SCRIPT);
    scratch.write("plugins/wrapped/plugin.yaml", "command: run.sh\nbackoff_initial: 10ms\n");
    let supervisor = builder.start().await;
    let pid = supervisor.client.plugin("wrapped").await.instances[0].pid;
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
    if let Ok(cwd) = cwd {
        assert!(!cwd.starts_with(script.parent().expect("it lies in a directory")), "{}", cwd.display());
    }
    std::fs::write(&script, "#!/bin/sh\nexit 9\n").expect("it is our own file");
    let answer = supervisor.client.call("wrapped", "echo", &[("text", "on")]).await;
    assert_eq!(answer.content, "on");
}

// Promises: DISC-15
#[tokio::test]
async fn a_directory_that_is_not_there_is_said_and_the_rest_serves() {
    let builder = Builder::new().plugin("hello", &program("hello"), &[], "");
    std::fs::remove_dir(builder.scratch().join("plugins")).expect("it is empty");
    let supervisor = builder.start().await;
    assert_eq!(supervisor.client.plugin("hello").await.state, "ready");
    let stopped = supervisor.stop().await;
    assert!(stopped.log.contains("plugins"), "{}", stopped.log);
}

// Promises: EX-6
#[tokio::test]
async fn the_examples_answer() {
    let builder = Builder::new();
    let root = builder.scratch().join("code");
    std::fs::create_dir(&root).expect("the scratch directory takes directories");
    builder.scratch().write("code/main.rs", "fn main() {\n    println!(\"needle\");\n}\n");
    let config =
        format!("config: {{root: {root}}}\nsandbox: {{fs: {{read: [{root}]}}}}", root = root.display());
    let supervisor = builder
        .plugin("code-search", &example("code-search"), &[], &config)
        .linked(&example("csv-query"), "csv-query")
        .start()
        .await;
    let found = supervisor.client.call("code-search", "search", &[("pattern", "needle")]).await;
    assert!(found.content.contains("main.rs"), "{found:?}");
    let outside =
        supervisor.client.call("code-search", "search", &[("pattern", "root"), ("path", "../..")]).await;
    assert!(!outside.error.is_empty(), "{outside:?}");
    let rows =
        supervisor.client.call("csv-query", "query", &[("sql", "select count(*) as n from planets")]).await;
    assert_eq!(rows.structured_content, r#"[{"n": 8}]"#, "{rows:?}");
    let write = supervisor.client.call("csv-query", "query", &[("sql", "attach '/tmp/x.db' as x")]).await;
    assert!(write.error.contains("authorized"), "{write:?}");
    let stopped = supervisor.stop().await;
    assert_eq!(stopped.processes, Vec::<u32>::new());
}
