//! What goes out comes back in, the same.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;
use talon_proto::state::Layers;
use talon_store::{
    Compaction, Expected, ExportedSession, Key, MemoryId, Message, Namespace, NewMemory, NewMessage,
    NewSession, Overrides, PluginId, Quota, Role, Session, SessionId, SessionState, Step, StoredMemory,
    Timestamp, Workflow,
};

use super::random::{ODD, key, memory, session, value};
use super::{Files, exported, import, import_all, scratch};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    // Promises: STATE-22
    #[test]
    fn conversations_come_back_byte_for_byte(
        sessions in prop::collection::vec(session(), 0..3),
        memories in prop::collection::vec(memory(), 0..6),
    ) {
        runtime().block_on(async {
            let (one, other) = (scratch().await, scratch().await);
            for session in &sessions {
                one.store.sessions().import(session.clone()).await.unwrap();
            }
            let mut kept = Vec::new();
            for memory in &memories {
                if one.store.memory().import(memory.clone()).await.unwrap() {
                    kept.push(memory);
                }
            }
            let files = exported(&one.store, Layers::Conversations).await;
            assert_eq!(files.len(), sessions.len() + usize::from(!memories.is_empty()));
            let records = (sessions.len() + kept.len()) as u64;
            let dry: Vec<_> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
            let said = import(&other.store, Layers::Conversations, true, &dry).await;
            assert_eq!((said.counted(), said.lines()), ((records, 0, 0), vec![]), "as planned");
            assert!(exported(&other.store, Layers::Conversations).await.is_empty());
            let said = import_all(&other.store, Layers::Conversations, &files).await;
            assert_eq!((said.counted(), said.lines()), ((records, 0, 0), vec![]), "as done");
            for session in &sessions {
                assert_eq!(&other.store.sessions().export(session.session.id).await.unwrap(), session);
            }
            for memory in kept {
                assert_eq!(other.store.memory().get(memory.id).await.unwrap().as_ref(), Some(memory));
            }
            assert_eq!(exported(&other.store, Layers::Conversations).await, files);
            for store in [&one.store, &other.store] {
                let again = import_all(store, Layers::Conversations, &files).await;
                assert_eq!((again.counted(), again.lines()), ((0, records, 0), vec![]));
            }
        });
    }

    // Promises: STATE-22
    #[test]
    fn key_values_come_back_byte_for_byte(
        plugins in prop::collection::btree_map("[a-z0-9][a-z0-9-]{0,8}", prop::collection::btree_map(key(), value(), 0..12), 0..3),
    ) {
        runtime().block_on(async {
            let (one, other) = (scratch().await, scratch().await);
            for (plugin, entries) in &plugins {
                let namespace = Namespace::of(PluginId::new(plugin).unwrap());
                for (key, value) in entries {
                    one.store.key_values().set(&namespace, key, value.clone()).await.unwrap();
                }
            }
            let files = exported(&one.store, Layers::KeyValues).await;
            let records: usize = plugins.values().map(BTreeMap::len).sum();
            let said = import_all(&other.store, Layers::KeyValues, &files).await;
            assert_eq!((said.counted(), said.lines()), ((records as u64, 0, 0), vec![]));
            for (plugin, entries) in &plugins {
                let plugin = PluginId::new(plugin).unwrap();
                for (key, value) in entries {
                    assert_eq!(other.store.key_values().get(&plugin, key).await.unwrap().as_ref(), Some(value));
                }
            }
            assert_eq!(exported(&other.store, Layers::KeyValues).await, files);
            let again = import_all(&other.store, Layers::KeyValues, &files).await;
            assert_eq!(again.counted(), (0, records as u64, 0));
        });
    }
}

