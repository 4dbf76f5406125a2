//! 42 small real tasks over files, git, web pages, tickets, notes and times, with example plugins and three
//! public MCP servers. The scripted model knows nothing but what its requests show it: it calls a tool only if
//! its name is there, and goes on only with what earlier results have.

mod hidden;
mod list;

use std::path::Path;
use std::process::Command;

use list::{TASKS, Task};
use serde_json::Value;
use talon_tests::ask::{ask, make_readable, with_agent};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, example, skip, target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The values that a task knows: directories, addresses, and what results showed.
struct Values(Vec<(String, String)>);

impl Values {
    fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }
}

/// What the model does next in its task.
fn next(task: &Task, question: &Value, places: &[(String, String)]) -> ScriptedReply {
    let messages = question["messages"].as_array().expect("a request has messages");
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let results: Vec<String> = messages.iter().filter(|it| it["role"] == "tool").map(text).collect();
    let mut values = Values(places.to_vec());
    for (step, result) in task.steps.iter().zip(&results) {
        let (name, after, until) = step.shows;
        let after = values.fill(after);
        let Some((_, rest)) = result.split_once(after.as_str()) else {
            return ScriptedReply::Text(format!("{after:?} was not shown in {result}"));
        };
        let value = rest.split(until).next().unwrap_or_default();
        values.0.push((name.to_owned(), value.to_owned()));
    }
    let Some(step) = task.steps.get(results.len()) else {
        return ScriptedReply::Text(values.fill(task.answer));
    };
    let tools = question["tools"].as_array().cloned().unwrap_or_default();
    let (plugin, action) = step.tool.split_once("__").expect("plugin and action");
    let is_indexed = |text: String| {
        let actions =
            text.lines().find_map(|line| Some(line.split_once(&format!("{plugin}: "))?.1.to_owned()));
        actions.is_some_and(|actions| actions.split(", ").any(|one| one == action))
    };
    let is_shown = tools.iter().any(|tool| tool["function"]["name"] == step.tool)
        || messages.iter().filter(|it| it["role"] == "system").map(text).any(is_indexed);
    if !is_shown {
        return ScriptedReply::Text(format!("{} was not shown", step.tool));
    }
    let arguments = serde_json::from_str(step.arguments).expect("arguments are JSON");
    ScriptedReply::ToolCalls(vec![(step.tool.to_owned(), filled(&arguments, &values))])
}

fn filled(value: &Value, values: &Values) -> Value {
    match value {
        Value::String(text) => match values.fill(text).strip_prefix("number:") {
            Some(number) => number.parse::<u64>().map_or(Value::Null, Value::from),
            None => Value::String(values.fill(text)),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, values)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), filled(value, values))).collect()
        }
        other => other.clone(),
    }
}

/// Files to work on.
fn write_files(root: &Path) {
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().expect("it is below the root")).expect("ours");
        std::fs::write(path, text).expect("ours");
    };
    write("inventory.txt", "bolts: 120\nnuts: 75\nwashers: 300\n");
    write("readme.md", "# Pump\n\nThe pump starts at 06:30.\n");
    write("config.ini", "[server]\nport=8443\nhost=pump.example\n");
    write("todo.md", "- [ ] oil the bearing\n- [x] check the valve\n");
    write("src/lib.rs", "pub fn start() {}\n// TODO: stop the pump\npub fn stop() { start() }\n");
    write("data/people.csv", "name,age\nAda,36\nGrace,45\n");
    let long: String = (1..=400).map(|line| format!("line {line}: value {}\n", line * 17)).collect();
    write("long.txt", &long);
    std::fs::create_dir(root.join("out")).expect("ours");
}

/// A repository with three commits and a change.
fn make_repository(root: &Path) {
    let git = |words: &[&str]| {
        let mut command = Command::new("/usr/bin/git");
        command
            .current_dir(root)
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@pump.example"])
            .args(words);
        let output = command.output().expect("git starts");
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    for (file, text, message) in [
        ("pump.txt", "on\n", "Add the pump"),
        ("valve.txt", "open\n", "Fix the valve"),
        ("bearing.txt", "oiled\n", "Oil the bearing"),
    ] {
        std::fs::write(root.join(file), text).expect("ours");
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", message]);
    }
    git(&["branch", "feature/valve"]);
    std::fs::write(root.join("valve.txt"), "closed\n").expect("ours");
}

/// Two pages, until the task is dropped.
async fn serve_pages() -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let serve = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.is_ok_and(|read| read > 0)
            {
            }
            let page = if head.starts_with(b"GET /manual") {
                "<h1>Manual</h1><p>Grease it every 40 days.</p>"
            } else {
                "<h1>Pump</h1><p>It is rated 11 kW.</p><p><a href=\"/manual\">Manual</a></p>"
            };
            let body = format!("<html><body>{page}</body></html>");
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length:";
            // A client that is gone wants no page.
            let _gone = stream.write_all(format!("{head} {length}\r\n\r\n{body}").as_bytes()).await;
        }
    });
    (url, serve)
}

