use std::net::TcpListener;

use talon_plugin::Events;

use super::*;

fn held() -> ServiceHandle<GatewayService> {
    let service = GatewayService::new(None, Role::Call);
    service.set_configuration(GatewayConfiguration::default());
    ServiceHandle::new(GatewayService::NAME, service, Events::new())
}

fn listening() -> FromGateway {
    FromGateway { kind: Some(from_gateway::Kind::Listening(Listening::default())) }
}

// Promises: GW-3
#[tokio::test]
async fn the_first_listener_is_kept_and_given_to_the_next_process() {
    let (held, mut given) = (held(), SessionState::default());
    let (first, second) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = first.local_addr().unwrap();
    GatewayService::receive(&held, &mut given, listening(), None);
    assert!(held.service().listener().is_none());
    for listener in [first, second] {
        GatewayService::receive(&held, &mut given, listening(), Some(listener.into()));
    }
    held.service().process_ended();
    let (ours, theirs) = talon_control::pair().unwrap();
    let line = ControlSocket::<GatewayService>::new(ours).unwrap();
    let other = talon_control::Control::<FromGateway, ToGateway>::new(theirs).unwrap();
    GatewayService::reconcile(&held, &line, &mut SessionState::default()).await.unwrap();
    let configure = other.receive().await.unwrap().unwrap();
    let Some(to_gateway::Kind::Configure(configure)) = configure.message.kind else {
        panic!("{configure:?}")
    };
    assert!(configure.listener_follows);
    let listener = other.receive().await.unwrap().unwrap();
    assert_eq!(listener.message.kind, Some(to_gateway::Kind::Listener(Listener {})));
    let kept = TcpListener::from(listener.descriptor.unwrap());
    assert_eq!(kept.local_addr().unwrap(), address);
}

#[tokio::test]
async fn what_does_not_listen_is_not_kept() {
    let (held, mut given) = (held(), SessionState::default());
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    GatewayService::receive(&held, &mut given, listening(), Some(socket.into()));
    assert!(held.service().listener().is_none());
}

#[tokio::test]
async fn a_ping_waits_until_it_serves() {
    let (held, mut given) = (held(), SessionState::default());
    let (ours, theirs) = talon_control::pair().unwrap();
    let line = ControlSocket::<GatewayService>::new(ours).unwrap();
    let other = talon_control::Control::<FromGateway, ToGateway>::new(theirs).unwrap();
    let (id, mut pong) = held.service().ping();
    GatewayService::reconcile(&held, &line, &mut given).await.unwrap();
    let first = other.receive().await.unwrap().unwrap().message.kind;
    assert!(matches!(first, Some(to_gateway::Kind::Configure(_))));
    let ready = from_gateway::Kind::Ready(Ready { address: "127.0.0.1:1".to_owned(), problems: Vec::new() });
    GatewayService::receive(&held, &mut given, FromGateway { kind: Some(ready) }, None);
    GatewayService::reconcile(&held, &line, &mut given).await.unwrap();
    assert_eq!(
        other.receive().await.unwrap().unwrap().message.kind,
        Some(to_gateway::Kind::Ping(Ping { id }))
    );
    let answer = Pong { id, connections: 3, ..Pong::default() };
    let kind = Some(from_gateway::Kind::Pong(answer));
    GatewayService::receive(&held, &mut given, FromGateway { kind }, None);
    assert_eq!(*pong.borrow_and_update(), Some(answer));
}