// Promises: STATE-22
#[tokio::test]
async fn each_odd_text_comes_back() {
    let (one, other) = (scratch().await, scratch().await);
    let hello = Namespace::of(PluginId::new("hello").unwrap());
    let mut odd: Vec<String> = ODD.iter().map(|text| (*text).to_owned()).collect();
    odd.extend(["x".repeat(500_000), "\u{1}".repeat(500), "long line 日本 ".repeat(9_000), "\"".repeat(512)]);
    for (number, value) in odd.iter().enumerate() {
        one.store
            .key_values()
            .set(&hello, &Key::new(format!("v{number}")).unwrap(), value.clone().into())
            .await
            .unwrap();
        if let Ok(key) = Key::new(value.as_str()) {
            one.store.key_values().set(&hello, &key, b"as a key".to_vec()).await.unwrap();
        }
    }
    let files = exported(&one.store, Layers::KeyValues).await;
    let said = import_all(&other.store, Layers::KeyValues, &files).await;
    assert_eq!(said.lines(), Vec::<String>::new());
    for (number, value) in odd.iter().enumerate() {
        let key = Key::new(format!("v{number}")).unwrap();
        let there = other.store.key_values().get(&hello.plugin, &key).await.unwrap().unwrap();
        assert_eq!(String::from_utf8(there).unwrap(), *value, "{number}");
    }
    assert_eq!(exported(&other.store, Layers::KeyValues).await, files);
    // An independent YAML reader gets the same texts.
    let text = std::str::from_utf8(&files["plugins/hello/state.yaml"]).unwrap();
    let read: BTreeMap<String, String> = serde_saphyr::from_str(text).unwrap();
    for (number, value) in odd.iter().enumerate() {
        assert_eq!(read[&format!("v{number}")], *value, "{number}");
    }
}

#[tokio::test]
async fn the_files_are_as_they_always_are() {
    let one = scratch().await;
    let session = one.store.sessions().import(fixed_session()).await.unwrap();
    assert!(session);
    one.store.memory().import(fixed_memory()).await.unwrap();
    let files = exported(&one.store, Layers::Conversations).await;
    let expected = include_str!("../../../tests/exchange/ours/sessions/01KHZZZZZZ0123456789ABCDEF.yaml");
    assert_eq!(read(&files, "sessions/01KHZZZZZZ0123456789ABCDEF.yaml"), expected);
    let expected = include_str!("../../../tests/exchange/ours/memory/memories.yaml");
    assert_eq!(read(&files, "memory/memories.yaml"), expected);
    let hello = Namespace::of(PluginId::new("hello").unwrap());
    for (key, value) in [
        ("bytes", &[0xff; 70][..]),
        ("count", b"42"),
        ("empty", b""),
        ("note", "first line\nsecond — 日本\n".as_bytes()),
        ("plain", b"some words"),
        ("yes", b"no"),
    ] {
        one.store.key_values().set(&hello, &Key::new(key).unwrap(), value.to_vec()).await.unwrap();
    }
    let files = exported(&one.store, Layers::KeyValues).await;
    assert_eq!(files.len(), 1, "no file of the other layer");
    let expected = include_str!("../../../tests/exchange/ours/plugins/hello/state.yaml");
    assert_eq!(read(&files, "plugins/hello/state.yaml"), expected);
}

fn read<'a>(files: &'a Files, path: &str) -> &'a str {
    std::str::from_utf8(&files[path]).unwrap()
}

fn fixed_session() -> ExportedSession {
    let at = |seconds: i64| Timestamp::from_millis(1_771_686_000_000 + seconds * 1000);
    let message = |sequence, role, content: &str| Message {
        sequence,
        role,
        content: content.to_owned(),
        tool_calls: None,
        tool_results: None,
        at: at(i64::try_from(sequence).unwrap()),
        summarizes: None,
        replaced_by: None,
        key: None,
    };
    let calls = json!([{"id": "c1", "name": "gitlab", "arguments": {"project": "7", "deep": [[1, 2.5], [], {}], "null": null}}]);
    let messages = vec![
        Message { replaced_by: Some(3), ..message(1, Role::User, "Hello: what is up?") },
        Message { tool_calls: Some(calls), ..message(2, Role::Assistant, "") },
        Message { summarizes: Some(1), ..message(3, Role::System, "They said hello.\nNothing else.") },
        Message {
            tool_results: Some(json!({"tool_call_id": "c1"})),
            ..message(4, Role::Tool, "  indented\nresult")
        },
    ];
    let session = Session {
        id: SessionId::new("01KHZZZZZZ0123456789ABCDEF").unwrap(),
        sender: "alice".into(),
        channel: "slack:C1".into(),
        state: SessionState::Idle,
        active_model: Some("anthropic/claude".into()),
        overrides: Overrides { thinking: Some("high".into()), ..Overrides::default() },
        metadata: BTreeMap::from([("title".into(), "A title".into()), ("debug".into(), "true".into())]),
        created_at: at(0),
        updated_at: at(9),
        next_sequence: 5,
    };
    ExportedSession { session, messages }
}

