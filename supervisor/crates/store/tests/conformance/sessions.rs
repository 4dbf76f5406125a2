//! Sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use talon_store::limits::IDLE_AFTER;
use talon_store::{
    Compaction, Error, Expected, NewMessage, NewSession, PageRequest, Role, Session, SessionChange,
    SessionFilter, SessionId, SessionQuery, SessionState, Store, Timestamp, View,
};

use crate::support::{Fixture, cases};

cases![
    a_session_is_what_it_was_made_of,
    messages_are_appended_and_numbered,
    an_append_is_whole_or_nothing,
    an_append_to_an_unexpected_end_is_refused,
    two_openers_that_append_take_turns,
    a_key_is_written_once_in_a_session,
    a_note_leaves_state_and_time_as_they_are,
    a_compaction_keeps_what_it_replaced,
    a_second_compaction_replaces_the_first_summary,
    a_compaction_of_nothing_is_refused,
    overrides_and_metadata_change_alone,
    an_idle_session_is_active_again_when_it_is_used,
    sessions_are_listed_by_when_they_were_written,
    a_session_of_half_an_hour_ago_becomes_idle_and_keeps_its_messages,
    sessions_are_listed_by_filter_and_in_pages,
    all_sessions_are_paged_while_others_come_and_go,
    sessions_of_a_sender_are_counted_up_to_a_bound,
    messages_come_in_pages_that_end_early_when_large,
    messages_are_found_by_their_words,
    a_deleted_session_leaves_nothing,
    an_exported_session_is_imported_elsewhere_once,
    what_no_session_can_be_is_refused,
    any_text_is_kept_as_it_is,
];

fn says(text: &str) -> NewMessage {
    NewMessage::text(Role::User, text)
}

async fn begin(store: &Store, sender: &str) -> Session {
    let new = NewSession { sender: sender.into(), channel: "terminal".into(), ..NewSession::default() };
    store.sessions().create(new).await.unwrap()
}

async fn view(store: &Store, id: SessionId, view: View) -> Vec<String> {
    let page = store.sessions().messages(id, view, &PageRequest::default()).await.unwrap();
    page.items.into_iter().map(|message| message.content).collect()
}

async fn sessions_of_a_sender_are_counted_up_to_a_bound(Fixture { store, .. }: Fixture) {
    let sessions = store.sessions();
    assert_eq!(sessions.count("ada", 10).await.unwrap(), 0);
    for _ in 0..3 {
        begin(&store, "ada").await;
    }
    let last = begin(&store, "bob").await;
    assert_eq!((sessions.count("ada", 10).await.unwrap(), sessions.count("ada", 2).await.unwrap()), (3, 2));
    sessions.delete(last.id).await.unwrap();
    assert_eq!(sessions.count("bob", 10).await.unwrap(), 0);
}

async fn a_session_is_what_it_was_made_of(Fixture { store, .. }: Fixture) {
    let metadata = BTreeMap::from([("language".to_owned(), "tlh\0".to_owned())]);
    let new = NewSession {
        sender: "ada".into(),
        channel: "slack/#general".into(),
        active_model: Some("opus".into()),
        metadata: metadata.clone(),
    };
    let session = store.sessions().create(new).await.unwrap();
    assert_eq!((session.sender.as_str(), session.state), ("ada", SessionState::Active));
    assert_eq!((session.active_model.as_deref(), &session.metadata), (Some("opus"), &metadata));
    assert_eq!((session.next_sequence, session.created_at), (1, session.updated_at));
    assert_eq!(store.sessions().get(session.id).await.unwrap(), Some(session));
    assert_eq!(store.sessions().get(SessionId::generate()).await.unwrap(), None);
}

async fn messages_are_appended_and_numbered(Fixture { store, .. }: Fixture) {
    let id = begin(&store, "ada").await.id;
    let calls = json!([{ "plugin": "hello", "args": { "name": "A\u{0}da" } }]);
    let call = NewMessage { tool_calls: Some(calls.clone()), ..NewMessage::text(Role::Assistant, "") };
    let result = NewMessage { tool_results: Some(json!("hi")), ..NewMessage::text(Role::Tool, "") };
    let first = store.sessions().append(id, Expected::Any, vec![says("one")]).await.unwrap();
    let more = store.sessions().append(id, Expected::Next(2), vec![call, result]).await.unwrap();
    assert_eq!((first[0].sequence, more[0].sequence, more[1].sequence), (1, 2, 3));
    let all = store.sessions().messages(id, View::Live, &PageRequest::default()).await.unwrap();
    assert_eq!(all.items, [first, more].concat());
    assert_eq!(all.items[1].tool_calls, Some(calls));
    let session = store.sessions().get(id).await.unwrap().unwrap();
    assert_eq!((session.next_sequence, session.updated_at), (4, all.items[2].at));
}

