//! Channels over a real agent and real plugins: Telegram before an imitation of its Bot API, written from its documentation; and Slack.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use talon_tests::ask::with_agent;
use talon_tests::http::send_tcp;
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Client, ServerScript, Supervisor, program, repository};

#[path = "../channels/session_commands.rs"]
mod session_commands;
#[path = "../channels/slack.rs"]
mod slack;

const PYTHON: &str = "/usr/bin/python3";
/// A token of the form that @BotFather gives.
const TOKEN: &str = "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11";
/// Ada, who may approve, and Bob, who may not.
const ADA: i64 = 42;
const BOB: i64 = 43;
const GROUP: i64 = -1001;

/// The Bot API.
struct BotApi {
    script: ServerScript,
}

impl BotApi {
    fn start() -> Self {
        Self {
            script: ServerScript::start(PYTHON, &repository().join("tests/channels/telegram.py"), &[TOKEN]),
        }
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

    /// Somebody writes in a chat.
    async fn write(&self, from: i64, chat: i64, text: &str, more: Value) {
        let kind = if chat < 0 { "supergroup" } else { "private" };
        let name = if from == ADA { "Ada" } else { "Bob" };
        let mut message = json!({
            "message_id": 7, "date": 1_780_000_000, "chat": {"id": chat, "type": kind}, "text": text,
            "from": {"id": from, "is_bot": false, "first_name": name},
        });
        message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        self.ask("POST", "/control/update", &json!({"message": message})).await;
    }

    /// Somebody presses a button.
    async fn press(&self, from: i64, chat: i64, data: &str) {
        let kind = if chat < 0 { "supergroup" } else { "private" };
        let name = if from == ADA { "Ada" } else { "Bob" };
        let query = json!({
            "id": "4382", "from": {"id": from, "is_bot": false, "first_name": name}, "data": data, "chat_instance": "1",
            "message": {"message_id": 8, "date": 1, "chat": {"id": chat, "type": kind}},
        });
        self.ask("POST", "/control/update", &json!({"callback_query": query})).await;
    }

    /// The messages that were sent, oldest first.
    async fn sent(&self) -> Vec<Value> {
        let calls = self.ask("GET", "/control/calls", &Value::Null).await;
        let calls = calls.as_array().expect("a list").iter();
        calls.filter(|call| call[0] == "sendMessage").map(|call| call[1].clone()).collect()
    }

    /// How often a method was called.
    async fn count(&self, method: &str) -> usize {
        let calls = self.ask("GET", "/control/calls", &Value::Null).await;
        calls.as_array().expect("a list").iter().filter(|call| call[0] == method).count()
    }

    /// A file that bots can have.
    async fn file(&self, id: &str, path: &str, data: &[u8], more: Value) {
        let mut file = json!({"id": id, "path": path, "data": STANDARD.encode(data)});
        file.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        self.ask("POST", "/control/file", &file).await;
    }

    async fn until_sent(&self, supervisor: &Supervisor, count: usize) -> Vec<Value> {
        supervisor
            .client
            .wait_until("the messages that were sent", async |_| self.sent().await.len() >= count)
            .await;
        self.sent().await
    }
}

fn says(text: &str) -> ScriptedReply {
    ScriptedReply::Text(text.to_owned())
}

/// The entry of the plugin, which reaches the imitation alone.
fn plugin(api: &BotApi) -> String {
    let address = api.address();
    format!(
        "config: {{ api: 'http://{address}', poll_seconds: 5 }}\ncredentials: {{ token: {{ header: Authorization, value: '{TOKEN}' }} }}\n\
         events: {{ per_minute: 6000 }}\nsandbox: {{ network: proxy, allow: ['{address}'] }}"
    )
}

fn setting(builder: Builder, api: &BotApi, provider: &Provider, agent: &str) -> Builder {
    let channels = format!(
        "extensions:\n  channels:\n    - {{ action: telegram.channel, name: telegram, senders: ['{ADA}', '{BOB}'], groups: ['{GROUP}'], approve: ['{ADA}'] }}\n"
    );
    let builder = builder
        .plugin("telegram", &program("telegram"), &[], &plugin(api))
        .plugin("liar", &program("misbehave"), &[], "")
        .config(&channels);
    with_agent(builder, provider, agent, "")
}

// Promises: GW-209, GW-210, GW-211, GW-214
#[tokio::test(flavor = "multi_thread")]
async fn a_message_on_telegram_is_answered_there_in_pieces_that_fit() {
    let api = BotApi::start();
    let long = format!("{}\n{}", "first ".repeat(600), "second ".repeat(500));
    let provider = Provider::start([says("Hello Ada."), says(&long)]).await;
    let supervisor = setting(Builder::new(), &api, &provider, "").start().await;
    api.write(ADA, ADA, "hello", json!({})).await;
    let sent = api.until_sent(&supervisor, 1).await;
    assert_eq!((&sent[0]["chat_id"], &sent[0]["text"]), (&json!(ADA), &json!("Hello Ada.")));
    // Who is not listed gets nothing, and no model hears of it.
    api.write(44, 44, "let me in", json!({})).await;
    // Telegram asks to be left alone for a moment, and the answer comes all the same, once.
    let flood = json!([429, {"retry_after": 1}, "Too Many Requests: retry after 1"]);
    api.ask("POST", "/control/fail", &flood).await;
    api.write(ADA, ADA, "tell me more", json!({})).await;
    let sent = api.until_sent(&supervisor, 3).await;
    let whole: String = sent[1..].iter().map(|message| message["text"].as_str().expect("a text")).collect();
    assert_eq!(whole, long);
    let session = supervisor.cli(&["session", "list", "--all", "--output", "json"]).await;
    let shown = String::from_utf8_lossy(&session.stdout).into_owned();
    assert!(shown.contains("gw:telegram/42") && !shown.contains("gw:telegram/44"), "{shown}");
    assert!(provider.bodies().iter().all(|body| !body.contains("let me in")));
    let logs = supervisor.client.logs("telegram").await;
    assert!(!format!("{logs:?}").contains(TOKEN), "{logs:?}");
    supervisor.stop().await;
}

// Promises: GW-201, GW-207, GW-215, AUDIT-19
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_approved_by_the_button_of_who_is_listed_and_by_nobody_else() {
    let api = BotApi::start();
    let call = || ScriptedReply::ToolCalls(vec![("liar__echo".to_owned(), json!({"text": "hello"}))]);
    let provider = Provider::start([call(), says("It said hello."), call(), says("I may not.")]).await;
    let confirm = "  confirm: { rules: [{ tool: liar.echo, ask: always }] }";
    let supervisor = setting(Builder::new(), &api, &provider, confirm).start().await;
    for (sender, count) in [(ADA, 3), (BOB, 6)] {
        api.write(sender, sender, "Ask it", json!({})).await;
        let sent = api.until_sent(&supervisor, count - 2).await;
        let prompt = sent.last().expect("a prompt");
        assert_eq!(prompt["text"], "⚠️ The assistant wants to run: liar.echo\ntext: hello");
        let buttons = prompt["reply_markup"]["inline_keyboard"][0].as_array().expect("a row").clone();
        let allow = buttons[0]["callback_data"].as_str().expect("data");
        if sender == ADA {
            api.press(ADA, ADA, allow).await;
            let sent = api.until_sent(&supervisor, count).await;
            let mut texts: Vec<_> =
                sent[1..].iter().map(|sent| sent["text"].as_str().expect("a text")).collect();
            texts.sort_unstable();
            assert_eq!(texts, ["It said hello.", "✅ Allowed by Ada."]);
            continue;
        }
        // Bob may not, Ada may not decide Bob's, a text decides nothing, and the call waits on.
        api.press(BOB, BOB, allow).await;
        api.until_sent(&supervisor, count - 1).await;
        api.press(ADA, ADA, allow).await;
        let sent = api.until_sent(&supervisor, count).await;
        let texts: Vec<_> =
            sent[count - 2..].iter().map(|sent| sent["text"].as_str().expect("a text")).collect();
        assert_eq!(
            texts,
            ["Bob may not decide this: the operator lists who may.", "This is not waiting any more."]
        );
        let waiting = supervisor.cli(&["approval", "list", "--everybody", "--output", "json"]).await;
        assert!(String::from_utf8_lossy(&waiting.stdout).contains("pending"), "{waiting:?}");
    }
    // Each press is recorded with who it was.
    let presses = async |_: &Client| {
        let shown = supervisor.cli(&["audit", "show", "--kind", "operation", "--output", "json"]).await;
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let records: Vec<Value> = shown.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        // What was decided stands there, and of what was not its id alone.
        let decided = |outcome: &str, record: &Value| {
            let subject = record["subject"].as_str().unwrap_or_default();
            subject.ends_with(" liar.echo") == (outcome == "done")
        };
        [("done", ADA), ("denied", BOB), ("failed", ADA)].iter().all(|(outcome, by)| {
            records.iter().any(|record| {
                decided(outcome, record)
                    && (&record["verb"], &record["outcome"]) == (&json!("allow_approval"), &json!(outcome))
                    && (&record["who"]["subject"], &record["who"]["origin"])
                        == (&json!(format!("gw:telegram/{by}")), &json!("person"))
            })
        })
    };
    supervisor.client.wait_until("the presses in the audit log", presses).await;
    supervisor.stop().await;
}

// Promises: GW-144
#[tokio::test(flavor = "multi_thread")]
async fn a_button_does_not_wait_behind_messages_that_wait_for_room() {
    let api = BotApi::start();
    let call = ScriptedReply::ToolCalls(vec![("liar__echo".to_owned(), json!({"text": "hello"}))]);
    let provider =
        Provider::start([call, says("It said hello."), says("Hello Bob."), says("Hello again.")]).await;
    // Ada's message takes all the room there is, until it is answered.
    let agent = "  limits: { channel_messages: 1 }\n  confirm: { rules: [{ tool: liar.echo, ask: always }] }";
    let supervisor = setting(Builder::new(), &api, &provider, agent).start().await;
    api.write(ADA, ADA, "Ask it", json!({})).await;
    let sent = api.until_sent(&supervisor, 1).await;
    let buttons = sent[0]["reply_markup"]["inline_keyboard"][0].as_array().expect("a row").clone();
    api.write(BOB, BOB, "Hello", json!({})).await;
    api.write(BOB, BOB, "Hello again", json!({})).await;
    // Told after both, and what makes room for them.
    api.press(ADA, ADA, buttons[0]["callback_data"].as_str().expect("data")).await;
    let sent = api.until_sent(&supervisor, 5).await;
    let of_bob: Vec<_> =
        sent.iter().filter(|sent| sent["chat_id"] == BOB).map(|sent| sent["text"].clone()).collect();
    assert_eq!(of_bob, ["Hello Bob.", "Hello again."], "in their order: {sent:#?}");
    assert!(sent.iter().any(|sent| sent["text"] == "✅ Allowed by Ada."), "{sent:#?}");
    supervisor.stop().await;
}

// Promises: GW-144, GW-236
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_does_not_wait_behind_messages_that_wait_for_the_room_that_it_makes() {
    let api = BotApi::start();
    let question = json!({"question": "Which one?", "choices": ["this", "that"]});
    let ask = ScriptedReply::ToolCalls(vec![("talon__ask_user".to_owned(), question)]);
    let provider = Provider::start([ask, says("Then neither."), says("Hello Bob.")]).await;
    // Ada's message takes all the room there is, until it is answered.
    let supervisor =
        setting(Builder::new(), &api, &provider, "  limits: { channel_messages: 1 }").start().await;
    api.write(ADA, ADA, "Choose", json!({})).await;
    api.until_sent(&supervisor, 1).await;
    api.write(BOB, BOB, "Hello", json!({})).await;
    api.write(ADA, ADA, "neither of them", json!({})).await;
    let sent = api.until_sent(&supervisor, 3).await;
    let texts: Vec<_> = sent[1..].iter().map(|sent| sent["text"].as_str().expect("a text")).collect();
    assert_eq!(texts, ["Then neither.", "Hello Bob."], "the answer is no message of its own");
    let bodies = provider.bodies();
    assert!(bodies.len() == 3 && bodies[1].contains("neither of them"), "{bodies:#?}");
    supervisor.stop().await;
}

// Promises: GW-202, GW-205, GW-216
#[tokio::test(flavor = "multi_thread")]
async fn a_group_has_one_session_and_its_members_rights() {
    let api = BotApi::start();
    let call = || ScriptedReply::ToolCalls(vec![("liar__echo".to_owned(), json!({"text": "hello"}))]);
    let provider = Provider::start([call(), says("For Ada."), call(), says("Not for Bob.")]).await;
    let allow =
        format!("  confirm: {{ default: never }}\n  allow: {{ senders: {{ 'gw:telegram/{BOB}': [] }} }}");
    let supervisor = setting(Builder::new(), &api, &provider, &allow).start().await;
    let mention = json!({"entities": [{"type": "mention", "offset": 0, "length": 13}]});
    api.write(BOB, GROUP, "between us", json!({})).await;
    api.write(ADA, GROUP, "@TalonTestBot ask it", mention.clone()).await;
    let sent = api.until_sent(&supervisor, 1).await;
    assert_eq!((&sent[0]["chat_id"], &sent[0]["text"]), (&json!(GROUP), &json!("For Ada.")));
    let topic = json!({"message_thread_id": 3, "is_topic_message": true, "entities": mention["entities"]});
    api.write(BOB, GROUP, "@TalonTestBot ask it", topic).await;
    let sent = api.until_sent(&supervisor, 2).await;
    assert_eq!((&sent[1]["message_thread_id"], &sent[1]["text"]), (&json!(3), &json!("Not for Bob.")));
    let bodies = provider.bodies();
    assert!(bodies.iter().all(|body| !body.contains("between us")), "{bodies:#?}");
    assert!(
        bodies[0].contains("[From Ada]")
            && bodies[2].contains("[From Ada]")
            && bodies[2].contains("[From Bob]")
    );
    // Ada's call was made, Bob's was not: the group's right is not enough.
    assert!(bodies[1].contains("hello") && !bodies[3].contains("\"content\":\"hello\""), "{}", bodies[3]);
    let audit = supervisor.cli(&["audit", "show", "--output", "json"]).await;
    let audit = String::from_utf8_lossy(&audit.stdout).into_owned();
    assert_eq!(audit.matches("\"liar\"").count(), 1, "{audit}");
    supervisor.stop().await;
}

/// One pixel, as any program writes it.
const PNG_BASE64: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";

// Promises: GW-228, GW-229, GW-231, GW-232, GW-233
#[tokio::test(flavor = "multi_thread")]
async fn photos_and_documents_reach_the_model_and_what_cannot_is_said() {
    let api = BotApi::start();
    let read =
        |id: &str| ScriptedReply::ToolCalls(vec![("talon__read_attachment".to_owned(), json!({"id": id}))]);
    // More than one piece of a file.
    let words = "the words of a report. ".repeat(30_000);
    let digest = hex::encode(Sha256::digest(&words));
    let id = format!("file-{}", &digest[..12]);
    let provider =
        Provider::start([says("One pixel."), read(&id), says("A report."), says("It is too large.")]).await;
    let builder = Builder::new()
        .plugin("telegram", &program("telegram"), &[], &plugin(&api))
        .config(&format!(
            "extensions:\n  channels:\n    - {{ action: telegram.channel, name: telegram, senders: ['{ADA}'] }}\n\
             agent: {{ enabled: true }}\nmodels:\n  providers: {{ local: {{ kind: openai, base_url: \"{}\" }} }}\n  catalog:\n    \
             local/test: {{ tier: mid, context_window: 128000, tools: true, vision: true, free: true }}\n",
            provider.url()
        ));
    let supervisor = builder.start().await;
    let pixel = STANDARD.decode(PNG_BASE64).expect("base64");
    api.file("p1", "photos/file_0.png", &pixel, json!({})).await;
    let photo =
        json!([{"file_id": "p1", "file_unique_id": "u", "width": 1, "height": 1, "file_size": pixel.len()}]);
    let message = |more: Value| {
        let mut message = json!({"text": null});
        message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        message
    };
    api.write(ADA, ADA, "", message(json!({"caption": "What is in it?", "photo": photo}))).await;
    let sent = api.until_sent(&supervisor, 1).await;
    assert_eq!(sent[0]["text"], "One pixel.");
    let question = &provider.bodies()[0];
    assert!(question.contains(PNG_BASE64) && question.contains("What is in it?"), "{question}");
    assert!(api.count("sendChatAction").await >= 1, "it is shown that an answer is written");
    // A file of text, which the model reads.
    api.file("d1", "documents/file_1.txt", words.as_bytes(), json!({})).await;
    let document = json!({"file_id": "d1", "file_name": "report.txt", "file_size": words.len()});
    api.write(ADA, ADA, "", message(json!({"document": document}))).await;
    let sent = api.until_sent(&supervisor, 2).await;
    assert_eq!(sent[1]["text"], "A report.");
    let bodies = provider.bodies();
    assert!(bodies[1].contains("report.txt") && bodies[1].contains(&id), "{}", bodies[1]);
    assert!(bodies[2].contains("the words of a report"), "the model has read it: {}", bodies[2]);
    assert_eq!(api.count("getFile").await, 2, "a file is downloaded once, whatever its pieces");
    // One that Telegram gives to no bot.
    api.file("d2", "documents/file_2.zip", b"PK", json!({"size": 30_000_000})).await;
    api.write(
        ADA,
        ADA,
        "",
        message(json!({"caption": "And this?", "document": {"file_id": "d2", "file_name": "all.zip"}})),
    )
    .await;
    let sent = api.until_sent(&supervisor, 4).await;
    let mut texts: Vec<_> = sent[2..].iter().map(|sent| sent["text"].as_str().expect("a text")).collect();
    texts.sort_unstable();
    assert_eq!(texts[0], "It is too large.");
    assert!(texts[1].contains("Not passed on") && texts[1].contains("file is too big"), "{texts:?}");
    assert!(provider.bodies()[3].contains("A file was not passed on: all.zip"), "{}", provider.bodies()[3]);
    // What is no text and no file is answered by nobody but the channel.
    api.write(ADA, ADA, "", message(json!({"sticker": {"file_id": "s", "file_unique_id": "u"}}))).await;
    let sent = api.until_sent(&supervisor, 5).await;
    assert_eq!(sent[4]["text"], "This channel does not pass on stickers. Send a text, a photo or a file.");
    assert_eq!(provider.bodies().len(), 4);
    supervisor.stop().await;
}

// Promises: GW-208, GW-236
#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_the_model_is_answered_by_a_button_or_by_a_text() {
    let api = BotApi::start();
    let ask = || {
        let question = json!({"question": "Which one?", "choices": ["this", "that"]});
        ScriptedReply::ToolCalls(vec![("talon__ask_user".to_owned(), question)])
    };
    let provider = Provider::start([ask(), says("Then this."), ask(), says("Then neither.")]).await;
    let supervisor = setting(Builder::new(), &api, &provider, "").start().await;
    api.write(ADA, ADA, "Choose", json!({})).await;
    let sent = api.until_sent(&supervisor, 1).await;
    assert_eq!(sent[0]["text"], "Which one?");
    let buttons = sent[0]["reply_markup"]["inline_keyboard"][0].as_array().expect("a row");
    let this = buttons.iter().find(|button| button["text"] == "this").expect("a button");
    api.press(ADA, ADA, this["callback_data"].as_str().expect("data")).await;
    let sent = api.until_sent(&supervisor, 3).await;
    let mut texts: Vec<_> = sent[1..].iter().map(|sent| sent["text"].as_str().expect("a text")).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["Ada: this", "Then this."]);
    api.write(ADA, ADA, "Again", json!({})).await;
    api.until_sent(&supervisor, 4).await;
    api.write(ADA, ADA, "neither of them", json!({})).await;
    let sent = api.until_sent(&supervisor, 5).await;
    assert_eq!(sent[4]["text"], "Then neither.");
    let bodies = provider.bodies();
    assert!(bodies[1].contains("this") && bodies[3].contains("neither of them"), "{}", bodies[3]);
    supervisor.stop().await;
}

