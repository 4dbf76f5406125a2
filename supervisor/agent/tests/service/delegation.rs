//! The gateway's connection: each request says for whom it is, within a ceiling.

use talon_proto::agent::{CreateSessionRequest, GetSessionRequest, ListSessionsRequest};
use tonic::{Code, Request};

use crate::support::{Agent, TestDirectory};

/// A request for this subject of the channel telegram.
pub(crate) fn asked<T>(message: T, subject: &'static str, role: &'static str) -> Request<T> {
    let mut request = Request::new(message);
    for (name, value) in [
        ("talon-subject", subject),
        ("talon-channel", "telegram"),
        ("talon-role", role),
        ("talon-origin", "program"),
    ] {
        request.metadata_mut().insert(name, value.parse().unwrap());
    }
    request
}

// Promises: GW-11
#[tokio::test]
async fn a_request_that_does_not_say_for_whom_it_is_is_refused() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut gateway = agent.gateway("admin").await;
    for missing in ["talon-subject", "talon-channel", "talon-role", "talon-origin"] {
        let mut request = asked(ListSessionsRequest::default(), "gw:telegram/1", "call");
        request.metadata_mut().remove(missing);
        let refused = gateway.list_sessions(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
        assert!(refused.message().contains(missing), "{refused:?}");
    }
    let bare =
        gateway.list_sessions(asked(ListSessionsRequest::default(), "alice", "call")).await.unwrap_err();
    assert_eq!(bare.code(), Code::Unauthenticated, "{bare:?}");
}

// Promises: GW-12, GW-13
#[tokio::test]
async fn sessions_are_the_subjects_own_and_no_role_exceeds_the_ceiling() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut gateway = agent.gateway("call").await;
    let create = asked(CreateSessionRequest::default(), "gw:telegram/1", "call");
    let session = gateway.create_session(create).await.unwrap().into_inner();
    assert_eq!((session.sender.as_str(), session.channel.as_str()), ("gw:telegram/1", "telegram"));
    let elsewhere = CreateSessionRequest { channel: "slack".to_owned(), ..CreateSessionRequest::default() };
    let refused = gateway.create_session(asked(elsewhere, "gw:telegram/1", "call")).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    let get = || GetSessionRequest { session_id: session.id.clone(), ..GetSessionRequest::default() };
    gateway.get_session(asked(get(), "gw:telegram/1", "call")).await.unwrap();
    // Another subject's is as one that is not there, and a stated role above the ceiling changes nothing.
    for role in ["call", "operate", "admin"] {
        let other = gateway.get_session(asked(get(), "gw:telegram/2", role)).await.unwrap_err();
        assert_eq!(other.code(), Code::NotFound, "{role}: {other:?}");
    }
    // Below the ceiling a role holds.
    let mut operator = agent.gateway("admin").await;
    operator.get_session(asked(get(), "gw:telegram/2", "operate")).await.unwrap();
    // A client of this machine who claims to be the subject is not believed.
    let mut alice = agent.client("alice").await;
    let claimed = alice.get_session(asked(get(), "gw:telegram/1", "admin")).await.unwrap_err();
    assert_eq!(claimed.code(), Code::NotFound, "{claimed:?}");
}
