//! How the program starts, ends, and handles the messages of the supervisor.

use std::process::{Command, Stdio};

use talon_proto::agent::{
    AttachClient, Configure, GetLoopRequest, GetStatusRequest, HostConnection, ListModelsRequest, from_agent,
    to_agent,
};
use talon_proto::state::{Layers, Open};
use tonic::Code;

use crate::support::{Agent, SETTINGS, TestDirectory, answer, ask, error, handed, question, refused};

fn by_hand(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_talon-agent"));
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

// Promises: AGENT-52
#[test]
fn by_hand_it_says_that_it_is_not_for_that() {
    let (code, _, said) = by_hand(&[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("started by talon") && said.contains("not by hand"), "{said}");
    let (code, said, _) = by_hand(&["--version"]);
    assert_eq!((code, said.trim()), (Some(0), concat!("talon-agent ", env!("CARGO_PKG_VERSION"))));
    let (code, said, _) = by_hand(&["--help"]);
    assert!(code == Some(0) && said.contains("agent=debug"), "{said}");
}

// Promises: AGENT-52
#[tokio::test]
async fn anything_but_a_configuration_first_is_a_protocol_error() {
    let place = TestDirectory::new();
    let senseless = [
        to_agent::Kind::HostConnection(HostConnection { id: 1 }),
        to_agent::Kind::AttachClient(AttachClient::default()),
        to_agent::Kind::Configure(Configure::default()),
        to_agent::Kind::Configure(Configure { open: Some(Open::default()), ..Configure::default() }),
        to_agent::Kind::Configure(Configure {
            open: Some(Open { layers: Layers::KeyValues.into(), ..place.open() }),
            ..Configure::default()
        }),
    ];
    for what in senseless {
        let mut agent = Agent::start(&place);
        agent.send(what.clone(), None).await;
        assert_eq!(agent.ended().code(), Some(70), "{what:?}: {}", agent.log());
    }
    assert!(!place.path("agent").exists());
}

// Promises: AGENT-52
#[tokio::test]
async fn what_is_no_configuration_is_refused_and_nothing_of_it_is_repeated() {
    let place = TestDirectory::new();
    let mut secret = handed(SETTINGS);
    secret.environment.insert("KEY".to_owned(), "sk-hunter2".to_owned());
    let mut bytes = secret.to_bytes().unwrap();
    bytes.truncate(bytes.len() - 3);
    let agent = Agent::start(&place);
    let (told, status) = agent.refuses(&place, &bytes).await;
    assert_eq!(status.code(), Some(1));
    assert!(!told.retryable && told.message.contains("cannot be understood"), "{told:?}");
    assert!(!told.message.contains("hunter2"));
}

#[tokio::test]
async fn a_database_in_use_is_refused_for_now() {
    let place = TestDirectory::new();
    let _holds_it = Agent::at(&place).await;
    let bytes = handed(SETTINGS).to_bytes().unwrap();
    let (told, status) = Agent::start(&place).refuses(&place, &bytes).await;
    assert_eq!(status.code(), Some(1));
    assert!(told.retryable && told.message.contains("in use"), "{told:?}");
}

// Promises: AGENT-52
#[tokio::test]
async fn it_ends_with_its_lifeline_and_on_request() {
    let place = TestDirectory::new();
    let mut agent = Agent::start(&place);
    assert!(agent.close_control().await.success(), "{}", agent.log());
    let mut agent = Agent::at(&place).await;
    assert!(agent.close_control().await.success(), "{}", agent.log());
    // It was closed properly.
    assert!(!place.path("agent/agent.db-wal").exists());
    let mut agent = Agent::at(&place).await;
    agent.terminate();
    assert!(agent.ended().success(), "{}", agent.log());
}

// Promises: AGENT-52
#[tokio::test]
async fn garbage_on_the_control_socket_ends_it_with_an_error() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    agent.garbage();
    assert_eq!(agent.ended().code(), Some(70), "{}", agent.log());
}

#[tokio::test]
async fn a_client_that_cannot_be_meant_is_not_served_and_the_others_are() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let attach =
        AttachClient { sender: "alice".to_owned(), role: "king".to_owned(), ..AttachClient::default() };
    agent.send(to_agent::Kind::AttachClient(attach), None).await;
    agent.send(to_agent::Kind::HostConnection(HostConnection { id: 99 }), None).await;
    let mut client = agent.client("alice").await;
    assert_eq!(answer(&mut client, "", "hello").await.1.text, "Hello to you, too.");
    assert!(agent.log().contains("was not obeyed"), "{}", agent.log());
}

