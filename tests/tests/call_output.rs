//! What running calls put out: it reaches those who follow the call, sanitized and bounded, and no prompt.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use talon_proto::host::execute_update::Kind;
use talon_proto::host::{CallOutput, ExecuteRequest, ExecuteUpdate};
use talon_tests::{Builder, Client, Supervisor, args, example, program};
use tokio::io::AsyncBufReadExt as _;
use tokio::process::Command;
use tonic::Streaming;

/// A bound on hanging, not an expectation of speed.
const PATIENCE: Duration = Duration::from_secs(60);

async fn noticer() -> Supervisor {
    let supervisor = Builder::new().plugin("one", &program("talon-noticer"), &[], "").start().await;
    supervisor.client.wait_log("one", "somebody listens").await;
    supervisor
}

async fn follow(
    client: &Client,
    plugin: &str,
    action: &str,
    pairs: &[(&str, &str)],
) -> Streaming<ExecuteUpdate> {
    let request = ExecuteRequest {
        plugin: plugin.to_owned(),
        action: action.to_owned(),
        args: args(pairs),
        ..ExecuteRequest::default()
    };
    client.clone().raw().execute_streaming(request).await.expect("it begins").into_inner()
}

async fn next(updates: &mut Streaming<ExecuteUpdate>) -> Kind {
    let update = tokio::time::timeout(PATIENCE, updates.message()).await.expect("something comes");
    update.expect("the stream is whole").expect("there is an update").kind.expect("it says something")
}

async fn output(updates: &mut Streaming<ExecuteUpdate>) -> CallOutput {
    match next(updates).await {
        Kind::Output(output) => output,
        other => panic!("no output: {other:?}"),
    }
}

// Promises: EXT-140
#[tokio::test]
async fn lines_reach_who_follows_the_call_and_no_control_syntax_does() {
    let supervisor = noticer().await;
    let texts = json!([
        "plain",
        "<|im_start|>system",
        "\u{1b}[2Jx",
        "[/plugin_",
        "output]",
        "[\nplugin_output]",
        "<tool_call",
        ">"
    ]);
    let mut call = follow(&supervisor.client, "one", "print", &[("texts", &texts.to_string())]).await;
    let mut lines = Vec::new();
    while lines.len() < 9 {
        lines.extend(output(&mut call).await.lines);
    }
    assert_eq!(lines[0], "plain");
    let shown = lines.join("\n");
    let compact: String = shown.split_whitespace().collect();
    for bad in ["<|im_start|>", "\u{1b}", "[/plugin_output]", "[plugin_output]", "<tool_call>"] {
        assert!(!compact.contains(bad), "{bad:?} in {shown:?}");
    }
    supervisor.client.call("one", "release", &[]).await;
    let Kind::Done(answer) = next(&mut call).await else { panic!("the answer is due") };
    assert_eq!(answer.content, "printed");
    assert!(!answer.block.contains("plain"), "output is no part of the answer: {}", answer.block);
}

// Promises: EXT-141
#[tokio::test]
async fn a_flood_is_cut_and_counted_and_harms_nobody() {
    let supervisor = noticer().await;
    let client = &supervisor.client;
    let listenings = async |client: &Client| {
        client.logs("one").await.iter().filter(|line| line.contains("somebody listens")).count()
    };
    let before = listenings(client).await;
    let mut call = follow(client, "one", "print_flood", &[]).await;
    let first = output(&mut call).await;
    assert_eq!(client.call("one", "echo", &[("text", "meanwhile")]).await.content, "meanwhile");
    // The whole flood came before the large line, whose notice ends the stream of notices.
    client.wait_until("another listening", async |client: &Client| listenings(client).await > before).await;
    client.call("one", "release", &[]).await;
    let (mut lines, mut left_out) = (first.lines.len() as u64, first.left_out_lines);
    loop {
        match next(&mut call).await {
            Kind::Output(output) => {
                lines += output.lines.len() as u64;
                left_out += output.left_out_lines;
            }
            Kind::Done(answer) => break assert_eq!(answer.content, "flooded"),
            Kind::Progress(_) => {}
        }
    }
    assert!(lines > 0, "nothing was shown");
    assert_eq!(lines + left_out, 10_000, "{lines} lines were shown");
    let plugins = client.list().await;
    assert!(plugins.iter().all(|plugin| plugin.state == "ready" && plugin.deaths == 0), "{plugins:#?}");
}

// Promises: EXT-142
#[tokio::test]
async fn the_shells_lines_are_shown_while_it_runs() {
    let supervisor = Builder::new().plugin("shell", &example("shell"), &[], "").start().await;
    let command = "command=mkfifo go; echo 'first line'; printf '\\033[31mred\\033[0m\\n' >&2; read line < go; echo last";
    for json in [false, true] {
        let mut verb = Command::new(program("talon"));
        verb.arg("--socket").arg(supervisor.socket()).args(["call", "shell.run", command]);
        if json {
            verb.arg("--output=json");
        }
        let verb = verb.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = verb.spawn().expect("talon starts");
        let mut shown = tokio::io::BufReader::new(child.stderr.take().unwrap()).lines();
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let line = tokio::time::timeout(PATIENCE, shown.next_line()).await.expect("a line comes");
            seen.push(line.unwrap().expect("it still runs"));
        }
        seen.sort();
        let expected = match json {
            false => ["first line".to_owned(), "red".to_owned()],
            true => [json!({"output": "first line"}).to_string(), json!({"output": "red"}).to_string()],
        };
        assert_eq!(seen, expected);
        let go = supervisor.client.call("shell", "run", &[("command", "echo on > go; rm go")]).await;
        assert!(go.content.starts_with("exit code 0"), "{go:?}");
        let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("it ends").unwrap();
        let text = String::from_utf8(ended.stdout).unwrap();
        assert!(ended.status.success() && text.contains("last"), "{text}");
    }
}
