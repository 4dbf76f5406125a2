//! Sessions: who sees them, and how they are described.

use std::time::Duration;

use talon_proto::agent::{
    AttachRequest, CancelRequest, CompactSessionRequest, CreateSessionRequest, DecideRequest,
    DeleteSessionRequest, GetCostsRequest, GetLoopRequest, GetMetricsRequest, GetSessionRequest,
    GetStatusRequest, ListApprovalsRequest, ListSessionsRequest, ListToolsRequest, ResumeSessionRequest,
    Sampling, Session, ToolList, UpdateSessionRequest,
};
use talon_store::{
    Engine, ExportedSession, Key, MEDIA_NAMESPACE, Message, Namespace, NewSession, PageRequest, PluginId,
    Role, SessionId, SessionState, StoreOptions, Timestamp,
};
use tonic::{Code, Status};

use crate::support::{Agent, Client, SETTINGS, TestDirectory, answer, ask, error, question, refused};

async fn get(client: &mut Client, session: &str) -> Result<Session, Status> {
    let request = GetSessionRequest { session_id: session.to_owned(), ..GetSessionRequest::default() };
    client.get_session(request).await.map(|got| got.into_inner().session.unwrap())
}

async fn list(client: &mut Client, request: ListSessionsRequest) -> (Vec<Session>, String) {
    let got = client.list_sessions(request).await.unwrap().into_inner();
    (got.sessions, got.next_page_token)
}

#[tokio::test]
async fn a_session_says_what_there_is_to_know() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, _) = answer(&mut client, "", "hello\nthere").await;
    let got = get(&mut client, &session).await.unwrap();
    assert_eq!(
        (got.title.as_str(), got.sender.as_str(), got.channel.as_str()),
        ("hello there", "alice", "cli")
    );
    assert_eq!((got.state.as_str(), got.turn.as_str()), ("active", "idle"));
    assert!(got.cost_pico_usd > 0 && got.messages >= 2 && got.created_unix_ms > 0, "{got:?}");
    let request = GetSessionRequest { session_id: session, page_size: 1, ..GetSessionRequest::default() };
    let (mut request, mut messages) = (request, Vec::new());
    loop {
        let got = client.get_session(request.clone()).await.unwrap().into_inner();
        messages.extend(got.messages);
        if got.next_page_token.is_empty() {
            break;
        }
        request.page_token = got.next_page_token;
    }
    let said: Vec<(&str, &str)> =
        messages.iter().map(|message| (message.role.as_str(), message.content.as_str())).collect();
    assert_eq!(said[..2], [("user", "hello\nthere"), ("assistant", "Hello to you, too.")]);
}