fn fixed_memory() -> StoredMemory {
    let steps = vec![Step::new("gitlab", "analyze_code", 1), Step::new("jira", "create_issue", 2)];
    StoredMemory {
        id: MemoryId::new("01KHZZZZZZ0123456789ABCDEG").unwrap(),
        content: "analyze, then report".into(),
        tags: BTreeSet::from(["workflow".into(), "on".into()]),
        source: "session 1".into(),
        workflow: Some(Workflow {
            trigger: "analyze code, create issue".into(),
            steps,
            outcome: "success".into(),
        }),
        created_at: Timestamp::from_millis(1_771_686_000_000),
        count: 3,
        last_used: Timestamp::from_millis(1_771_686_123_456),
    }
}

#[tokio::test]
async fn an_empty_store_has_no_files() {
    let one = scratch().await;
    assert!(exported(&one.store, Layers::Conversations).await.is_empty());
    assert!(exported(&one.store, Layers::KeyValues).await.is_empty());
}

#[tokio::test]
async fn long_sessions_go_through_in_pieces() {
    let (one, other) = (scratch().await, scratch().await);
    let new = NewSession { sender: "a".into(), channel: "b".into(), ..NewSession::default() };
    let id = one.store.sessions().create(new).await.unwrap().id;
    for turn in 0..12 {
        let messages = (0..250)
            .map(|n| NewMessage::text(Role::User, format!("turn {turn}, {n}: {}", "word ".repeat(50))));
        one.store.sessions().append(id, Expected::Any, messages.collect()).await.unwrap();
    }
    let summary = NewMessage::text(Role::System, "what was");
    one.store.sessions().compact(id, Expected::Any, Compaction { through: 2000, summary }).await.unwrap();
    one.store
        .memory()
        .remember(NewMemory { content: "x".into(), source: "y".into(), ..NewMemory::default() })
        .await
        .unwrap();
    let files = exported(&one.store, Layers::Conversations).await;
    assert_eq!(import_all(&other.store, Layers::Conversations, &files).await.counted(), (2, 0, 0));
    assert_eq!(
        other.store.sessions().export(id).await.unwrap(),
        one.store.sessions().export(id).await.unwrap()
    );
    // The session grows; everything that was exported is still there.
    one.store.sessions().append(id, Expected::Any, vec![NewMessage::text(Role::User, "more")]).await.unwrap();
    let summary = NewMessage::text(Role::System, "and that too");
    one.store.sessions().compact(id, Expected::Any, Compaction { through: 2500, summary }).await.unwrap();
    assert_eq!(import_all(&one.store, Layers::Conversations, &files).await.counted(), (0, 2, 0));
}

// Promises: STATE-3
#[tokio::test]
async fn writes_of_an_import_share_commits() {
    let (one, other) = (scratch().await, scratch().await);
    let mut file = String::new();
    for number in 0..5_000 {
        file.push_str(&format!("key-{number:05}: value {number}\n"));
    }
    let before = one.store.counters();
    let said =
        import(&one.store, Layers::KeyValues, false, &[("plugins/hello/state.yaml", file.as_bytes())]).await;
    assert_eq!(said.counted(), (5_000, 0, 0));
    let after = one.store.counters();
    let (writes, commits) = (after.writes - before.writes, after.commits - before.commits);
    assert!(writes == 5_000 && commits <= writes / 4, "{writes} writes in {commits} commits");
    let files = exported(&one.store, Layers::KeyValues).await;
    assert_eq!(import_all(&other.store, Layers::KeyValues, &files).await.counted(), (5_000, 0, 0));
}

