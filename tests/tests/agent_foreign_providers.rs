//! The agent against the APIs of model providers as other people understand them: a server of theirs speaks each
//! format, and each has to bring a turn with a call of a tool to its answer.

use std::process::Stdio;

use talon_tests::ask::ask;
use talon_tests::{Builder, example, repository, target};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Duration, timeout};

/// Of each format a provider, the end of its `base_url`, and a model by which the server knows it.
const FORMATS: [(&str, &str, &str); 5] = [
    ("openai", "/v1", "gpt-4o-mini"),
    ("responses", "/v1", "gpt-5-mini"),
    ("anthropic", "", "claude-haiku-4-5"),
    ("gemini", "", "gemini-2.5-flash"),
    ("ollama", "", "llama3.2"),
];

/// The server. It ends when this is dropped.
struct ForeignProviders {
    _child: Child,
    /// Read no further, and kept open, so that it may go on writing.
    _lines: Lines<BufReader<ChildStdout>>,
    url: String,
}

impl ForeignProviders {
    async fn start() -> Self {
        let script = target().join("providers/node_modules/@copilotkit/aimock/dist/cli.js");
        let mut child = Command::new(target().join("mcp/node22/bin/node"))
            .arg(script)
            .args(["--port", "0", "--strict", "--log-level", "info", "--chunk-size", "3", "--fixtures"])
            .arg(repository().join("tests/providers/fixtures.json"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("tests/scripts/deps.sh test installs it");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let listening = async {
            loop {
                let line = lines.next_line().await.expect("it starts").expect("it says where it listens");
                if let Some((_, url)) = line.split_once("listening on ") {
                    return url.trim().to_owned();
                }
            }
        };
        let url = timeout(Duration::from_secs(60), listening).await.expect("it listens");
        Self { _child: child, _lines: lines, url }
    }
}

// Promises: AGENT-175
#[tokio::test]
async fn each_format_of_a_foreign_server_brings_a_turn_with_a_call_to_its_answer() {
    let foreign = ForeignProviders::start().await;
    let (mut providers, mut catalog) = (String::new(), String::new());
    for (kind, path, model) in FORMATS {
        let url = format!("{}{path}", foreign.url);
        providers.push_str(&format!("    {kind}-there: {{ kind: {kind}, base_url: \"{url}\" }}\n"));
        catalog.push_str(&format!(
            "    {kind}-there/{model}: {{ tier: mid, context_window: 128000, tools: true, free: true }}\n"
        ));
    }
    let config =
        format!("agent: {{ enabled: true }}\nmodels:\n  providers:\n{providers}  catalog:\n{catalog}");
    let supervisor = Builder::new().plugin("hello", &example("hello"), &[], "").config(&config).start().await;
    for (kind, _, model) in FORMATS {
        let pinned = format!("{kind}-there/{model}");
        let greeted = ask(&supervisor, "Greet Ada", &["--model", &pinned]).await;
        assert_eq!(
            (greeted.code, greeted.text("text")),
            (Some(0), "Ada was greeted."),
            "{kind}: {greeted:?}"
        );
        assert_eq!(greeted.said["tool_calls"], 1, "{kind}: {greeted:?}");
        let session = greeted.text("session_id");
        let said = ask(&supervisor, "Say something", &["--session", session, "--model", &pinned]).await;
        assert_eq!(
            (said.code, said.text("text")),
            (Some(0), "Grüße aus Zürich 👩\u{200d}💻🎉!"),
            "{kind}: {said:?}"
        );
    }
    supervisor.stop().await;
}