// Promises: AGENT-45
#[tokio::test]
async fn everybody_sees_their_own_and_an_operator_everybodys_when_asked_for() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let (mut alice, mut bob) = (agent.client("alice").await, agent.client("bob").await);
    let mut operator = agent.client_with("root", "operate", "person").await;
    let (of_alice, _) = answer(&mut alice, "", "hello").await;
    answer(&mut bob, "", "hello").await;
    assert_eq!(list(&mut alice, ListSessionsRequest::default()).await.0.len(), 1);
    assert!(
        list(&mut operator, ListSessionsRequest::default()).await.0.is_empty(),
        "they have none of their own"
    );
    let all = ListSessionsRequest { all: true, ..ListSessionsRequest::default() };
    assert_eq!(list(&mut operator, all.clone()).await.0.len(), 2);
    assert_eq!(refused(alice.list_sessions(all).await).code(), Code::PermissionDenied);
    assert!(get(&mut operator, &of_alice).await.is_ok());
    // To bob, it does not exist, whatever he requests.
    let id = || of_alice.clone();
    let answers: Vec<Option<Status>> = vec![
        get(&mut bob, &of_alice).await.err(),
        bob.ask(question(&of_alice, "hello")).await.err(),
        bob.attach(AttachRequest { session_id: id() }).await.err(),
        bob.cancel(CancelRequest { session_id: id() }).await.err(),
        bob.get_loop(GetLoopRequest { session_id: id() }).await.err(),
        bob.update_session(UpdateSessionRequest { session_id: id(), ..Default::default() }).await.err(),
        bob.resume_session(ResumeSessionRequest { session_id: id() }).await.err(),
        bob.delete_session(DeleteSessionRequest { session_id: id() }).await.err(),
        bob.compact_session(CompactSessionRequest { session_id: id(), ..Default::default() }).await.err(),
        bob.list_tools(ListToolsRequest { session_id: id() }).await.err(),
        bob.get_costs(GetCostsRequest { session_id: id() }).await.err(),
        bob.list_approvals(ListApprovalsRequest { session_id: id(), ..Default::default() }).await.err(),
    ];
    let unknown = get(&mut bob, "01ARZ3NDEKTSV4RRFFQ69G5FAV").await.unwrap_err();
    for (number, status) in answers.into_iter().enumerate() {
        let status = status.unwrap_or_else(|| panic!("request {number} was answered"));
        assert_eq!(status.code(), Code::NotFound, "{number}: {status}");
        assert_eq!(
            status.message().replace(&of_alice, "…"),
            unknown.message().replace("01ARZ3NDEKTSV4RRFFQ69G5FAV", "…")
        );
    }
    let everybody = ListApprovalsRequest { everybody: true, ..Default::default() };
    assert_eq!(refused(bob.list_approvals(everybody).await).code(), Code::PermissionDenied);
    assert_eq!(refused(bob.get_costs(GetCostsRequest::default()).await).code(), Code::PermissionDenied);
    assert_eq!(refused(bob.get_metrics(GetMetricsRequest {}).await).code(), Code::PermissionDenied);
    let decide = DecideRequest { id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(), ..Default::default() };
    assert_eq!(refused(bob.decide(decide).await).code(), Code::NotFound);
    assert_eq!(get(&mut bob, "nonsense").await.unwrap_err().code(), Code::NotFound);
}

// Promises: AGENT-45
#[tokio::test]
async fn lists_come_in_pages_newest_first_and_by_channel() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    // The role call has one channel only.
    let mut client = agent.client_with("alice", "operate", "person").await;
    let mut made = Vec::new();
    for number in 0..5 {
        let channel = if number == 2 { "other" } else { "" }.to_owned();
        let request = CreateSessionRequest { channel, ..CreateSessionRequest::default() };
        made.push(client.create_session(request).await.unwrap().into_inner().id);
    }
    made.reverse();
    let (mut request, mut found) = (ListSessionsRequest { page_size: 2, ..Default::default() }, Vec::new());
    loop {
        let (sessions, next) = list(&mut client, request.clone()).await;
        assert!(sessions.len() <= 2);
        found.extend(sessions.into_iter().map(|session| session.id));
        if next.is_empty() {
            break;
        }
        request.page_token = next;
    }
    assert_eq!(found, made);
    let other = ListSessionsRequest { channel: "other".to_owned(), ..Default::default() };
    assert_eq!(list(&mut client, other).await.0.len(), 1);
    let foreign = ListSessionsRequest { page_token: "nonsense".to_owned(), ..Default::default() };
    assert_eq!(refused(client.list_sessions(foreign).await).code(), Code::InvalidArgument);
}

// Promises: AGENT-46
#[tokio::test]
async fn what_a_session_wants_otherwise_is_kept_and_holds_for_its_turns() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let request = CreateSessionRequest {
        model: "scripted/large".to_owned(),
        thinking: "low".to_owned(),
        tools: vec!["slow.*".to_owned()],
        ..CreateSessionRequest::default()
    };
    let session = client.create_session(request).await.unwrap().into_inner();
    assert_eq!((session.model.as_str(), session.thinking.as_str()), ("scripted/large", "low"));
    let tools = client
        .list_tools(ListToolsRequest { session_id: session.id.clone() })
        .await
        .unwrap()
        .into_inner()
        .tools;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["slow__wait"]);
    agent.close_control().await;
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (_, answered) = answer(&mut client, &session.id, "read a").await;
    assert!(answered.model.contains("large"), "{answered:?}");
    assert!(agent.plugins.called().is_empty(), "it may not be called in this session");
    let request = UpdateSessionRequest {
        session_id: session.id.clone(),
        model: Some(String::new()),
        tools: Some(ToolList::default()),
        ..UpdateSessionRequest::default()
    };
    let session = client.update_session(request).await.unwrap().into_inner();
    assert_eq!((session.model.as_str(), session.thinking.as_str(), session.tools.len()), ("", "low", 0));
    answer(&mut client, &session.id, "read a").await;
    assert_eq!(agent.plugins.called(), ["files.read"]);
    for request in [
        UpdateSessionRequest { model: Some("nobody".to_owned()), ..UpdateSessionRequest::default() },
        UpdateSessionRequest { thinking: Some("a lot".to_owned()), ..UpdateSessionRequest::default() },
        UpdateSessionRequest {
            tools: Some(ToolList { tools: vec!["*.*".to_owned()] }),
            ..UpdateSessionRequest::default()
        },
        UpdateSessionRequest {
            tools: Some(ToolList { tools: vec![format!("{}.x", "p".repeat(200)); 40] }),
            ..UpdateSessionRequest::default()
        },
    ] {
        let request = UpdateSessionRequest { session_id: session.id.clone(), ..request };
        assert_eq!(refused(client.update_session(request).await).code(), Code::InvalidArgument);
    }
}