async fn an_append_is_whole_or_nothing(Fixture { store, .. }: Fixture) {
    let id = begin(&store, "ada").await.id;
    let long = says(&"x".repeat(1024 * 1024 + 1));
    for refused in [vec![], vec![says("fits"), long], vec![says("x"); 257]] {
        let appended = store.sessions().append(id, Expected::Any, refused).await;
        assert!(matches!(appended, Err(Error::Invalid { .. })));
    }
    assert!(view(&store, id, View::All).await.is_empty());
    let nowhere = SessionId::generate();
    let appended = store.sessions().append(nowhere, Expected::Any, vec![says("x")]).await;
    assert!(matches!(appended, Err(Error::NoSession(id)) if id == nowhere));
}

async fn an_append_to_an_unexpected_end_is_refused(Fixture { store, .. }: Fixture) {
    let id = begin(&store, "ada").await.id;
    store.sessions().append(id, Expected::Next(1), vec![says("one")]).await.unwrap();
    let late = store.sessions().append(id, Expected::Next(1), vec![says("also one")]).await;
    assert!(matches!(late, Err(Error::OutOfSequence { expected: 1, next: 2, .. })), "{late:?}");
    assert_eq!(view(&store, id, View::All).await, ["one"]);
}

async fn two_openers_that_append_take_turns(Fixture { store, open }: Fixture) {
    let other = open.open().await.unwrap();
    let id = begin(&store, "ada").await.id;
    let writing: Vec<_> = (0..8)
        .map(|writer| {
            let sessions = if writer % 2 == 0 { store.sessions() } else { other.sessions() };
            tokio::spawn(async move {
                for turn in 0..10 {
                    let pair = vec![says(&format!("{writer} {turn} a")), says(&format!("{writer} {turn} b"))];
                    sessions.append(id, Expected::Any, pair).await.unwrap();
                }
            })
        })
        .collect();
    for one in writing {
        one.await.unwrap();
    }
    let page = store.sessions().messages(id, View::All, &PageRequest::first(1000)).await.unwrap();
    assert!(page.items.iter().zip(1..).all(|(message, number)| message.sequence == number));
    assert_eq!(page.items.len(), 160);
    for pair in page.items.chunks(2) {
        assert_eq!(pair[0].content.replace('a', "b"), pair[1].content);
    }
    // Both begin where one of them ends.
    let next = Expected::Next(161);
    let (here, there) = (store.sessions(), other.sessions());
    let (a, b) =
        tokio::join!(here.append(id, next, vec![says("a")]), there.append(id, next, vec![says("b")]));
    assert_eq!(u8::from(a.is_ok()) + u8::from(b.is_ok()), 1, "{a:?} {b:?}");
    other.close().await;
}

async fn a_compaction_keeps_what_it_replaced(Fixture { store, .. }: Fixture) {
    let id = begin(&store, "ada").await.id;
    let all = ["one", "two", "three", "four"];
    store.sessions().append(id, Expected::Any, all.map(says).to_vec()).await.unwrap();
    let summary = NewMessage::text(Role::System, "one to three");
    let with = Compaction { through: 3, summary };
    let stale = store.sessions().compact(id, Expected::Next(4), with.clone()).await;
    assert!(matches!(stale, Err(Error::OutOfSequence { .. })));
    let made = store.sessions().compact(id, Expected::Next(5), with).await.unwrap();
    assert_eq!((made.sequence, made.summarizes, made.replaced_by), (5, Some(3), None));
    store.sessions().append(id, Expected::Any, vec![says("five")]).await.unwrap();
    assert_eq!(view(&store, id, View::Live).await, ["one to three", "four", "five"]);
    assert_eq!(view(&store, id, View::All).await, ["one", "two", "three", "four", "one to three", "five"]);
    assert_eq!(view(&store, id, View::ReplacedBy(5)).await, ["one", "two", "three"]);
    let old = store.sessions().messages(id, View::ReplacedBy(5), &PageRequest::first(1)).await.unwrap();
    assert_eq!(old.items[0].replaced_by, Some(5));
    // In pages it is the same.
    let (mut live, mut request) = (Vec::new(), PageRequest::first(1));
    loop {
        let page = store.sessions().messages(id, View::Live, &request).await.unwrap();
        live.extend(page.items.into_iter().map(|message| message.content));
        let Some(next) = page.next else { break };
        request = PageRequest::after(next, 1);
    }
    assert_eq!(live, ["one to three", "four", "five"]);
}

