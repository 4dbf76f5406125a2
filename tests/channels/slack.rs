//! Slack before an imitation of it, written from its documentation.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use talon_tests::ask::with_agent;
use talon_tests::http::send_tcp;
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, ServerScript, Supervisor, program, repository};

use super::{PYTHON, says};

/// Tokens of the forms that Slack gives.
const BOT_TOKEN: &str = "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcBrzbqgy";
const APP_TOKEN: &str = "xapp-1-A123ABC456-4567890123-deadbeefdeadbeef";
/// Ada, who may approve, and Bob, who may not.
const ADA: &str = "U42";
const BOB: &str = "U43";
/// Their conversations with the app, and a channel.
const ADAS: &str = "D42";
const BOBS: &str = "D43";
const CHANNEL: &str = "C123";

/// The imitation.
struct Slack {
    script: ServerScript,
}

impl Slack {
    fn start() -> Self {
        let script = repository().join("tests/channels/slack.py");
        Self { script: ServerScript::start(PYTHON, &script, &[BOT_TOKEN, APP_TOKEN]) }
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.script.port(0)))
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        serde_json::from_str(&send_tcp(self.address(), &request).await.body).expect("JSON")
    }

    async fn control(&self, name: &str, asked: Value) {
        self.ask("POST", &format!("/control/{name}"), &asked).await;
    }

    /// Somebody writes, at this time.
    async fn write(&self, user: &str, channel: &str, text: &str, ts: &str, more: Value) {
        let mut event = json!({"type": "message", "channel": channel, "user": user, "text": text, "ts": ts, "client_msg_id": ts});
        event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        self.control("event", event).await;
    }

    /// Somebody presses a button of a message.
    async fn press(&self, user: &str, channel: &str, value: &str, ts: &str) {
        self.control(
            "press",
            json!({
                "type": "block_actions", "user": {"id": user, "username": "ada", "name": "ada"}, "channel": {"id": channel, "name": "directmessage"},
                "message": {"type": "message", "user": "U0TALON", "ts": "1355517524.000001"},
                "actions": [{"type": "button", "action_id": "talon-0-0", "value": value, "action_ts": ts}],
            }),
        )
        .await;
    }

    /// The calls of a method that were done, oldest first.
    async fn calls(&self, method: &str) -> Vec<Value> {
        let calls = self.ask("GET", "/control/calls", &Value::Null).await;
        let calls = calls.as_array().expect("a list").iter();
        calls.filter(|call| call[0] == method).map(|call| call[1].clone()).collect()
    }

    async fn until_sent(&self, supervisor: &Supervisor, count: usize) -> Vec<Value> {
        let is_there = async || self.calls("chat.postMessage").await.len() >= count;
        supervisor.client.wait_until("the messages that were sent", async |_| is_there().await).await;
        self.calls("chat.postMessage").await
    }

    /// Waits until the sockets are so.
    async fn until_sockets(&self, supervisor: &Supervisor, what: &str, are: impl Fn(&Value) -> bool) {
        let is_so = async || are(&self.ask("GET", "/control/sockets", &Value::Null).await);
        supervisor.client.wait_until(what, async |_| is_so().await).await;
    }
}

fn texts(sent: &[Value]) -> Vec<&str> {
    sent.iter().map(|sent| sent["text"].as_str().expect("a text")).collect()
}

/// The entry of the plugin, which reaches the imitation alone.
fn plugin(slack: &Slack, bot_token: &str) -> String {
    let address = slack.address();
    format!(
        "config: {{ api: 'http://{address}/api' }}\ncredentials: {{ bot_token: {{ header: Authorization, value: '{bot_token}' }}, \
         app_token: {{ header: Authorization, value: '{APP_TOKEN}' }} }}\nevents: {{ per_minute: 6000 }}\n\
         sandbox: {{ network: proxy, allow: ['{address}'] }}"
    )
}

fn setting(slack: &Slack, bot_token: &str, provider: &Provider, agent: &str) -> Builder {
    let channels = format!(
        "extensions:\n  channels:\n    - {{ action: slack.channel, name: slack, senders: ['{ADA}', '{BOB}'], groups: ['{CHANNEL}'], approve: ['{ADA}'] }}\n"
    );
    let builder = Builder::new()
        .plugin("slack", &program("slack"), &[], &plugin(slack, bot_token))
        .plugin("liar", &program("misbehave"), &[], "")
        .config(&channels);
    with_agent(builder, provider, agent, "")
}