// Promises: AGENT-115
#[tokio::test]
async fn how_its_models_choose_their_words_is_kept_and_checked() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let wanted = Sampling { temperature: Some(0.2), top_p: Some(0.9), max_tokens: Some(100) };
    let request = CreateSessionRequest { sampling: Some(wanted), ..CreateSessionRequest::default() };
    let session = client.create_session(request).await.unwrap().into_inner();
    assert_eq!(session.sampling, Some(wanted));
    agent.close_control().await;
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    assert_eq!(get(&mut client, &session.id).await.unwrap().sampling, Some(wanted), "kept over a restart");
    let update = |sampling| UpdateSessionRequest {
        session_id: session.id.clone(),
        sampling,
        ..UpdateSessionRequest::default()
    };
    let unchanged = client.update_session(update(None)).await.unwrap().into_inner();
    assert_eq!(unchanged.sampling, Some(wanted));
    let wrong = Sampling { temperature: Some(3.0), ..Sampling::default() };
    let refusal = refused(client.update_session(update(Some(wrong))).await);
    assert_eq!(refusal.code(), Code::InvalidArgument);
    assert!(refusal.message().contains("temperature"), "{refusal}");
    let reset = client.update_session(update(Some(Sampling::default()))).await.unwrap().into_inner();
    assert_eq!(reset.sampling, None);
}

// Promises: AGENT-47
#[tokio::test]
async fn a_deleted_session_is_gone_with_the_turn_that_it_was_in() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, stream) = ask(&mut client, "", "slow").await;
    agent.plugins.wait_for(1).await;
    let delete = DeleteSessionRequest { session_id: session.clone() };
    let compact = CompactSessionRequest { session_id: session.clone(), keep_turns: 1 };
    // The error says how a person ends the turn.
    let busy = refused(client.compact_session(compact).await);
    assert_eq!(busy.code(), Code::FailedPrecondition);
    assert!(busy.message().contains("Ctrl-C there ends it"), "{busy}");
    client.delete_session(delete.clone()).await.unwrap();
    assert_eq!(error(stream).await.reason, "cancelled");
    assert_eq!(get(&mut client, &session).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(refused(client.delete_session(delete).await).code(), Code::NotFound);
}

// Promises: AGENT-47
#[tokio::test]
async fn a_compacted_session_has_a_summary_and_all_its_messages() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, _) = answer(&mut client, "", "hello one").await;
    for text in ["hello two", "hello three"] {
        answer(&mut client, &session, text).await;
    }
    let compact = CompactSessionRequest { session_id: session.clone(), keep_turns: 1 };
    let compacted = client.compact_session(compact).await.unwrap().into_inner();
    assert!(compacted.messages >= 4 && !compacted.summary.is_empty(), "{compacted:?}");
    let request =
        |all| GetSessionRequest { session_id: session.clone(), all, ..GetSessionRequest::default() };
    let live = client.get_session(request(false)).await.unwrap().into_inner().messages;
    assert!(live.iter().any(|message| message.summary) && !live.iter().any(|one| one.content == "hello one"));
    let all = client.get_session(request(true)).await.unwrap().into_inner().messages;
    assert!(all.iter().any(|message| message.content == "hello one"));
    let cost = get(&mut client, &session).await.unwrap().cost_pico_usd;
    assert!(cost > 0);
    answer(&mut client, &session, "hello four").await;
}