async fn a_second_compaction_replaces_the_first_summary(Fixture { store, .. }: Fixture) {
    let id = begin(&store, "ada").await.id;
    store.sessions().append(id, Expected::Any, ["1", "2", "3", "4"].map(says).to_vec()).await.unwrap();
    for (through, summary) in [(2, "1-2"), (3, "1-3")] {
        let with = Compaction { through, summary: says(summary) };
        store.sessions().compact(id, Expected::Any, with).await.unwrap();
    }
    assert_eq!(view(&store, id, View::Live).await, ["1-3", "4"]);
    assert_eq!(view(&store, id, View::ReplacedBy(5)).await, ["1", "2"]);
    assert_eq!(view(&store, id, View::ReplacedBy(6)).await, ["3", "1-2"]);
}

async fn a_compaction_of_nothing_is_refused(Fixture { store, .. }: Fixture) {
    let id = begin(&store, "ada").await.id;
    store.sessions().append(id, Expected::Any, ["1", "2", "3"].map(says).to_vec()).await.unwrap();
    let with = |through| Compaction { through, summary: says("s") };
    store.sessions().compact(id, Expected::Any, with(2)).await.unwrap();
    for through in [0, 1, 5, u64::MAX] {
        let refused = store.sessions().compact(id, Expected::Any, with(through)).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{through}: {refused:?}");
    }
    assert_eq!(store.sessions().get(id).await.unwrap().unwrap().next_sequence, 5);
}

async fn overrides_and_metadata_change_alone(Fixture { store, .. }: Fixture) {
    let id = begin(&store, "ada").await.id;
    let some = |text: &str| Some(Some(text.to_owned()));
    let change = SessionChange {
        active_model: some("opus"),
        thinking: some("high"),
        metadata: BTreeMap::from([("a".into(), Some("1".into())), ("b".into(), Some("2".into()))]),
        ..SessionChange::default()
    };
    let session = store.sessions().update(id, change).await.unwrap();
    assert_eq!(session.overrides.thinking.as_deref(), Some("high"));
    assert_eq!((session.active_model.as_deref(), session.metadata.len()), (Some("opus"), 2));
    let change = SessionChange {
        model: some("haiku"),
        verbosity: some("low"),
        thinking: Some(None),
        metadata: BTreeMap::from([("a".into(), None)]),
        ..SessionChange::default()
    };
    let session = store.sessions().update(id, change).await.unwrap();
    let overrides = &session.overrides;
    assert_eq!((overrides.model.as_deref(), overrides.thinking.as_deref()), (Some("haiku"), None));
    assert_eq!((session.active_model.as_deref(), session.metadata.len()), (Some("opus"), 1));
    assert_eq!(store.sessions().get(id).await.unwrap(), Some(session));
    let refused = SessionChange { model: some("two\nlines"), ..SessionChange::default() };
    assert!(matches!(store.sessions().update(id, refused).await, Err(Error::Invalid { .. })));
    let nobody = store.sessions().update(SessionId::generate(), SessionChange::default()).await;
    assert!(matches!(nobody, Err(Error::NoSession(_))));
}