// Promises: GW-280, GW-281, GW-282, GW-283, GW-287
#[tokio::test(flavor = "multi_thread")]
async fn a_message_on_slack_is_answered_there_once_and_tells_nobody_else() {
    let slack = Slack::start();
    let long = format!("{}\n{}", "first ".repeat(500), "second ".repeat(400));
    let hostile = "<!channel> <@U1> a < b & c";
    let file = json!({"id": "F1", "name": "plan.txt", "mimetype": "text/plain", "data": STANDARD.encode("the words of a plan")});
    slack.control("file", file).await;
    let provider =
        Provider::start([says("Hello Ada."), says(&long), says(hostile), says("In the thread.")]).await;
    let supervisor = setting(&slack, BOT_TOKEN, &provider, "").start().await;
    slack.write(ADA, ADAS, "hello", "1355517523.000001", json!({"channel_type": "im"})).await;
    let sent = slack.until_sent(&supervisor, 1).await;
    assert_eq!((&sent[0]["channel"], &sent[0]["text"]), (&json!(ADAS), &json!("Hello Ada.")));
    assert_eq!(sent[0].get("thread_ts"), None);
    // Who is not listed gets nothing, and no model hears of it.
    slack.write("U44", "D44", "let me in", "1355517523.000002", json!({"channel_type": "im"})).await;
    // Slack asks to be left alone for a moment; then it does what it is asked, and says that it failed.
    slack.control("fail", json!(["chat.postMessage", 429, "ratelimited", 1, false])).await;
    slack.control("fail", json!(["chat.postMessage", 503, "service_unavailable", 1, true])).await;
    slack.write(ADA, ADAS, "tell me more", "1355517523.000003", json!({"channel_type": "im"})).await;
    let sent = slack.until_sent(&supervisor, 3).await;
    assert_eq!(texts(&sent[1..]).concat(), long, "each piece came once");
    slack.write(ADA, ADAS, "call everybody", "1355517523.000004", json!({"channel_type": "im"})).await;
    let sent = slack.until_sent(&supervisor, 4).await;
    assert_eq!(sent[3]["text"], "&lt;!channel&gt; &lt;@U1&gt; a &lt; b &amp; c");
    assert_eq!((&sent[3]["mrkdwn"], &sent[3]["parse"]), (&json!("false"), &json!("none")));
    // In a channel what mentions the app is answered in its thread, once, with its files, although Slack tells it twice, and at first without.
    slack.write(BOB, CHANNEL, "between us", "1355517523.000005", json!({"channel_type": "channel"})).await;
    slack
        .write(
            ADA,
            CHANNEL,
            "<@U0TALON> hi &amp; bye",
            "1355517523.000006",
            json!({"channel_type": "channel", "subtype": "file_share", "files": [{"id": "F1", "name": "plan.txt", "size": 19, "mode": "hosted"}]}),
        )
        .await;
    let sent = slack.until_sent(&supervisor, 5).await;
    assert_eq!((&sent[4]["channel"], &sent[4]["thread_ts"]), (&json!(CHANNEL), &json!("1355517523.000006")));
    let is_calm = |sockets: &Value| sockets["waiting"] == 0 && sockets["hasty"] == 0;
    slack.until_sockets(&supervisor, "all is acknowledged, and was sent when Slack wanted it", is_calm).await;
    let bodies = provider.bodies();
    assert_eq!((bodies.len(), slack.calls("chat.postMessage").await.len()), (4, 5));
    for part in ["[From Ada]", "@talon hi & bye", "plan.txt"] {
        assert!(bodies[3].contains(part), "{part}: {}", bodies[3]);
    }
    assert!(bodies.iter().all(|body| !body.contains("let me in") && !body.contains("between us")));
    // A connection that is not made is said, without its ticket.
    slack.control("unready", json!({})).await;
    slack.control("cut", json!({})).await;
    slack.until_sockets(&supervisor, "another connection", |sockets| sockets["made"] == 2).await;
    let logs = format!("{:?}", supervisor.client.logs("slack").await);
    assert!(logs.contains("in the place of hello") && logs.contains("[hidden] of /link/"), "{logs}");
    assert!(!logs.contains(BOT_TOKEN) && !logs.contains(APP_TOKEN) && !logs.contains("ticket-"), "{logs}");
    supervisor.stop().await;
}