/// The plugins of the tasks.
fn plugins(builder: Builder, root: &Path, repository: &Path, node: &Path, python: &Path) -> Builder {
    let (root, repository) = (root.display(), repository.display());
    let (node, python) = (node.display(), python.display());
    let below = format!("config: {{ root: {root} }}\nsandbox: {{ fs: {{ read: [{root}] }} }}");
    let writing =
        format!("config: {{ root: {root} }}\nsandbox: {{ fs: {{ read: [{root}], write: [{root}/out] }} }}");
    let filesystem = format!("{node}/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    builder
        .tools("start_timeout: 55s")
        .plugin("files", &example("files"), &[], &writing)
        .plugin("code", &example("code-search"), &[], &below)
        .plugin("notes", &example("notes"), &[], "")
        .plugin("jira", &example("tracker"), &[], "")
        .plugin("web", &example("web-fetch"), &[], "config: { allow_private: true }\nsandbox: { network: full }")
        .plugin(
            "fs",
            Path::new("/usr/bin/node"),
            &[&filesystem, &root.to_string()],
            &format!("dialect: mcp\nsandbox: {{ fs: {{ read: [{node}, {root}] }} }}"),
        )
        .plugin(
            "git",
            Path::new(&format!("{python}/bin/python")),
            &["-m", "mcp_server_git", "--repository", &repository.to_string()],
            &format!(
                "dialect: mcp\nenv: {{ GIT_CONFIG_COUNT: \"1\", GIT_CONFIG_KEY_0: safe.directory, GIT_CONFIG_VALUE_0: {repository} }}\n\
                 sandbox: {{ fs: {{ read: [{repository}], execute: [{python}] }} }}"
            ),
        )
        .plugin(
            "time",
            Path::new(&format!("{python}/bin/python")),
            &["-m", "mcp_server_time", "--local-timezone", "UTC"],
            &format!("dialect: mcp\nsandbox: {{ fs: {{ execute: [{python}] }} }}"),
        )
}

// Promises: AGENT-102
#[tokio::test(flavor = "multi_thread")]
async fn forty_small_tasks_are_done() {
    let test = "forty_small_tasks_are_done";
    let installed = |packages: &str| target().join("mcp").join(packages).canonicalize();
    let (Ok(node), Ok(python)) = (installed("node"), installed("python")) else {
        return skip(
            test,
            "there is no target/mcp/node or python, which `tests/scripts/deps.sh test` installs",
        );
    };
    if ["/usr/bin/node", "/usr/bin/git"].iter().any(|program| !Path::new(program).exists()) {
        return skip(test, "there is no /usr/bin/node or git, which `tests/scripts/deps.sh test` installs");
    }
    let directory = tempfile::Builder::new().prefix("talon-tasks").tempdir().expect("a directory");
    make_readable(directory.path());
    let directory = directory.path().canonicalize().expect("it is there");
    let (root, repository) = (directory.join("files"), directory.join("repository"));
    for place in [&root, &repository] {
        std::fs::create_dir(place).expect("ours");
        make_readable(place);
    }
    write_files(&root);
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(root.join("out"), everybody).expect("ours");
    make_repository(&repository);
    let (url, pages) = serve_pages().await;
    let places: Vec<(String, String)> = [
        ("root", root.display().to_string()),
        ("repository", repository.display().to_string()),
        ("url", url),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let known = places.clone();
    let provider = Provider::responding(move |question| {
        let messages = question["messages"].as_array().expect("a request has messages");
        let asked =
            messages.iter().rev().find(|it| it["role"] == "user").and_then(|it| it["content"].as_str());
        match TASKS.iter().find(|task| Some(task.ask) == asked) {
            Some(task) => next(task, question, &known),
            None => ScriptedReply::Text(format!("{asked:?} was not asked")),
        }
    })
    .await;
    let builder = plugins(Builder::new(), &root, &repository, &node, &python);
    let supervisor = with_agent(builder, &provider, "  confirm: { default: never }", "").start().await;
    let mut failed = Vec::new();
    for task in TASKS {
        let asked = ask(&supervisor, task.ask, &[]).await;
        let file = task.file.map(|(name, _)| std::fs::read_to_string(root.join(name)).unwrap_or_default());
        let is_done = asked.code == Some(0)
            && asked.text("text") == Values(places.clone()).fill(task.expected)
            && file.as_deref() == task.file.map(|(_, text)| text);
        if !is_done {
            failed.push(format!("{}: {} {:?}", task.ask, asked.said, file));
        }
    }
    pages.abort();
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), TASKS.len(), failed.join("\n"));
    assert!(TASKS.len() >= 40);
    assert!(supervisor.stop().await.processes.is_empty());
}