// Promises: AGENT-170
#[tokio::test]
async fn images_and_files_of_sessions_come_back_byte_for_byte() {
    let (one, other) = (scratch().await, scratch().await);
    let media = Namespace { plugin: PluginId::new("agent-images").unwrap(), quota: Quota::default() };
    let (first, second) = ("01KB3Q6T9VXJ6A8W5ZC2M4N7PR", "01KHZZZZZZ0123456789ABCDEF");
    let name = |time: u64, digit: char| format!("{time:013}.{}", String::from(digit).repeat(64));
    let bytes: Vec<u8> = (0..70_000_u32).map(|at| (at % 251) as u8).collect();
    let all = [
        (format!("{first}/{}/00", name(1, 'a')), bytes.clone()),
        (format!("{first}/{}/01", name(1, 'a')), b"the rest".to_vec()),
        (format!("{second}/{}/00", name(2, 'b')), bytes),
        (format!("{second}/{}/about", name(2, 'b')), br#"{"name":"a.pdf"}"#.to_vec()),
        (format!("{second}/not ours"), b"x".to_vec()),
    ];
    for (key, value) in &all {
        one.store.key_values().set(&media, &Key::new(key.clone()).unwrap(), value.clone()).await.unwrap();
    }
    let files = exported(&one.store, Layers::Conversations).await;
    let paths: Vec<&String> = files.keys().collect();
    assert_eq!(paths, [&format!("media/{first}.yaml"), &format!("media/{second}.yaml")]);
    let said = import_all(&other.store, Layers::Conversations, &files).await;
    assert_eq!((said.counted(), said.lines()), ((4, 0, 0), Vec::new()));
    for (key, value) in &all[..4] {
        let found = other.store.key_values().get(&media.plugin, &Key::new(key.clone()).unwrap()).await;
        assert_eq!(found.unwrap().as_ref(), Some(value), "{key}");
    }
    assert_eq!(exported(&other.store, Layers::Conversations).await, files);
    assert_eq!(import_all(&other.store, Layers::Conversations, &files).await.counted(), (0, 4, 0));
    for (path, bad, said) in [
        (format!("media/{first}.yaml"), "'../../x': y", "a piece of an image or file is"),
        ("media/anna.yaml".to_owned(), "x: y", "that of no session"),
        (format!("media/{}.yaml", first.to_lowercase()), "x: y", "that of no session"),
    ] {
        let files = Files::from([(path, bad.as_bytes().to_vec())]);
        let lines = import_all(&other.store, Layers::Conversations, &files).await.lines();
        assert!(lines.len() == 1 && lines[0].contains(said), "{lines:?}");
    }
}

// Promises: AGENT-84
#[tokio::test]
async fn approval_rules_come_back_and_one_that_was_used_since_is_the_same() {
    let (one, other) = (scratch().await, scratch().await);
    let approvals = Namespace::of(PluginId::new("agent-approvals").unwrap());
    let id = "01KHZZZZZZ0123456789ABCDEF";
    let key = Key::new(format!("rule/{id}")).unwrap();
    let rule = |uses: u64, action: &str| {
        let arguments = json!({ "command": { "pattern": "make *" } });
        json!({ "id": id, "sender": "anna", "plugin": "shell", "action": action, "arguments": arguments, "uses": uses })
            .to_string()
            .into_bytes()
    };
    let kept = one.store.key_values();
    kept.set(&approvals, &key, rule(3, "run")).await.unwrap();
    kept.set(&approvals, &Key::new("approval/01KHZZZZZZ0123456789ABCDEF").unwrap(), b"{}".to_vec())
        .await
        .unwrap();
    let files = exported(&one.store, Layers::Conversations).await;
    assert_eq!(files.keys().collect::<Vec<_>>(), ["approvals/rules.yaml"], "what waits is no state to move");
    let said = import_all(&other.store, Layers::Conversations, &files).await;
    assert_eq!((said.counted(), said.lines()), ((1, 0, 0), Vec::new()));
    assert_eq!(exported(&other.store, Layers::Conversations).await, files);
    other.store.key_values().set(&approvals, &key, rule(9, "run")).await.unwrap();
    assert_eq!(import_all(&other.store, Layers::Conversations, &files).await.counted(), (0, 1, 0));
    other.store.key_values().set(&approvals, &key, rule(3, "stop")).await.unwrap();
    assert_eq!(import_all(&other.store, Layers::Conversations, &files).await.counted(), (0, 0, 1));
    for (bad, said) in [
        ("x: '{}'", "is a ULID"),
        ("01KHZZZZZZ0123456789ABCDEF: 'no'", "JSON object"),
        ("01KHZZZZZZ0123456789ABCDEF: '{}'", "has no id"),
    ] {
        let files = Files::from([("approvals/rules.yaml".to_owned(), bad.as_bytes().to_vec())]);
        let lines = import_all(&other.store, Layers::Conversations, &files).await.lines();
        assert!(lines.len() == 1 && lines[0].contains(said), "{lines:?}");
    }
}

// Promises: SHADOW-27
#[tokio::test]
async fn what_the_shadow_loop_keeps_goes_round_and_begins_nothing() {
    let (one, other) = (scratch().await, scratch().await);
    let shadow = Namespace::of(PluginId::new("agent-shadow").unwrap());
    let kept = one.store.key_values();
    for (key, value) in [
        ("ghost/01KHZZZZZZ0123456789ABCDEF", &b"\x0a\xff"[..]),
        ("log/01KHZZZZZZ0123456789ABCDEF", b"x"),
        ("sender/anna", b"{}"),
        ("goal/01KHZZZZZZ0123456789ABCDEF", b"Mend it."),
    ] {
        kept.set(&shadow, &Key::new(key).unwrap(), value.to_vec()).await.unwrap();
    }
    let files = exported(&one.store, Layers::Conversations).await;
    assert_eq!(files.keys().collect::<Vec<_>>(), ["shadow/state.yaml"]);
    let said = import_all(&other.store, Layers::Conversations, &files).await;
    assert_eq!((said.counted(), said.lines()), ((3, 0, 0), Vec::new()));
    assert_eq!(exported(&other.store, Layers::Conversations).await, files);
    assert_eq!(import_all(&other.store, Layers::Conversations, &files).await.counted(), (0, 3, 0));
    let goal = Files::from([("shadow/state.yaml".to_owned(), b"goal/x: Do it.".to_vec())]);
    let lines = import_all(&other.store, Layers::Conversations, &goal).await.lines();
    assert!(lines.len() == 1 && lines[0].contains("none of sender/NAME"), "{lines:?}");
}

/// A finished occurrence, and one that is not.
async fn with_occurrences(store: &talon_store::Store) {
    let (schedule, at) = (store.schedule(), Timestamp::from_millis);
    let jobs = vec![talon_store::JobTiming { job: "digest".into(), timing: "t".into() }];
    schedule.set_jobs(jobs, at(0)).await.unwrap();
    let new = |planned: i64, missed: Option<&str>| talon_store::NewOccurrence {
        planned_at: at(planned),
        begins_at: at(planned),
        kind: talon_store::OccurrenceKind::Planned,
        missed: missed.map(str::to_owned),
    };
    let occurrences = vec![new(1000, Some("nothing ran")), new(2000, None)];
    let plan = talon_store::Plan { job: "digest".into(), from: at(0), to: at(2000), occurrences };
    assert!(schedule.plan(plan).await.unwrap());
}

// Promises: EXT-40
#[tokio::test]
async fn what_jobs_did_comes_back_and_what_they_will_do_does_not() {
    let (one, other) = (scratch().await, scratch().await);
    with_occurrences(&one.store).await;
    let files = exported(&one.store, Layers::Conversations).await;
    assert_eq!(files.keys().collect::<Vec<_>>(), ["schedule/occurrences.yaml"]);
    let said = import_all(&other.store, Layers::Conversations, &files).await;
    assert_eq!((said.counted(), said.lines()), ((1, 0, 0), vec![]));
    let at = Timestamp::from_millis(1000);
    let there = other.store.schedule().get("digest", at).await.unwrap().unwrap();
    assert_eq!(there.note, "nothing ran");
    assert_eq!(exported(&other.store, Layers::Conversations).await, files);
    for store in [&one.store, &other.store] {
        let again = import_all(store, Layers::Conversations, &files).await;
        assert_eq!((again.counted(), again.lines()), ((0, 1, 0), vec![]));
    }
    let text = String::from_utf8(files["schedule/occurrences.yaml"].clone()).unwrap();
    for bad in [
        text.replace("missed", "running"),
        text.replacen("digest", "other", 1),
        text.replace("nothing ran", "another run"),
        "a b: text\n".to_owned(),
        "[1, 2]\n".to_owned(),
    ] {
        let files = Files::from([("schedule/occurrences.yaml".to_owned(), bad.clone().into_bytes())]);
        let said = import_all(&one.store, Layers::Conversations, &files).await;
        assert_eq!(said.counted(), (0, 0, 1), "{bad}");
    }
}

// Promises: EXT-167
#[tokio::test]
async fn decisions_about_proposed_jobs_come_back_and_undecided_ones_do_not() {
    let (one, other) = (scratch().await, scratch().await);
    let new = |job: &str, digit: &str| talon_store::NewProposal {
        job: job.to_owned(),
        digest: digit.repeat(64),
        plugin: "files".to_owned(),
        proposal: format!("{{\"id\":\"{job}\"}}"),
    };
    let proposals = vec![
        new("files.tidy", "a"),
        new("files.tidy", "b"),
        new("files.weekly", "c"),
        new("files.open", "d"),
    ];
    let declared = talon_store::DeclaredProposals { proposals, silent: Vec::new() };
    let (store, at) = (one.store.job_proposals(), Timestamp::from_millis(1000));
    store.declare(declared, at).await.unwrap();
    for (job, digit, accept) in
        [("files.tidy", "a", true), ("files.tidy", "b", false), ("files.weekly", "c", false)]
    {
        let decision =
            talon_store::ProposalDecision { job: job.to_owned(), digest: digit.repeat(64), accept };
        assert!(store.decide(decision, at).await.unwrap().is_some());
    }
    let files = exported(&one.store, Layers::Conversations).await;
    assert_eq!(files.keys().collect::<Vec<_>>(), ["schedule/proposals.yaml"]);
    let said = import_all(&other.store, Layers::Conversations, &files).await;
    assert_eq!((said.counted(), said.lines()), ((3, 0, 0), vec![]));
    assert_eq!(exported(&other.store, Layers::Conversations).await, files);
    let again = import_all(&other.store, Layers::Conversations, &files).await;
    assert_eq!((again.counted(), again.lines()), ((0, 3, 0), vec![]));
    let text = String::from_utf8(files["schedule/proposals.yaml"].clone()).unwrap();
    for (bad, refused) in [
        // What the other store decided stays.
        (text.replace(r#"\"accepted\""#, r#"\"rejected\""#), 1),
        (text.replace(r#"\"rejected\""#, r#"\"proposed\""#), 2),
        (text.replacen("files.weekly", "other", 1), 1),
    ] {
        let files = Files::from([("schedule/proposals.yaml".to_owned(), bad.clone().into_bytes())]);
        let said = import_all(&other.store, Layers::Conversations, &files).await;
        assert_eq!(said.counted().2, refused, "{bad}");
    }
}

// Promises: EXT-56
#[tokio::test]
async fn notifications_come_back_and_are_not_told_because_of_a_copy() {
    let (one, other) = (scratch().await, scratch().await);
    let at = Timestamp::from_millis;
    let new = |id: &str| talon_store::NewNotification {
        id: format!("01KAAAAAAAAAAAAAAAAAAA{id}"),
        event: format!("event {id}"),
        key: talon_store::GroupKey { entry: "ops".into(), group: "one".into() },
        severity: "info".into(),
        payload: r#"{"events":[{"id":"x"}]}"#.into(),
        count: 1,
        due_at: at(1000),
        closes_at: at(0),
        created_at: at(1000),
    };
    let changes = ["0001", "0002"].map(|id| talon_store::NotificationChange::New(new(id)));
    let outbox = one.store.outbox();
    let batch = talon_store::NotificationBatch { changes: changes.to_vec(), ..Default::default() };
    assert!(outbox.write(batch).await.unwrap());
    let claim = talon_store::NotificationClaim {
        id: new("0001").id,
        holder: "x".into(),
        lease: std::time::Duration::from_secs(60),
        now: at(2000),
    };
    let claimed = outbox.claim(claim).await.unwrap().unwrap();
    outbox.end(&claimed.handle(), talon_store::NotificationEnd::Delivered, at(3000)).await.unwrap();
    let files = exported(&one.store, Layers::Conversations).await;
    assert_eq!(files.keys().collect::<Vec<_>>(), ["notifications/notifications.yaml"]);
    let said = import_all(&other.store, Layers::Conversations, &files).await;
    assert_eq!((said.counted(), said.lines()), ((2, 0, 0), vec![]));
    let there = other.store.outbox().counts().await.unwrap();
    assert_eq!((there.delivered, there.given_up, there.waiting), (1, 1, 0));
    assert_eq!(exported(&other.store, Layers::Conversations).await, files);
    for store in [&one.store, &other.store] {
        let again = import_all(store, Layers::Conversations, &files).await;
        assert_eq!((again.counted(), again.lines()), ((0, 2, 0), vec![]));
    }
    let text = String::from_utf8(files["notifications/notifications.yaml"].clone()).unwrap();
    for bad in [
        text.replace("delivered", "sent"),
        text.replacen("01KA", "01KB", 1),
        text.replace("ops", "dev"),
        "a: text\n".to_owned(),
        "[1, 2]\n".to_owned(),
    ] {
        let files = Files::from([("notifications/notifications.yaml".to_owned(), bad.clone().into_bytes())]);
        let said = import_all(&one.store, Layers::Conversations, &files).await;
        assert!(said.counted().0 == 0 && said.counted().2 > 0, "{bad}");
    }
}
