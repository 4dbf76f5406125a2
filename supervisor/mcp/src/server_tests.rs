use super::*;
use crate::subscriptions::Subscriptions;

#[tokio::test(start_paused = true)]
async fn a_plugin_that_never_gets_ready_is_waited_for_once() {
    let (told, catalog) = watch::channel(Arc::new(Catalog::default()));
    let (changes, closing) = (broadcast::Sender::new(1), CancellationToken::new());
    let host = Host::new("/nowhere".into());
    let clients = ClientSubscriptions::new(Subscriptions::new(host.clone()).unwrap());
    let server = Server::new(host, Structured::Plain, catalog, changes, clients, closing);
    let asked = || async {
        let before = tokio::time::Instant::now();
        (server.settled_catalog().await.is_ok(), before.elapsed() >= STARTUP_WAIT)
    };
    for _ in 0..2 {
        assert_eq!(asked().await, (false, true), "nobody was met: that may change at any time");
    }
    told.send_replace(Arc::new(Catalog { settled: false, known: true, ..Catalog::default() }));
    assert_eq!(asked().await, (true, true));
    assert_eq!(asked().await, (true, false));
}
