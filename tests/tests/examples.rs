//! The first tool of each language under a real supervisor, and the helpers that they are made with: their
//! own tests, and that what is generated in them is what the .proto files give.

use std::path::{Path, PathBuf};
use std::process::Command;

use talon_proto::host::Outcome;
use talon_tests::{Builder, Scratch, example, repository, skip, target};
use tokio_stream::StreamExt;

/// What a first tool may have of lines, with everything that it owes its host.
const FIRST_TOOL_LINES: usize = 60;

/// Skips by name what was not staged for want of its language's tools.
fn is_missing(test: &str, name: &str) -> bool {
    let missing = !target().join("plugins").join(name).join(".stamp").exists();
    if missing {
        skip(
            test,
            &format!("{name} is not staged: tests/scripts/deps.sh test, then plugins-examples/stage.sh"),
        );
    }
    missing
}

/// Runs a program to its end and gives what it wrote; it has to end well.
fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    said
}

/// A copy of a directory that a test may write to.
fn copied(scratch: &Scratch, from: &Path, name: &str) -> PathBuf {
    let to = scratch.join(name);
    ran(Command::new("cp").arg("-RL").arg(from).arg(&to));
    to
}

/// All files below a directory, by their paths in it.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display())) {
            let path = entry.expect("the directory is read").path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "__pycache__") {
                    open.push(path);
                }
            } else {
                let name = path.strip_prefix(directory).expect("it lies below").to_owned();
                found.push((name, std::fs::read(&path).expect("the file is read")));
            }
        }
    }
    found.sort();
    found
}

/// Compares the committed files with those that a generator makes now; both lists are printed, since a diff
/// of bytes is no help.
fn same_files(committed: &Path, made: &Path, generator: &str) {
    let (committed, made) = (files(committed), files(made));
    let names = |list: &[(PathBuf, Vec<u8>)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&committed), names(&made), "run {generator}");
    assert!(made.len() >= 3, "{made:?}");
    for ((name, old), (_, new)) in committed.iter().zip(&made) {
        assert!(old == new, "{} is stale: run {generator}", name.display());
    }
}

fn sdk(language: &str) -> PathBuf {
    repository().join("plugins-examples").join(language)
}

async fn greets(test: &str, plugin: &str) {
    if is_missing(test, plugin) {
        return;
    }
    let supervisor = Builder::new().linked(&example(plugin), plugin).start().await;
    let client = &supervisor.client;
    let shown = client.show(plugin).await;
    let capabilities = shown.capabilities.expect("it was ready");
    assert_eq!(capabilities.actions.len(), 1, "{capabilities:?}");
    let greet = &capabilities.actions[0];
    assert_eq!((greet.name.as_str(), greet.description.as_str()), ("greet", "Greets somebody by name."));
    assert!(greet.read_only, "{greet:?}");
    assert_eq!(greet.parameters[0].description, "Whom to greet.");

    let answer = client.call(plugin, "greet", &[("name", "Ada")]).await;
    assert_eq!((answer.outcome(), answer.content.as_str()), (Outcome::Ok, "Hello, Ada!"), "{answer:?}");
    let error = client.call(plugin, "greet", &[("name", " ")]).await;
    let said = (error.outcome(), error.error.as_str());
    assert_eq!(said, (Outcome::ToolError, "greet whom? give a name"), "{error:?}");
    for wrong in [&[("name", "Ada"), ("loud", "true")][..], &[]] {
        let refused = client.call(plugin, "greet", wrong).await;
        assert_eq!(refused.outcome(), Outcome::Refused, "{wrong:?}: {refused:?}");
    }
    // This supervisor checks its health like any other: it stays ready, and was not killed.
    let healthy = client.plugin(plugin).await;
    assert_eq!((healthy.state.as_str(), healthy.deaths), ("ready", 0), "{healthy:?}");

    let mut events = client.events(plugin).await;
    client.stop(plugin).await.expect("it stops");
    let exited = loop {
        let event = events.next().await.expect("the events go on").expect("the stream is whole");
        if event.kind == "plugin_exited" {
            break event;
        }
    };
    assert!(exited.message.contains("exit code 0"), "no signal was needed: {exited:?}");
    let stopped = supervisor.stop().await;
    assert_eq!((stopped.processes, stopped.sockets), (vec![], vec![]));
}

