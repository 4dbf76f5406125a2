//! Directories as others write them.

use talon_proto::state::Layers;
use talon_store::{
    MemoryQuery, PageRequest, PluginId, Role, Session, SessionFilter, SessionState, Store, StoredMemory,
};

use super::super::Importer;
use super::{import, import_by, scratch};

const SESSION: &[u8] = include_bytes!("../../../tests/exchange/foreign/sessions/slack:C1:1700.1.yaml");
const MEMORIES: &[u8] = include_bytes!("../../../tests/exchange/foreign/memory/memories.yaml");
const STATE: &[u8] = include_bytes!("../../../tests/exchange/foreign/plugins/jira/state.yaml");

async fn only_session(store: &Store) -> Session {
    let page = store.sessions().list(&SessionFilter::default(), &PageRequest::first(10)).await.unwrap();
    assert_eq!(page.items.len(), 1);
    page.items[0].clone()
}

async fn all_memories(store: &Store) -> Vec<StoredMemory> {
    store.memory().search(&MemoryQuery::default(), &PageRequest::first(100)).await.unwrap().items
}

// Promises: STATE-23
#[tokio::test]
async fn a_channel_s_session_is_taken_over() {
    let one = scratch().await;
    let files = [("sessions/slack:C1:1700.1.yaml", SESSION)];
    for dry_run in [true, false] {
        let said = import(&one.store, Layers::Conversations, dry_run, &files).await;
        // Three are parts that have no place; the session is there.
        assert_eq!(said.counted(), (1, 0, 3), "{:?}", said.lines());
        assert_eq!(
            said.lines(),
            [
                "25:12 slack:C1:1700.1: files of messages: was left out: there is no place for it here",
                "33:19 slack:C1:1700.1: visibility of messages: was left out (2 times): there is no place for it here",
                "51:3 slack:C1:1700.1: window: was left out: there is no place for it here",
            ]
        );
    }
    let session = only_session(&one.store).await;
    assert_eq!((session.sender.as_str(), session.channel.as_str()), ("U42", "slack"));
    assert_eq!(
        (session.state, session.active_model.as_deref()),
        (SessionState::Idle, Some("anthropic/claude"))
    );
    let metadata = |key: &str| session.metadata.get(key).map(String::as_str);
    assert_eq!(metadata("imported_id"), Some("slack:C1:1700.1"));
    assert_eq!(
        (metadata("title"), metadata("debug"), metadata("budget")),
        (Some("Issues of today"), Some("true"), Some("1e3"))
    );
    assert_eq!(session.created_at.to_string(), "2026-02-21T14:00:00.123Z");
    assert_eq!(session.updated_at.to_string(), "2026-02-21T14:05:00.000Z");
    let log = one.store.sessions().export(session.id).await.unwrap().messages;
    let said: Vec<_> =
        log.iter().map(|message| (message.sequence, message.role, message.content.as_str())).collect();
    assert_eq!(
        said,
        [
            (1, Role::System, "They asked about issues before."),
            (2, Role::User, "Which issues\nare open? 🦅"),
            (3, Role::Assistant, ""),
            (4, Role::Tool, "yes"),
            (5, Role::Assistant, "Seven."),
        ]
    );
    assert_eq!(log[2].tool_calls.as_ref().unwrap()[0]["arguments"]["project"], "7");
    assert_eq!(log[3].tool_results.as_ref().unwrap()["tool_call_id"], "call_1");
    assert!(log[4].tool_calls.is_none() && log.iter().all(|message| message.at == session.created_at));
    let again = import(&one.store, Layers::Conversations, false, &files).await;
    assert_eq!(again.counted(), (0, 1, 3));
}

#[tokio::test]
async fn a_session_that_says_little_has_defaults() {
    let one = scratch().await;
    let file = b"messages:\n  - {role: user, content: hi}\ncreated_at: 0001-01-01T00:00:00Z\n";
    let said = import(&one.store, Layers::Conversations, false, &[("sessions/abc.yaml", file)]).await;
    assert_eq!(said.counted(), (1, 0, 0), "{:?}", said.lines());
    let session = only_session(&one.store).await;
    assert_eq!(
        (session.sender.as_str(), session.channel.as_str(), session.next_sequence),
        ("import", "import", 2)
    );
    assert_eq!(session.metadata["imported_id"], "abc");
    assert_eq!(session.created_at.as_millis(), 0);
}