// Promises: AGENT-25
#[tokio::test]
async fn without_a_provider_it_serves_and_each_question_says_what_to_do() {
    let place = TestDirectory::new();
    let (agent, ready) = Agent::with(&place, "{}").await;
    assert!(ready.problems.iter().any(|problem| problem.contains("models.providers")), "{ready:?}");
    let mut client = agent.client("alice").await;
    let (session, stream) = ask(&mut client, "", "hello").await;
    let ended = error(stream).await;
    assert_eq!(ended.reason, "no_provider", "{ended:?}");
    assert!(ended.message.contains("models."), "{ended:?}");
    // The session stays usable.
    let ended = error(ask(&mut client, &session, "hello").await.1).await;
    assert_eq!(ended.reason, "no_provider");
}

// Promises: AGENT-25
#[tokio::test]
async fn a_provider_with_a_problem_is_told_and_the_others_answer() {
    let place = TestDirectory::new();
    let settings = SETTINGS.replace(
        "  catalog:",
        "    openai: { kind: openai, api_key_env: NOT_THERE }\n  catalog:\n    openai/gpt: { tier: cheap, context_window: 8000, free: true }",
    );
    let (agent, ready) = Agent::with(&place, &settings).await;
    assert!(ready.problems.iter().any(|problem| problem.contains("NOT_THERE")), "{ready:?}");
    let mut client = agent.client("alice").await;
    let models = client.list_models(ListModelsRequest {}).await.unwrap().into_inner();
    let of = |id: &str| models.models.iter().find(|model| model.id == id).unwrap();
    assert_eq!(
        (of("openai/gpt").state.as_str(), of("scripted/small").state.as_str()),
        ("not_set_up", "ready")
    );
    assert!(of("openai/gpt").why.contains("NOT_THERE"), "{models:?}");
    let scripted = models.providers.iter().find(|provider| provider.name == "scripted").unwrap();
    assert!(scripted.scripted);
    assert_eq!(answer(&mut client, "", "hello").await.1.text, "Hello to you, too.");
    let status = client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert!(status.problems.iter().any(|problem| problem.contains("NOT_THERE")), "{status:?}");
    assert_eq!((status.engine.as_str(), status.turns_running), ("sqlite", 0));
}

// Promises: AGENT-51
#[tokio::test]
async fn a_changed_configuration_is_taken_over_and_turns_under_way_keep_theirs() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, stream) = ask(&mut client, "", "slow").await;
    agent.plugins.wait_for(1).await;
    let ready = agent.configure(&place, "{}").await;
    assert!(!ready.problems.is_empty());
    let ended = error(ask(&mut client, "", "hello").await.1).await;
    assert_eq!(ended.reason, "no_provider");
    // The running turn still has its model.
    agent.plugins.answers.add_permits(1);
    assert_eq!(crate::support::done(stream).await.text, "It waited.");
    agent.configure(&place, SETTINGS).await;
    assert_eq!(answer(&mut client, &session, "hello").await.1.text, "Hello to you, too.");
    // An unreadable configuration changes nothing.
    agent.send_configuration(place.open(), b"{").await;
    let Some(from_agent::Kind::Ready(ready)) = agent.receive().await else { panic!("{}", agent.log()) };
    assert!(ready.problems.iter().any(|problem| problem.contains("the one before stays")), "{ready:?}");
    assert_eq!(answer(&mut client, &session, "hello").await.1.text, "Hello to you, too.");
}

#[tokio::test]
async fn at_its_end_streams_end_with_unavailable_and_the_turn_stays_interrupted() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, mut stream) = ask(&mut client, "", "slow").await;
    agent.plugins.wait_for(1).await;
    assert!(agent.close_control().await.success(), "{}", agent.log());
    let ended = loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the turn has no end"),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    assert!(
        refused(client.get_loop(GetLoopRequest { session_id: session.clone() }).await).code() != Code::Ok
    );
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let listed = client.list_sessions(talon_proto::agent::ListSessionsRequest::default()).await.unwrap();
    let listed = listed.into_inner().sessions;
    assert_eq!((listed[0].id.as_str(), listed[0].turn.as_str()), (session.as_str(), "interrupted"));
    assert!(client.ask(question(&session, "hello")).await.is_ok());
}

// Promises: AGENT-53, GW-294
#[tokio::test]
async fn every_line_of_a_turn_in_the_log_has_its_correlation_id_and_no_text_of_anybody() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let mut stream = client.ask(question("", "hello, my password is hunter2")).await.unwrap().into_inner();
    let Some(talon_proto::agent::chunk::Kind::Started(started)) = crate::support::next(&mut stream).await
    else {
        panic!("it says first which turn it is")
    };
    crate::support::done(stream).await;
    let log = agent.log();
    let lines = log.lines().filter(|line| line.contains(&started.correlation_id));
    let lines: Vec<&str> = lines.collect();
    assert!(lines.len() >= 3, "{log}");
    let usual = lines.iter().filter(|line| line.contains("\"level\":\"INFO\"")).count();
    assert_eq!(usual, 1, "a turn has one line where nobody wants more: {log}");
    assert!(!log.contains("hunter2"), "{log}");
    assert!(log.contains("a model was chosen"), "agent=debug shows which model is chosen: {log}");
}
