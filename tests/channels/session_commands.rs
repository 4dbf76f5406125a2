//! Commands of a chat, over Telegram.

use serde_json::{Value, json};
use talon_tests::Builder;
use talon_tests::provider::Provider;

use super::{ADA, BOB, BotApi, GROUP, says, setting};

// Promises: GW-300, GW-301
#[tokio::test(flavor = "multi_thread")]
async fn commands_set_what_holds_for_their_conversation_and_reach_no_model() {
    let api = BotApi::start();
    let provider = Provider::start([says("Hi."), says("That is another bot's.")]).await;
    let approvers =
        format!("  groups: {{ 'gw:telegram/group:{GROUP}': {{ approvers: ['gw:telegram/{ADA}'] }} }}");
    let supervisor = setting(Builder::new(), &api, &provider, &approvers).start().await;
    api.write(ADA, ADA, "hi", json!({})).await;
    api.until_sent(&supervisor, 1).await;
    let group = "The model of this conversation: local/test.";
    let group_shown = format!("{group}\nThere are: local/test, talon/mid.");
    let said = [
        (ADA, ADA, "/verbose on", "Arguments and results of calls are shown here."),
        (ADA, ADA, "/thinking high", "How long the model thinks: high."),
        (ADA, ADA, "/model nonsense", "⚠️ No model is called nonsense. There are: local/test, talon/mid."),
        (
            ADA,
            ADA,
            "/model",
            "The model of this conversation: as configured.\nThere are: local/test, talon/mid.",
        ),
        (BOB, BOB, "/thinking", "How long the model thinks: as configured."),
        (
            BOB,
            GROUP,
            "/model@TalonTestBot local/test",
            "Bob may not set this for the group: the operator lists who may (agent.groups).",
        ),
        (ADA, GROUP, "@TalonTestBot /model local/test", group),
        (BOB, GROUP, "/model", group_shown.as_str()),
        // Another bot's command is a message like any other.
        (ADA, ADA, "/model@OtherBot local/test", "That is another bot's."),
    ];
    for (number, (from, chat, text, answer)) in said.into_iter().enumerate() {
        let length = text.split(' ').next().map_or(0, str::len);
        let kind = if text.starts_with('@') { "mention" } else { "bot_command" };
        let marked = json!({"entities": [{"type": kind, "offset": 0, "length": length}]});
        api.write(from, chat, text, marked).await;
        let sent = api.until_sent(&supervisor, number + 2).await;
        assert_eq!((&sent[number + 1]["chat_id"], &sent[number + 1]["text"]), (&json!(chat), &json!(answer)));
    }
    assert_eq!(provider.bodies().len(), 2, "no command reached the model");
    let listed = supervisor.cli(&["session", "list", "--all", "--output", "json"]).await;
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let of = |sender: String| {
        let all = listed["sessions"].as_array().expect("a list");
        all.iter()
            .find(|session| session["sender"] == sender.as_str())
            .unwrap_or_else(|| panic!("{listed}"))
            .clone()
    };
    let (ada, bob) = (of(format!("gw:telegram/{ADA}")), of(format!("gw:telegram/{BOB}")));
    assert_eq!((&ada["thinking"], &ada["verbose"]), (&json!("high"), &json!(true)), "{ada}");
    assert!(bob["thinking"].as_str().unwrap_or_default().is_empty() && bob["verbose"] != true, "{bob}");
    assert_eq!(of(format!("gw:telegram/group:{GROUP}"))["model"], "local/test");
    supervisor.stop().await;
}