// Promises: EX-8
#[tokio::test]
async fn a_first_tool_in_python_answers() {
    greets("a_first_tool_in_python_answers", "hello-py").await;
}

// Promises: EX-8
#[tokio::test]
async fn a_first_tool_in_go_answers() {
    greets("a_first_tool_in_go_answers", "hello-go").await;
}

// Promises: EX-8
#[tokio::test]
async fn a_first_tool_in_node_answers() {
    greets("a_first_tool_in_node_answers", "hello-node").await;
}

/// Answers beyond arguments and state: data, settings, and a cancelled call.
#[tokio::test]
async fn a_plugin_in_python_takes_settings_and_stops_when_nobody_waits() {
    let csv = example("csv-query");
    let supervisor = Builder::new()
        .linked(&csv, "csv-query")
        .plugin("elsewhere", &csv, &["main.py"], "config: {root: /nowhere, wrong: 1}")
        .start()
        .await;
    let client = &supervisor.client;
    let refused = client.plugin("elsewhere").await;
    assert_ne!(refused.state, "ready", "{refused:?}");
    assert!(format!("{refused:?}").contains("unknown settings: wrong"), "{refused:?}");

    let answer = client.call("csv-query", "query", &[("sql", "select 1 as n"), ("limit", "1")]).await;
    assert_eq!(answer.structured_content, r#"[{"n": 1}]"#, "{answer:?}");
    let wrong = client.call("csv-query", "query", &[("sql", "select 1"), ("limit", "201")]).await;
    assert_eq!(wrong.outcome(), Outcome::Refused, "{wrong:?}");
    // It would count for hours. Its thread ends with its deadline, so the process can end in order.
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n";
    let output =
        supervisor.cli(&["call", "csv-query.query", &format!("sql={endless}"), "--timeout", "300ms"]).await;
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let answer = client.call("csv-query", "list_files", &[]).await;
    assert_eq!(answer.outcome(), Outcome::Ok, "{answer:?}");
}

// Promises: EX-8
#[test]
fn a_first_tool_is_short() {
    for main in ["hello/src/main.rs", "python/hello/main.py", "go/hello/main.go", "node/hello/main.js"] {
        let path = repository().join("plugins-examples").join(main);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{main}: {error}"));
        let lines = text.lines().count();
        assert!((5..FIRST_TOOL_LINES).contains(&lines), "{main} has {lines} lines");
    }
}

/// Each example is on the path, and the path leads to no example that is gone.
#[test]
fn the_path_names_every_example() {
    let path = repository().join("plugins-examples");
    let text = std::fs::read_to_string(path.join("README.md")).expect("the path is there");
    for entry in std::fs::read_dir(&path).expect("the examples are there") {
        let name =
            entry.expect("the directory is read").file_name().into_string().expect("our names are text");
        if path.join(&name).is_dir() && name != "misbehave" {
            assert!(text.contains(&format!("({name}")), "{name} is not on the path");
        }
    }
    let links: Vec<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(links.len() > 8, "{links:?}");
    for link in links {
        let link = link.split('#').next().expect("split gives one");
        assert!(path.join(link).exists(), "the path leads to {link}, which is not there");
    }
}

// Promises: EXT-181
#[test]
fn the_helper_for_python_keeps_its_promises() {
    let test = "the_helper_for_python_keeps_its_promises";
    if is_missing(test, "hello-py") {
        return;
    }
    let python = target().join("python/bin/python");
    for directory in [sdk("python").join("tests"), sdk("python").join("hello")] {
        let said = ran(Command::new(&python)
            .args(["-B", "-m", "unittest"])
            .current_dir(directory)
            .env("PYTHONPATH", sdk("python")));
        assert!(said.contains("\nOK"), "{said}");
    }
}

#[test]
fn the_helper_for_python_can_be_installed() {
    let test = "the_helper_for_python_can_be_installed";
    if is_missing(test, "hello-py") {
        return;
    }
    let scratch = Scratch::new();
    let python = target().join("python/bin/python");
    let source = copied(&scratch, &sdk("python"), "source");
    let site = scratch.join("site");
    ran(Command::new(&python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--target",
        ])
        .args([&site, &source]));
    let said = ran(Command::new(&python)
        .args(["-B", "-c", "import talon_plugin.testing; print(talon_plugin.__file__)"])
        .current_dir(scratch.path())
        .env("PYTHONPATH", &site));
    assert!(said.starts_with(&site.display().to_string()), "{said}");
    assert!(site.join("talon_plugin/py.typed").exists());
}