// Promises: GW-230
#[tokio::test(flavor = "multi_thread")]
async fn a_verbose_session_shows_its_calls_in_their_order_before_the_answer() {
    let api = BotApi::start();
    let call = ScriptedReply::ToolCalls(vec![("liar__echo".to_owned(), json!({"text": "hello"}))]);
    let provider = Provider::start([call, says("It said hello.")]).await;
    let supervisor = setting(Builder::new(), &api, &provider, "  confirm: { default: never }").start().await;
    api.write(ADA, ADA, "/verbose on", json!({})).await;
    api.until_sent(&supervisor, 1).await;
    api.write(ADA, ADA, "Ask it", json!({})).await;
    let sent = api.until_sent(&supervisor, 4).await;
    let texts: Vec<_> = sent[1..].iter().map(|sent| sent["text"].as_str().expect("a text")).collect();
    assert_eq!((texts[0], texts[2]), ("🔧 liar.echo\ntext: hello", "It said hello."));
    assert!(texts[1].starts_with("✅ liar.echo (") && texts[1].ends_with("hello"), "{texts:?}");
    supervisor.stop().await;
}

// Promises: GW-217, GW-218
#[tokio::test(flavor = "multi_thread")]
async fn kills_of_agent_and_plugin_lose_no_message_and_ask_none_twice() {
    const ROUNDS: usize = 6;
    let api = BotApi::start();
    let provider = Provider::responding(|question| {
        let last = question["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let said = last["content"].as_str().unwrap_or_default();
        ScriptedReply::Text(format!("Answer to {}", said.split_whitespace().last().unwrap_or_default()))
    })
    .await;
    let builder = setting(Builder::new(), &api, &provider, "");
    let supervisor = builder.start().await;
    for round in 0..ROUNDS {
        api.write(ADA, ADA, &format!("number {round}"), json!({})).await;
        let pid = if round % 2 == 0 {
            supervisor.wait_agent("an agent", |agent| agent.state == "serving").await.pid
        } else {
            let plugin = supervisor.client.plugin("telegram").await;
            plugin.instances.first().map_or(0, |instance| instance.pid)
        };
        if pid > 0 {
            // It may have ended by itself.
            let _ = kill(Pid::from_raw(i32::try_from(pid).expect("a pid")), Signal::SIGKILL);
        }
        // One that was sent and not noted as sent when the agent was killed comes once more.
        let answer = format!("Answer to {round}");
        let is_there = async || api.sent().await.iter().any(|message| message["text"] == answer.as_str());
        supervisor.client.wait_until("the answer", async |_| is_there().await).await;
    }
    let mut texts: Vec<String> = Vec::new();
    for message in api.sent().await {
        texts.push(message["text"].as_str().expect("a text").to_owned());
    }
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts, (0..ROUNDS).map(|round| format!("Answer to {round}")).collect::<Vec<_>>());
    // Each was asked once.
    let asked: Vec<String> = provider.bodies();
    for round in 0..ROUNDS {
        let last = |body: &&String| {
            let body: Value = serde_json::from_str(body).expect("JSON");
            let all = body["messages"].as_array().cloned().unwrap_or_default();
            all.iter()
                .filter(|message| {
                    message["content"].as_str().is_some_and(|said| said.contains(&format!("number {round}")))
                })
                .count()
                > 1
        };
        assert_eq!(asked.iter().filter(last).count(), 0, "number {round} stands twice in the session");
    }
    supervisor.stop().await;
}