// Promises: STATE-23
#[tokio::test]
async fn foreign_memories_and_workflows_are_taken_over() {
    let one = scratch().await;
    let files = [("memory/memories.yaml", MEMORIES)];
    for dry_run in [true, false] {
        let said = import(&one.store, Layers::Conversations, dry_run, &files).await;
        assert_eq!(said.counted(), (6, 2, 0), "{dry_run}: {:?}", said.lines());
    }
    let memories = all_memories(&one.store).await;
    assert_eq!(memories.len(), 6);
    let of = |content: &str| memories.iter().find(|memory| memory.content.contains(content)).unwrap();
    let fact = of("prefers tea");
    assert_eq!(
        (fact.source.as_str(), fact.created_at.to_string().as_str()),
        ("import", "2026-02-20T10:00:00.000Z")
    );
    assert!(fact.tags.contains("preference") && fact.workflow.is_none());
    let told = of("gitlab -> jira -> pr");
    assert!(told.tags.contains("workflow-text") && !told.tags.contains("workflow"));
    let workflow = memories
        .iter()
        .find_map(|memory| memory.workflow.as_ref().filter(|w| w.trigger.starts_with("analyze code")));
    let workflow = workflow.unwrap();
    assert_eq!((workflow.steps.len(), workflow.outcome.as_str()), (3, "success"));
    // Not YAML, however much it looks so.
    let lines = memories
        .iter()
        .find_map(|memory| memory.workflow.as_ref().filter(|w| w.trigger.starts_with("please: do")));
    assert_eq!(lines.unwrap().trigger, "please: do this\nsteps:\nand that");
    assert_eq!(lines.unwrap().steps[1].action, "create_issue");
    let json =
        memories.iter().find_map(|memory| memory.workflow.as_ref().filter(|w| w.trigger == "from json"));
    assert_eq!(json.unwrap().steps.iter().map(|step| step.order).collect::<Vec<_>>(), [1, 2]);
    let again = import(&one.store, Layers::Conversations, false, &files).await;
    assert_eq!(again.counted(), (0, 8, 0));
}

// Promises: STATE-23
#[tokio::test]
async fn foreign_plugin_state_is_taken_over() {
    let one = scratch().await;
    let files = [("plugins/jira/state.yaml", STATE)];
    let dry = import(&one.store, Layers::KeyValues, true, &files).await;
    let said = import(&one.store, Layers::KeyValues, false, &files).await;
    assert_eq!((dry.counted(), said.counted()), ((7, 0, 0), (7, 0, 0)), "{:?}", said.lines());
    let jira = PluginId::new("jira").unwrap();
    for (key, value) in [
        ("token", &b"abc"[..]),
        ("last_seen", b"2026-02-21T15:00:00Z"),
        ("raw", b"\xff\xfe"),
        ("count", b"007"),
        ("none", b""),
        ("true", b"a key like a truth"),
        ("text", b"a\nb\n"),
    ] {
        let there = one.store.key_values().get(&jira, &key.parse().unwrap()).await.unwrap();
        assert_eq!(there.as_deref(), Some(value), "{key}");
    }
}

// Promises: STATE-38
#[tokio::test]
async fn a_founding_session_is_its_senders_or_whose_the_operator_says() {
    let one = scratch().await;
    let named = b"id: c1\nsenderId: U42\nconfig:\n  model: anthropic/claude\n  thinkingLevel: high\n  verboseLevel: true\n  odd: 1\nmetadata: {model: openai/gpt}\nmessages: []\n";
    let unnamed = b"id: c2\nconfig: {verboseLevel: false}\nmessages: [{role: user, content: hello}]\n";
    let files = [("sessions/c1.yaml", named.as_slice()), ("sessions/c2.yaml", unnamed.as_slice())];
    let importer = Importer::new(one.store.clone(), Layers::Conversations, false);
    let said = import_by(importer.with_sender("anna").unwrap(), &files).await;
    assert_eq!(said.counted(), (2, 0, 1), "{:?}", said.lines());
    assert!(said.lines()[0].contains("config.odd: was left out"), "{:?}", said.lines());
    let page = one.store.sessions().list(&SessionFilter::default(), &PageRequest::first(10)).await.unwrap();
    let of = |sender: &str| page.items.iter().find(|session| session.sender == sender).unwrap();
    let (named, unnamed) = (of("U42"), of("anna"));
    let overrides = &named.overrides;
    assert_eq!(
        (overrides.model.as_deref(), overrides.thinking.as_deref(), overrides.verbosity.as_deref()),
        (Some("anthropic/claude"), Some("high"), Some("high"))
    );
    assert_eq!(named.active_model.as_deref(), Some("openai/gpt"));
    assert!(unnamed.overrides.is_empty());
    for bad in ["", "two\nlines", &"x".repeat(257)] {
        Importer::new(one.store.clone(), Layers::Conversations, false).with_sender(bad).unwrap_err();
    }
}

// Promises: STATE-39
#[tokio::test]
async fn a_plugin_with_an_underscore_is_taken_under_the_name_that_it_can_have() {
    let one = scratch().await;
    let state = b"key: value\n".as_slice();
    let files = [("plugins/my_tool/state.yaml", state), ("plugins/jira/state.yaml", state)];
    let said = import(&one.store, Layers::KeyValues, false, &files).await;
    assert_eq!(said.counted(), (2, 0, 0), "{:?}", said.lines());
    assert_eq!(said.renamed, [("plugins/my_tool/state.yaml".to_owned(), "my-tool".to_owned())]);
    let plugin = PluginId::new("my-tool").unwrap();
    let kept = one.store.key_values().entries(&plugin, "", &PageRequest::first(10)).await.unwrap();
    assert_eq!(kept.items[0].value, b"value");
    // Two of them under one name are not mixed.
    let files = [("plugins/a-b/state.yaml", state), ("plugins/a_b/state.yaml", b"key: other\n".as_slice())];
    let said = import(&one.store, Layers::KeyValues, false, &files).await;
    assert_eq!(said.counted(), (1, 0, 1), "{:?}", said.lines());
    assert!(said.lines()[0].contains("another file of this import"), "{:?}", said.lines());
    // What no id can be made of.
    let said = import(&one.store, Layers::KeyValues, false, &[("plugins/_x/state.yaml", state)]).await;
    assert_eq!(said.counted(), (0, 0, 1));
}