// Promises: GW-284
#[tokio::test(flavor = "multi_thread")]
async fn a_button_on_slack_approves_for_who_is_listed_alone() {
    let slack = Slack::start();
    let call = || ScriptedReply::ToolCalls(vec![("liar__echo".to_owned(), json!({"text": "hello"}))]);
    let provider = Provider::start([call(), says("It said hello."), call()]).await;
    let confirm = "  confirm: { rules: [{ tool: liar.echo, ask: always }] }";
    let supervisor = setting(&slack, BOT_TOKEN, &provider, confirm).start().await;
    let allow = |prompt: &Value| {
        assert_eq!(prompt["text"], "⚠️ The assistant wants to run: liar.echo\ntext: hello");
        let blocks: Value = serde_json::from_str(prompt["blocks"].as_str().expect("blocks")).expect("JSON");
        blocks[1]["elements"][0]["value"].as_str().expect("a value").to_owned()
    };
    slack.write(ADA, ADAS, "Ask it", "1355517523.000001", json!({})).await;
    let sent = slack.until_sent(&supervisor, 1).await;
    slack.press(ADA, ADAS, &allow(&sent[0]), "1355517530.000001").await;
    let sent = slack.until_sent(&supervisor, 3).await;
    let mut said = texts(&sent[1..]);
    said.sort_unstable();
    assert_eq!(said, ["It said hello.", "✅ Allowed by Ada."]);
    slack.write(BOB, BOBS, "Ask it", "1355517523.000002", json!({})).await;
    let sent = slack.until_sent(&supervisor, 4).await;
    slack.press(BOB, BOBS, &allow(&sent[3]), "1355517530.000002").await;
    let sent = slack.until_sent(&supervisor, 5).await;
    assert_eq!(sent[4]["text"], "Bob may not decide this: the operator lists who may.");
    supervisor.stop().await;
}