#[tokio::test]
async fn tools_say_whether_they_ask_first() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let tools = client.list_tools(ListToolsRequest::default()).await.unwrap().into_inner().tools;
    let of = |name: &str| {
        tools.iter().find(|tool| tool.name == name).unwrap_or_else(|| panic!("{name}: {tools:?}"))
    };
    assert_eq!((of("files__read").confirm.as_str(), of("files__read").read_only), ("never", true));
    assert_eq!(of("files__write").confirm, "destructive");
    assert!(of("files__write").parameters.contains("path"));
    assert!(tools.iter().any(|tool| tool.plugin == "memory"), "the agent's own are tools, too: {tools:?}");
}

// Promises: AGENT-146, AGENT-148
#[tokio::test]
async fn what_clients_note_how_detailed_answers_are_and_who_answered_is_stored() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let request = CreateSessionRequest {
        verbosity: "low".to_owned(),
        metadata: [("ticket".to_owned(), "42".to_owned())].into(),
        ..CreateSessionRequest::default()
    };
    let session = client.create_session(request).await.unwrap().into_inner();
    assert_eq!((session.verbosity.as_str(), session.active_model.as_str()), ("low", ""));
    answer(&mut client, &session.id, "hello").await;
    agent.close_control().await;
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let kept = get(&mut client, &session.id).await.unwrap();
    assert_eq!((kept.verbosity.as_str(), kept.active_model.as_str()), ("low", "scripted/small"));
    assert_eq!(
        kept.metadata,
        [("ticket".to_owned(), "42".to_owned())].into(),
        "the agent's own keys are no client's"
    );
    let update = |verbosity: Option<&str>, metadata: &[(&str, &str)]| UpdateSessionRequest {
        session_id: session.id.clone(),
        verbosity: verbosity.map(str::to_owned),
        metadata: metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..UpdateSessionRequest::default()
    };
    let changed = client.update_session(update(Some(""), &[("ticket", ""), ("team", "red")])).await;
    let changed = changed.unwrap().into_inner();
    assert_eq!(
        (changed.verbosity.as_str(), changed.metadata),
        ("", [("team".to_owned(), "red".to_owned())].into())
    );
    let many: Vec<(String, String)> = (0..33).map(|n| (n.to_string(), "x".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let long = "x".repeat(5000);
    for (request, why) in [
        (update(Some("loud"), &[]), "low or high"),
        (update(None, &[("open_turn", "7")]), "the agent's own"),
        (update(None, &[("local_only", "")]), "the agent's own"),
        (update(None, &many), "more than 32"),
        (update(None, &[("a", &long)]), "4096"),
    ] {
        let refusal = refused(client.update_session(request).await);
        assert!(refusal.code() == Code::InvalidArgument && refusal.message().contains(why), "{refusal}");
    }
}

// Promises: AGENT-149
#[tokio::test]
async fn the_model_searches_what_was_said_in_the_same_senders_other_sessions() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let (mut alice, mut bob) = (agent.client("alice").await, agent.client("bob").await);
    answer(&mut alice, "", "the open ports are 8080 and 9090").await;
    assert_eq!(answer(&mut alice, "", "which ports are open?").await.1.text, "As before: 8080.");
    assert_eq!(answer(&mut bob, "", "which ports are open?").await.1.text, "Nothing was said.");
    // What was said to models on this machine alone is not found elsewhere.
    let mut eve = agent.client("eve").await;
    let request = CreateSessionRequest { local_only: true, ..CreateSessionRequest::default() };
    let local = eve.create_session(request).await.unwrap().into_inner();
    answer(&mut eve, &local.id, "the open ports are 8080 and 9090").await;
    assert_eq!(answer(&mut eve, "", "which ports are open?").await.1.text, "Nothing was said.");
    let request = CreateSessionRequest { local_only: true, ..CreateSessionRequest::default() };
    let other = eve.create_session(request).await.unwrap().into_inner();
    assert_eq!(answer(&mut eve, &other.id, "which ports are open?").await.1.text, "As before: 8080.");
}