// Promises: EX-9
#[test]
fn what_is_generated_for_python_is_fresh() {
    let test = "what_is_generated_for_python_is_fresh";
    if is_missing(test, "hello-py") {
        return;
    }
    let scratch = Scratch::new();
    let made = scratch.join("generated");
    ran(Command::new(sdk("python").join("generate.sh")).arg(target().join("python/bin/python")).arg(&made));
    same_files(&sdk("python").join("talon_plugin/generated"), &made, "plugins-examples/python/generate.sh");
}

/// The environment that plugins in Go are built in: Debian's libraries and the helper, no modules.
fn go() -> Command {
    let mut command = Command::new("go");
    let gopath = format!("{}:/usr/share/gocode", target().join("go").display());
    let own = [("GO111MODULE", "off"), ("CGO_ENABLED", "0"), ("GOFLAGS", ""), ("GOPATH", &gopath)];
    command.envs(own).env("GOCACHE", target().join("go/cache"));
    command
}

// Promises: EXT-181
#[test]
fn the_helper_for_go_keeps_its_promises() {
    let test = "the_helper_for_go_keeps_its_promises";
    if is_missing(test, "hello-go") {
        return;
    }
    // What was staged is what is committed, but for the work of somebody who forgot to stage.
    let staged = target().join("go/src/talonplugin");
    same_files(&sdk("go").join("talonplugin"), &staged, "plugins-examples/stage.sh");
    ran(go().args(["vet", ".", "talonplugin/..."]).current_dir(sdk("go").join("hello")));
    ran(go().args(["test", "talonplugin/...", "."]).current_dir(sdk("go").join("hello")));
}

// Promises: EX-9
#[test]
fn what_is_generated_for_go_is_fresh() {
    let test = "what_is_generated_for_go_is_fresh";
    if is_missing(test, "hello-go") {
        return;
    }
    let scratch = Scratch::new();
    let made = scratch.join("generated");
    ran(Command::new(sdk("go").join("generate.sh")).arg(&made));
    for package in ["pluginpb", "noticespb", "statepb", "modelpb"] {
        let committed = sdk("go").join("talonplugin").join(package);
        let made = made.join("talonplugin").join(package);
        assert_eq!(files(&made).len(), 2, "{package}");
        for ((name, old), (_, new)) in files(&committed).iter().zip(&files(&made)) {
            assert!(old == new, "{package}/{} is stale: run plugins-examples/go/generate.sh", name.display());
        }
    }
}

// Promises: EXT-181
#[test]
fn the_helper_for_node_keeps_its_promises() {
    let test = "the_helper_for_node_keeps_its_promises";
    if is_missing(test, "hello-node") {
        return;
    }
    let scratch = Scratch::new();
    let place = copied(&scratch, &example("hello-node"), "place");
    ran(Command::new("cp").arg("-R").arg(sdk("node").join("tests")).arg(&place));
    let said = ran(Command::new("/usr/bin/node").args(["--test"]).current_dir(&place));
    assert!(said.contains("# fail 0") && !said.contains("# pass 0"), "{said}");
}

// Promises: EX-9
#[test]
fn what_is_copied_for_node_is_fresh() {
    let scratch = Scratch::new();
    let made = scratch.join("proto");
    ran(Command::new(sdk("node").join("generate.sh")).arg(&made));
    // This one is its own.
    std::fs::copy(sdk("node").join("talon-plugin/proto/details.proto"), made.join("details.proto"))
        .expect("it is there");
    same_files(&sdk("node").join("talon-plugin/proto"), &made, "plugins-examples/node/generate.sh");
}
