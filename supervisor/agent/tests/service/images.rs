//! Images in questions: what is taken, where they are, and that they go with their session.

use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{AskRequest, DeleteSessionRequest, GetSessionRequest, Media};
use talon_store::{Engine, PluginId, StoreOptions, Usage};
use tonic::Code;

use crate::support::{Agent, TestDirectory, done, error, next, question, refused};

/// The head of a GIF of this width, with so many bytes.
fn gif(width: u8, bytes: usize) -> Vec<u8> {
    let mut data = [b"GIF89a".as_slice(), &[width, 0, 8, 0, 0, 0, 0]].concat();
    data.resize(bytes.max(data.len()), 7);
    data
}

fn media(name: &str, data: Vec<u8>) -> Media {
    Media { name: name.to_owned(), data }
}

/// What the agent's database has of images.
async fn stored(place: &TestDirectory) -> Usage {
    let store =
        StoreOptions::new(Engine::Sqlite { path: place.path("agent/agent.db") }).open().await.unwrap();
    let usage = store.key_values().usage(&PluginId::new("agent-images").unwrap()).await.unwrap();
    store.close().await;
    usage
}

// Promises: AGENT-160, AGENT-162
#[tokio::test]
async fn a_question_with_an_image_is_answered_and_the_session_has_it_until_it_is_deleted() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    // More than a request without images may have.
    let request = AskRequest { media: vec![media("a.gif", gif(9, 3 << 20))], ..question("", "hello") };
    let mut stream = client.ask(request).await.unwrap().into_inner();
    let Some(Kind::Started(started)) = next(&mut stream).await else { panic!("it starts") };
    let end = done(stream).await;
    assert_eq!(end.model, "large", "the model with vision: {end:?}");
    let session_id = started.session_id;
    let request = GetSessionRequest { session_id: session_id.clone(), ..GetSessionRequest::default() };
    let got = client.get_session(request).await.unwrap().into_inner();
    let shown = &got.messages[0].media[0];
    let size = (shown.width, shown.height, shown.bytes);
    assert_eq!(
        (shown.media_type.as_str(), shown.name.as_str(), size),
        ("image/gif", "a.gif", (9, 8, 3 << 20))
    );
    agent.kill();
    let usage = stored(&place).await;
    assert!(usage.bytes > 3 << 20, "{usage:?}");

    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    client.delete_session(DeleteSessionRequest { session_id }).await.unwrap();
    agent.kill();
    assert_eq!(stored(&place).await, Usage::default());
}

// Promises: AGENT-161
#[tokio::test]
async fn what_is_broken_too_large_or_too_many_is_refused_before_anything_is_stored() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let ask = |media| AskRequest { media, ..question("", "hello") };
    for (sent, says) in [
        (vec![media("broken.gif", gif(0, 20))], "head is broken"),
        (vec![media("big.gif", gif(1, 4 << 20))], "agent.media.image_bytes"),
        ((1..=6).map(|width| media("a.gif", gif(width, 20))).collect(), "agent.media.images"),
    ] {
        let status = refused(client.ask(ask(sent)).await);
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(says), "{says}: {status}");
    }
    let status = refused(client.ask(ask(vec![media("huge.gif", gif(1, 100 << 20))])).await);
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    // A model that cannot look at pictures, and no other may be asked.
    let request = AskRequest { model: "scripted/small".to_owned(), ..ask(vec![media("a.gif", gif(1, 20))]) };
    let ended = error(client.ask(request).await.unwrap().into_inner()).await;
    assert_eq!(ended.reason, "no_vision", "{ended:?}");
    assert!(ended.message.contains("cannot look at pictures"), "{ended:?}");
    agent.kill();
    assert_eq!(stored(&place).await.keys, 1);
}

// Promises: GW-303
#[tokio::test]
async fn the_image_of_a_message_that_is_refused_is_not_kept() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, _running) = crate::support::ask(&mut client, "", "hang").await;
    let request = AskRequest { media: vec![media("a.gif", gif(9, 20))], ..question(&session, "hello") };
    let status = refused(client.ask(request).await);
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    agent.kill();
    assert_eq!(stored(&place).await, Usage::default());
}