// Promises: AGENT-151, GW-224, GW-227
#[tokio::test]
async fn old_sessions_are_written_to_files_and_deleted() {
    let place = TestDirectory::new();
    let ids = sessions_of(&place, &[31, 29]).await;
    // A process that was killed between the two left a file already.
    let file = place.path("agent/exports/sessions").join(format!("{}.yaml", ids[0]));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "half").unwrap();
    let settings = format!("{SETTINGS}  sessions: {{ delete_after: 30d }}\n");
    let (mut agent, _) = Agent::with(&place, &settings).await;
    let mut client = agent.client("alice").await;
    while get(&mut client, &ids[0]).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let kept = get(&mut client, &ids[1]).await.unwrap();
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    assert_eq!(kept.delete_unix_ms - kept.updated_unix_ms, u64::try_from(month.as_millis()).unwrap());
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains(&format!("id: {}", ids[0])) && written.contains("said long ago"), "{written}");
    let removal = agent.operation().await.unwrap();
    assert_eq!((&*removal.verb, &*removal.outcome, &*removal.problem), ("delete_old_session", "done", ""));
    assert_eq!(removal.client, None, "nobody asked for it");
    assert_eq!(removal.subject, format!("{} of alice, exported to exports/sessions/{}.yaml", ids[0], ids[0]));
    // The log and the status say it after the deletion.
    while !agent.log().contains("agent.sessions.delete_after") {
        tokio::task::yield_now().await;
    }
    let mut operator = agent.client_with("root", "operate", "person").await;
    let status = loop {
        let status = operator.get_status(GetStatusRequest {}).await.unwrap().into_inner();
        let retention = status.retention.unwrap();
        if retention.exported_files > 0 {
            break retention;
        }
    };
    assert_eq!((status.deleted, status.exported_files, &*status.problem), (1, 1, ""));
    assert_eq!(status.export_directory, place.path("agent/exports").to_str().unwrap());
    let told = client.get_status(GetStatusRequest {}).await.unwrap().into_inner().retention.unwrap();
    assert_eq!((told.deleted, told.exported_files, &*told.export_directory), (0, 0, ""));
    assert_eq!(told.delete_after_seconds, status.delete_after_seconds);
}

// Promises: GW-224
#[tokio::test]
async fn an_agent_that_is_killed_while_it_deletes_leaves_of_each_session_at_least_one_of_both() {
    const SESSIONS: usize = 120;
    let place = TestDirectory::new();
    let ids = sessions_of(&place, &[31; SESSIONS]).await;
    let settings = format!("{SETTINGS}  sessions: {{ delete_after: 30d }}\n");
    let file = |id: &String| place.path("agent/exports/sessions").join(format!("{id}.yaml"));
    let written = || ids.iter().filter(|id| file(id).exists()).count();
    let (media, now) = (PluginId::new(MEDIA_NAMESPACE).unwrap(), Timestamp::now().as_millis());
    let store =
        StoreOptions::new(Engine::Sqlite { path: place.path("agent/agent.db") }).open().await.unwrap();
    for id in &ids {
        let image = Key::new(format!("{id}/{now}.{}/00", "a".repeat(64))).unwrap();
        store.key_values().set(&Namespace::of(media.clone()), &image, vec![0, 255]).await.unwrap();
    }
    store.close().await;
    let (mut kills, mut before) = (0, 0);
    loop {
        let (mut agent, _) = Agent::with(&place, &settings).await;
        // Killed when it has written some more of them.
        while written() < SESSIONS && written() < before + 1 + 20 * kills {
            tokio::task::yield_now().await;
        }
        before = written();
        if before == SESSIONS {
            break;
        }
        agent.kill();
        kills += 1;
        let store =
            StoreOptions::new(Engine::Sqlite { path: place.path("agent/agent.db") }).open().await.unwrap();
        for id in &ids {
            let is_kept = store.sessions().get(id.parse().unwrap()).await.unwrap().is_some();
            let is_whole = std::fs::read_to_string(file(id)).is_ok_and(|text| text.contains("said long ago"));
            assert!(is_kept || is_whole, "{id}");
            let images = store.key_values().keys(&media, &format!("{id}/"), &PageRequest::first(1)).await;
            assert!(is_kept || images.unwrap().items.is_empty(), "{id}: its image is left for good");
        }
        store.close().await;
    }
    assert!(kills > 0, "it was never killed");
}