// Promises: GW-285, GW-288
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_replaced_or_break_off_and_kills_lose_no_message_and_ask_none_twice() {
    const ROUNDS: usize = 7;
    /// What Slack still sends on a connection that it has asked to replace.
    const LATE: usize = ROUNDS;
    let slack = Slack::start();
    let provider = Provider::responding(|question| {
        let last = question["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let said = last["content"].as_str().unwrap_or_default();
        ScriptedReply::Text(format!("Answer to {}", said.split_whitespace().last().unwrap_or_default()))
    })
    .await;
    let supervisor = setting(&slack, BOT_TOKEN, &provider, "").start().await;
    let is_one = |sockets: &Value| sockets["open"].as_u64() >= Some(1);
    slack.until_sockets(&supervisor, "a connection", is_one).await;
    // Slack asks for another connection, which is made before the old one goes, and what still comes on that is acknowledged there.
    let late = json!({"type": "message", "channel": ADAS, "user": ADA, "text": format!("number {LATE}"), "ts": "1355517522.000001"});
    slack.control("disconnect", json!({"reason": "refresh_requested", "after": 20, "event": late})).await;
    slack.until_sockets(&supervisor, "two connections", |sockets| sockets["open"] == 2).await;
    slack.until_sent(&supervisor, 1).await;
    slack.until_sockets(&supervisor, "all is acknowledged", |sockets| sockets["waiting"] == 0).await;
    for round in 0..ROUNDS {
        let ts = format!("1355517523.00000{round}");
        let answer = format!("Answer to {round}");
        let is_there = async || texts(&slack.calls("chat.postMessage").await).contains(&answer.as_str());
        // Slack has the answer, and does not say so before the kill.
        let is_kill_in_send = matches!(round, 4 | 5);
        if is_kill_in_send {
            slack.control("stall", json!({"method": "chat.postMessage"})).await;
        }
        slack.write(ADA, ADAS, &format!("number {round}"), &ts, json!({})).await;
        if is_kill_in_send {
            supervisor.client.wait_until("the answer", async |_| is_there().await).await;
        }
        let pid = match round {
            1 => {
                slack.control("cut", json!({})).await;
                0
            }
            2 | 4 => supervisor.wait_agent("an agent", |agent| agent.state == "serving").await.pid,
            3 | 5 => {
                let plugin = supervisor.client.plugin("slack").await;
                plugin.instances.first().map_or(0, |instance| instance.pid)
            }
            _ => 0,
        };
        if pid > 0 {
            // It may have ended by itself.
            let _ = kill(Pid::from_raw(i32::try_from(pid).expect("a pid")), Signal::SIGKILL);
        }
        if is_kill_in_send {
            slack.control("release", json!({})).await;
        }
        supervisor.client.wait_until("the answer", async |_| is_there().await).await;
        // What was acknowledged comes once more all the same.
        slack.until_sockets(&supervisor, "all is acknowledged", |sockets| sockets["waiting"] == 0).await;
        slack.control("repeat", json!({})).await;
    }
    slack.until_sockets(&supervisor, "all is acknowledged", |sockets| sockets["waiting"] == 0).await;
    let sent = slack.calls("chat.postMessage").await;
    let mut said = texts(&sent);
    said.sort_unstable();
    assert_eq!(said, (0..=LATE).map(|number| format!("Answer to {number}")).collect::<Vec<_>>());
    assert!(!slack.calls("conversations.history").await.is_empty(), "what may have been sent is looked for");
    for (round, asked) in provider.bodies().iter().enumerate() {
        let all: Value = serde_json::from_str(asked).expect("JSON");
        let all = all["messages"].as_array().cloned().unwrap_or_default();
        for number in 0..=LATE {
            let said = format!("number {number}");
            let count = all.iter().filter(|one| {
                one["role"] == "user" && one["content"].as_str().is_some_and(|text| text.contains(&said))
            });
            assert!(count.count() <= 1, "{said} stands twice in question {round}");
        }
    }
    supervisor.stop().await;
}

// Promises: GW-286
#[tokio::test(flavor = "multi_thread")]
async fn a_file_on_slack_reaches_the_model_and_what_cannot_is_said() {
    let slack = Slack::start();
    let provider = Provider::start([says("A report."), says("It is elsewhere.")]).await;
    let supervisor = setting(&slack, BOT_TOKEN, &provider, "").start().await;
    let file = json!({"id": "F1", "name": "report.txt", "mimetype": "text/plain", "data": STANDARD.encode("the words of a report")});
    slack.control("file", file).await;
    let shared = json!({"subtype": "file_share", "files": [{"id": "F1", "name": "report.txt", "size": 21, "mode": "hosted"}]});
    slack.write(ADA, ADAS, "", "1355517523.000001", shared).await;
    let sent = slack.until_sent(&supervisor, 1).await;
    assert_eq!(sent[0]["text"], "A report.");
    assert!(provider.bodies()[0].contains("report.txt"), "{}", provider.bodies()[0]);
    let external =
        json!({"id": "F2", "name": "plan.doc", "mimetype": "text/plain", "data": "", "external": true});
    slack.control("file", external).await;
    let shared =
        json!({"subtype": "file_share", "files": [{"id": "F2", "name": "plan.doc", "mode": "external"}]});
    slack.write(ADA, ADAS, "And this?", "1355517523.000002", shared).await;
    let sent = slack.until_sent(&supervisor, 3).await;
    let mut said = texts(&sent[1..]);
    said.sort_unstable();
    assert_eq!(said[0], "It is elsewhere.");
    assert!(said[1].contains("Not passed on") && said[1].contains("kept by another service"), "{said:?}");
    supervisor.stop().await;
}

// Promises: GW-282
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_said_with_the_credential_that_has_it() {
    let slack = Slack::start();
    let provider = Provider::start([]).await;
    let supervisor = setting(&slack, "xoxb-17653672481-revoked", &provider, "").start().await;
    supervisor.wait_agent("an agent", |agent| agent.state == "serving").await;
    let tried = supervisor.cli(&["extension", "test", "channel", "slack", "--output", "json"]).await;
    let tried: Value = serde_json::from_slice(&tried.stdout).unwrap_or_else(|_| panic!("{tried:?}"));
    assert_eq!(tried["verdict"], "retry", "{tried}");
    let why = "Slack refuses auth.test: invalid_auth; see the credential `bot_token` of this plugin";
    assert_eq!(tried["reason"], why);
    assert!(slack.calls("apps.connections.open").await.is_empty());
    supervisor.stop().await;
}