async fn a_key_is_written_once_in_a_session(Fixture { store, .. }: Fixture) {
    let sessions = store.sessions();
    let (id, other) = (begin(&store, "ada").await.id, begin(&store, "ada").await.id);
    let keyed = |text: &str, key: &str| NewMessage { key: Some(key.into()), ..says(text) };
    sessions.append(id, Expected::Any, vec![says("zero"), keyed("one", "a\u{e4}")]).await.unwrap();
    for again in [vec![keyed("two", "a\u{e4}")], vec![says("three"), keyed("four", "b"), keyed("five", "b")]]
    {
        let refused = sessions.append(id, Expected::Any, again).await;
        assert!(matches!(refused, Err(Error::KeyExists { .. })), "{refused:?}");
    }
    assert_eq!(view(&store, id, View::All).await, ["zero", "one"], "a refused append leaves nothing");
    sessions.append(other, Expected::Any, vec![keyed("elsewhere", "a\u{e4}")]).await.unwrap();
    let found = sessions.keyed(id, "a\u{e4}").await.unwrap().unwrap();
    assert_eq!((found.sequence, found.content.as_str(), found.key.as_deref()), (2, "one", Some("a\u{e4}")));
    assert_eq!(sessions.keyed(id, "A\u{e4}").await.unwrap(), None);
    assert!(matches!(sessions.keyed(SessionId::generate(), "a").await, Err(Error::NoSession(_))));
    // Also of what a summary stands for, and over an export.
    let with = Compaction { through: 2, summary: NewMessage::text(Role::System, "short") };
    sessions.compact(id, Expected::Any, with).await.unwrap();
    assert_eq!(sessions.keyed(id, "a\u{e4}").await.unwrap().unwrap().replaced_by, Some(3));
    let exported = sessions.export(id).await.unwrap();
    sessions.delete(id).await.unwrap();
    let mut twice = exported.clone();
    twice.messages[0].key = Some("a\u{e4}".into());
    assert!(matches!(sessions.import(twice).await, Err(Error::Invalid(_))));
    assert!(sessions.import(exported).await.unwrap());
    let refused = sessions.append(id, Expected::Any, vec![keyed("two", "a\u{e4}")]).await;
    assert!(matches!(refused, Err(Error::KeyExists { .. })), "{refused:?}");
    let refused = sessions.append(id, Expected::Any, vec![keyed("two", "")]).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

async fn a_note_leaves_state_and_time_as_they_are(Fixture { store, .. }: Fixture) {
    let sessions = store.sessions();
    let id = left(&store, "ada", IDLE_AFTER * 2).await;
    let before = sessions.get(id).await.unwrap().unwrap();
    let since = Timestamp::now().before(IDLE_AFTER);
    let idle = sessions.idle(since, 100, Some(says("nobody is there"))).await.unwrap();
    assert_eq!(idle, [id]);
    sessions.note(id, vec![says("noted")]).await.unwrap();
    let after = sessions.get(id).await.unwrap().unwrap();
    assert_eq!((after.state, after.updated_at), (SessionState::Idle, before.updated_at));
    assert_eq!(after.next_sequence, before.next_sequence + 2);
    assert_eq!(view(&store, id, View::All).await, ["kept", "nobody is there", "noted"]);
    let rest = sessions.messages(id, View::All, &PageRequest::after_message(2, 10)).await.unwrap();
    assert_eq!(rest.items.len(), 1);
    assert!(matches!(sessions.note(SessionId::generate(), vec![says("?")]).await, Err(Error::NoSession(_))));
}

async fn an_idle_session_is_active_again_when_it_is_used(Fixture { store, .. }: Fixture) {
    let sessions = store.sessions();
    let (a, b) = (begin(&store, "a").await.id, begin(&store, "b").await.id);
    let now = Timestamp::now();
    assert!(sessions.idle(now.before(IDLE_AFTER), 100, None).await.unwrap().is_empty());
    let later = Timestamp::from_millis(now.as_millis() + 60_000);
    assert_eq!(sessions.idle(later, 1, None).await.unwrap().len(), 1);
    assert_eq!(sessions.idle(later, 100, None).await.unwrap().len(), 1);
    assert!(sessions.idle(later, 100, None).await.unwrap().is_empty());
    assert_eq!(sessions.get(a).await.unwrap().unwrap().state, SessionState::Idle);
    assert_eq!(sessions.resume(a).await.unwrap().state, SessionState::Active);
    sessions.append(b, Expected::Any, vec![says("back")]).await.unwrap();
    for id in [a, b] {
        assert_eq!(sessions.get(id).await.unwrap().unwrap().state, SessionState::Active);
    }
    assert!(matches!(sessions.resume(SessionId::generate()).await, Err(Error::NoSession(_))));
}

async fn sessions_are_listed_by_when_they_were_written(Fixture { store, .. }: Fixture) {
    let hour = Duration::from_secs(3600);
    let (old, new) = (left(&store, "ada", 5 * hour).await, left(&store, "ada", hour).await);
    let found = async |filter: SessionFilter| {
        let page = store.sessions().list(&filter, &PageRequest::default()).await.unwrap();
        page.items.into_iter().map(|session| session.id).collect::<Vec<_>>()
    };
    let (then, none) = (Some(Timestamp::now().before(3 * hour)), SessionFilter::default());
    assert_eq!(found(SessionFilter { updated_before: then, ..none.clone() }).await, [old]);
    assert_eq!(found(SessionFilter { updated_since: then, ..none.clone() }).await, [new]);
    let never = SessionFilter { updated_since: then, updated_before: then, ..none };
    assert!(found(never).await.is_empty());
}

/// A session that was last written to so long ago.
async fn left(store: &Store, sender: &str, ago: Duration) -> SessionId {
    let id = begin(store, sender).await.id;
    store.sessions().append(id, Expected::Any, vec![says("kept")]).await.unwrap();
    let mut exported = store.sessions().export(id).await.unwrap();
    exported.session.updated_at = Timestamp::now().before(ago);
    store.sessions().delete(id).await.unwrap();
    assert!(store.sessions().import(exported).await.unwrap());
    id
}

async fn a_session_of_half_an_hour_ago_becomes_idle_and_keeps_its_messages(Fixture { store, .. }: Fixture) {
    assert_eq!(IDLE_AFTER, Duration::from_secs(30 * 60));
    let minute = Duration::from_secs(60);
    let (resumed, written) = (
        left(&store, "ada", IDLE_AFTER + minute).await,
        left(&store, "bob", IDLE_AFTER + 100 * minute).await,
    );
    let still = left(&store, "eve", IDLE_AFTER - 10 * minute).await;
    let sessions = store.sessions();
    let state = async |id| sessions.get(id).await.unwrap().unwrap().state;
    let mut idle = sessions.idle(Timestamp::now().before(IDLE_AFTER), 100, None).await.unwrap();
    idle.sort_unstable();
    assert_eq!(idle, [resumed, written]);
    for (id, expected) in
        [(resumed, SessionState::Idle), (written, SessionState::Idle), (still, SessionState::Active)]
    {
        assert_eq!((state(id).await, view(&store, id, View::All).await), (expected, vec!["kept".to_owned()]));
    }
    assert_eq!(sessions.resume(resumed).await.unwrap().state, SessionState::Active);
    sessions.append(written, Expected::Next(2), vec![says("more")]).await.unwrap();
    for (id, messages) in [(resumed, &["kept"][..]), (written, &["kept", "more"])] {
        assert_eq!(state(id).await, SessionState::Active);
        assert_eq!(view(&store, id, View::Live).await, messages);
    }
    // A resumed session is not idle at once.
    assert!(sessions.idle(Timestamp::now().before(IDLE_AFTER), 100, None).await.unwrap().is_empty());
}

async fn sessions_are_listed_by_filter_and_in_pages(Fixture { store, .. }: Fixture) {
    let sessions = store.sessions();
    let mut made = Vec::new();
    for sender in ["ada", "bob", "ada", "ada", "bob"] {
        made.push(begin(&store, sender).await.id);
    }
    let of_ada = SessionFilter { sender: Some("ada".into()), ..SessionFilter::default() };
    let first = sessions.list(&of_ada, &PageRequest::first(2)).await.unwrap();
    let rest = sessions.list(&of_ada, &PageRequest::after(first.next.unwrap(), 2)).await.unwrap();
    let ids: Vec<_> = first.items.iter().chain(&rest.items).map(|session| session.id).collect();
    assert_eq!((ids, rest.next), (vec![made[3], made[2], made[0]], None));
    let count = |filter: SessionFilter| {
        let sessions = store.sessions();
        async move { sessions.list(&filter, &PageRequest::default()).await.unwrap().items.len() }
    };
    assert_eq!(count(SessionFilter::default()).await, 5);
    assert_eq!(count(SessionFilter { channel: Some("other".into()), ..Default::default() }).await, 0);
    assert_eq!(count(SessionFilter { state: Some(SessionState::Idle), ..Default::default() }).await, 0);
    let later = Timestamp::from_millis(Timestamp::now().as_millis() + 60_000);
    assert_eq!(count(SessionFilter { updated_since: Some(later), ..Default::default() }).await, 0);
}

async fn all_sessions_are_paged_while_others_come_and_go(Fixture { store, .. }: Fixture) {
    let (db, mut there) = (store.sessions(), Vec::new());
    for number in 0..10 {
        there.push(begin(&store, &format!("s{number}")).await.id);
    }
    let (mut read, mut request) = (Vec::new(), PageRequest::first(3));
    loop {
        let page = db.list(&SessionFilter::default(), &request).await.unwrap();
        read.extend(page.items.into_iter().map(|session| session.id));
        let Some(next) = page.next else { break };
        request = PageRequest::after(next, 3);
        // Neither one that is new nor one that was read and changes or goes makes another be missed or come
        // twice.
        begin(&store, "new").await;
        let message = NewMessage::text(Role::User, "again".to_owned());
        db.append(read[0], Expected::Any, vec![message]).await.unwrap();
        db.delete(read[1]).await.unwrap();
    }
    there.sort_unstable();
    there.reverse();
    assert_eq!(read, there);
}

async fn messages_come_in_pages_that_end_early_when_large(Fixture { store, .. }: Fixture) {
    let id = begin(&store, "ada").await.id;
    let large = "x".repeat(1024 * 1024);
    for _ in 0..6 {
        store.sessions().append(id, Expected::Any, vec![says(&large)]).await.unwrap();
    }
    let (mut sizes, mut request) = (Vec::new(), PageRequest::default());
    loop {
        let page = store.sessions().messages(id, View::Live, &request).await.unwrap();
        sizes.push(page.items.len());
        let Some(next) = page.next else { break };
        request = PageRequest::after(next, 0);
    }
    assert_eq!(sizes, [4, 2]);
}

async fn messages_are_found_by_their_words(Fixture { store, .. }: Fixture) {
    let sessions = store.sessions();
    let (ada, bob) = (begin(&store, "ada").await.id, begin(&store, "bob").await.id);
    let texts = ["Die Brücke über den Fluss", "a bridge; bridges and a bridge", "東京都庁へ行く"];
    sessions.append(ada, Expected::Any, texts.map(says).to_vec()).await.unwrap();
    let long = format!("some {} bridge", "other words ".repeat(50));
    sessions.append(bob, Expected::Any, vec![says(&long)]).await.unwrap();
    let find = |query: SessionQuery| {
        let sessions = store.sessions();
        async move {
            let page = sessions.search(&query, &PageRequest::default()).await.unwrap();
            page.items.into_iter().map(|hit| (hit.session, hit.message.sequence)).collect::<Vec<_>>()
        }
    };
    let text = |text: &str| SessionQuery { text: text.into(), ..SessionQuery::default() };
    assert_eq!(find(text("BRUCKE fluss")).await, [(ada, 1)]);
    assert_eq!(find(text("京都")).await, [(ada, 3)]);
    assert_eq!(find(text("庁")).await, [(ada, 3)]);
    assert_eq!(find(text("bridge")).await, [(ada, 2), (bob, 1)]);
    assert_eq!(find(text("bridge nowhere")).await, []);
    assert_eq!(find(SessionQuery { session: Some(bob), ..text("bridge") }).await, [(bob, 1)]);
    assert_eq!(find(SessionQuery { sender: Some("ada".into()), ..text("bridge") }).await, [(ada, 2)]);
    let first = sessions.search(&text("bridge"), &PageRequest::first(1)).await.unwrap();
    let second = sessions.search(&text("bridge"), &PageRequest::after(first.next.unwrap(), 1)).await.unwrap();
    assert_eq!((second.items[0].session, second.next), (bob, None));
    // What was replaced is found when it is asked for.
    let with = Compaction { through: 2, summary: says("about crossings") };
    sessions.compact(ada, Expected::Any, with).await.unwrap();
    assert_eq!(find(text("bridge")).await, [(bob, 1)]);
    assert_eq!(find(SessionQuery { include_replaced: true, ..text("bridge") }).await.len(), 2);
    assert_eq!(find(text("cross")).await, [(ada, 4)]);
    for refused in ["", "!?", "\" OR *"] {
        let found = sessions.search(&text(refused), &PageRequest::default()).await;
        assert_eq!(found.is_err(), refused != "\" OR *", "{refused}");
    }
}

async fn a_deleted_session_leaves_nothing(Fixture { store, .. }: Fixture) {
    let sessions = store.sessions();
    let (gone, kept) = (begin(&store, "ada").await.id, begin(&store, "ada").await.id);
    for id in [gone, kept] {
        sessions.append(id, Expected::Any, vec![says("secret")]).await.unwrap();
    }
    assert!(sessions.delete(gone).await.unwrap());
    assert!(!sessions.delete(gone).await.unwrap());
    assert_eq!(sessions.get(gone).await.unwrap(), None);
    let none = sessions.messages(gone, View::All, &PageRequest::default()).await;
    assert!(matches!(none, Err(Error::NoSession(_))));
    let query = SessionQuery { text: "secret".into(), ..SessionQuery::default() };
    let found = sessions.search(&query, &PageRequest::default()).await.unwrap();
    assert_eq!(found.items.iter().map(|hit| hit.session).collect::<Vec<_>>(), [kept]);
}

async fn an_exported_session_is_imported_elsewhere_once(Fixture { store, .. }: Fixture) {
    let sessions = store.sessions();
    let id = begin(&store, "ada").await.id;
    let call = NewMessage { tool_calls: Some(json!({ "a": [1, null] })), ..says("two") };
    sessions.append(id, Expected::Any, vec![says("one"), call, says("three")]).await.unwrap();
    sessions.compact(id, Expected::Any, Compaction { through: 2, summary: says("1-2") }).await.unwrap();
    let exported = sessions.export(id).await.unwrap();
    assert_eq!(exported.messages.len(), 4);
    let text = serde_json::to_string(&exported).unwrap();
    assert_eq!(serde_json::from_str::<talon_store::ExportedSession>(&text).unwrap(), exported);
    assert!(!sessions.import(exported.clone()).await.unwrap());
    sessions.delete(id).await.unwrap();
    assert!(sessions.import(exported.clone()).await.unwrap());
    assert!(!sessions.import(exported.clone()).await.unwrap());
    assert_eq!(sessions.export(id).await.unwrap(), exported);
    assert_eq!(view(&store, id, View::Live).await, ["1-2", "three"]);
    sessions.append(id, Expected::Next(5), vec![says("five")]).await.unwrap();
    assert!(matches!(sessions.import(exported.clone()).await, Err(Error::SessionExists(_))));
    let mut broken = exported;
    broken.messages.swap(0, 1);
    assert!(matches!(sessions.import(broken).await, Err(Error::Invalid { .. })));
    assert!(matches!(sessions.export(SessionId::generate()).await, Err(Error::NoSession(_))));
}

async fn what_no_session_can_be_is_refused(Fixture { store, .. }: Fixture) {
    for sender in ["", "a\0b", "two\nlines", &"x".repeat(257)] {
        let new = NewSession { sender: sender.into(), channel: "c".into(), ..NewSession::default() };
        assert!(matches!(store.sessions().create(new).await, Err(Error::Invalid { .. })), "{sender:?}");
        let filter = SessionFilter { sender: Some(sender.into()), ..SessionFilter::default() };
        let listed = store.sessions().list(&filter, &PageRequest::default()).await;
        assert!(matches!(listed, Err(Error::Invalid { .. })), "{sender:?}");
    }
    let id = SessionId::generate().to_string();
    for text in ["", "../x", &id.to_lowercase(), &id[1..], &format!("{id}\0"), &"0".repeat(10_000)] {
        assert!(SessionId::new(text).is_err(), "{text}");
    }
}

async fn any_text_is_kept_as_it_is(Fixture { store, .. }: Fixture) {
    let id = begin(&store, "ada").await.id;
    let texts = ["\0", "a\0b", "\u{feff}\u{202e}x", "'); DROP TABLE messages; --", "e\u{301}", "\\x00 \\'"];
    store.sessions().append(id, Expected::Any, texts.map(says).to_vec()).await.unwrap();
    assert_eq!(view(&store, id, View::All).await, texts);
}