// Promises: GW-227
#[tokio::test]
async fn a_session_that_cannot_be_written_is_not_deleted_and_the_status_says_why() {
    let place = TestDirectory::new();
    let ids = sessions_of(&place, &[31]).await;
    // A file where the directory should be.
    std::fs::write(place.path("agent/exports"), "in the way").unwrap();
    let settings = format!("{SETTINGS}  sessions: {{ delete_after: 30d }}\n");
    let (agent, _) = Agent::with(&place, &settings).await;
    let mut client = agent.client_with("root", "operate", "person").await;
    let problems = loop {
        let status = client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
        if status.problems.iter().any(|problem| problem.contains("old sessions are not deleted")) {
            break status.problems;
        }
    };
    assert!(problems.iter().any(|problem| problem.contains("exports")), "{problems:?}");
    let mut alice = agent.client("alice").await;
    let told = alice.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert!(!told.problems.iter().any(|problem| problem.contains("exports")), "{:?}", told.problems);
    assert_eq!(told.retention.unwrap_or_default().problem, "");
    assert!(get(&mut client, &ids[0]).await.is_ok());
}

/// Sessions of alice that were written to so many days ago, in the database of an agent that has ended.
async fn sessions_of(place: &TestDirectory, days: &[u32]) -> Vec<String> {
    // The agent makes the directory.
    Agent::at(place).await.close_control().await;
    let store =
        StoreOptions::new(Engine::Sqlite { path: place.path("agent/agent.db") }).open().await.unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    let mut ids = Vec::new();
    for ago in days {
        let (id, then) = (SessionId::generate(), Timestamp::now().before(day * *ago));
        let session = talon_store::Session {
            id,
            sender: "alice".to_owned(),
            channel: "cli".to_owned(),
            state: SessionState::Idle,
            active_model: None,
            overrides: Default::default(),
            metadata: Default::default(),
            created_at: then,
            updated_at: then,
            next_sequence: 2,
        };
        let message = Message {
            sequence: 1,
            role: Role::User,
            content: "said long ago".to_owned(),
            tool_calls: None,
            tool_results: None,
            at: then,
            summarizes: None,
            replaced_by: None,
            key: None,
        };
        store.sessions().import(ExportedSession { session, messages: vec![message] }).await.unwrap();
        ids.push(id.to_string());
    }
    store.close().await;
    ids
}

// Promises: AGENT-173
#[tokio::test]
async fn a_session_is_idle_after_the_configured_time_and_active_again_with_the_next_message() {
    let place = TestDirectory::new();
    // The agent makes the directory.
    Agent::at(&place).await.close_control().await;
    let store =
        StoreOptions::new(Engine::Sqlite { path: place.path("agent/agent.db") }).open().await.unwrap();
    let hour = Duration::from_secs(60 * 60);
    let mut ids = Vec::new();
    for ago in [3 * hour, hour] {
        let new =
            NewSession { sender: "alice".to_owned(), channel: "cli".to_owned(), ..NewSession::default() };
        let id = store.sessions().create(new).await.unwrap().id;
        let mut session = store.sessions().export(id).await.unwrap();
        store.sessions().delete(id).await.unwrap();
        session.session.updated_at = Timestamp::now().before(ago);
        store.sessions().import(session).await.unwrap();
        ids.push(id.to_string());
    }
    store.close().await;
    let settings = format!("{SETTINGS}  sessions: {{ idle_after: 2h }}\n");
    let (agent, _) = Agent::with(&place, &settings).await;
    let mut client = agent.client("alice").await;
    while state_of(&mut client, &ids[0]).await != "idle" {
        tokio::task::yield_now().await;
    }
    assert_eq!(state_of(&mut client, &ids[1]).await, "active");
    answer(&mut client, &ids[0], "hello").await;
    assert_eq!(state_of(&mut client, &ids[0]).await, "active");
}

async fn state_of(client: &mut Client, session: &str) -> String {
    get(client, session).await.expect("it is there").state
}
