//! One connection of a host: reads its requests, and sends the answers of one turn in one write.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use h2::server::Builder;
use prost::bytes::Bytes;
use talon_wire::{BusyFlag, LazyWritable, LoadDetector, coalesce_turns};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_util::sync::CancellationToken;
use tonic_health::pb::health_server::Health;

use super::call;
use super::router::Router;

/// HTTP/2's frame size. Measured: 64 KiB answers take half the time of the default 16 KiB frames, because
/// page faults vanish; larger frames gain nothing more.
const FRAME_BYTES: u32 = 1 << 20;
/// How much a host may send ahead on one call and on one connection.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Calls on one connection at once; further ones wait in the host. Far above what hosts admit.
const MAX_STREAMS: u32 = 1024;
/// The largest header list: credentials travel in messages, so headers are small.
const MAX_HEADER_BYTES: u32 = 64 << 10;

/// Serves until the host closes the connection, or until `stop` and the end of the requests in flight.
///
/// # Errors
/// Why the connection broke.
pub(super) async fn serve<H: Health>(
    mut stream: LazyWritable,
    router: Router<H>,
    stop: CancellationToken,
) -> io::Result<()> {
    let busy = BusyFlag::default();
    stream.set_busy_flag(&busy);
    let mut load = LoadDetector::new(busy);
    let (stream, turn) = coalesce_turns(stream);
    let mut handshake = pin!(
        Builder::new()
            .max_frame_size(FRAME_BYTES)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEADER_BYTES)
            .handshake::<_, Bytes>(stream)
    );
    let mut connection = poll_fn(|cx| {
        let done = handshake.as_mut().poll(cx);
        // Also while it waits for the host to close its half: some hosts wait for ours.
        if let Poll::Ready(Err(error)) = turn.poll_flush_turn(cx) {
            return Poll::Ready(Err(error));
        }
        done.map_err(io::Error::other)
    })
    .await?;
    let mut stopping = pin!(stop.cancelled());
    let (mut told, mut again) = (false, false);
    // With a single thread, a call that is answered at once needs no separate task. With several threads,
    // another one may be free.
    let alone = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
    loop {
        let accepted = poll_fn(|cx| {
            if !told && stopping.as_mut().poll(cx).is_ready() {
                told = true;
                connection.graceful_shutdown();
            }
            let accepted = pin!(connection.accept()).poll(cx).map_err(io::Error::other);
            if accepted.is_ready() {
                return accepted;
            }
            // Calls in separate tasks wake this one as each of them ends: tasks that are ready to run go
            // first.
            if !alone && turn.has_pending() && !std::mem::replace(&mut again, true) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            again = false;
            load.turn();
            match turn.poll_flush_turn(cx) {
                Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
                _ => Poll::Pending,
            }
        })
        .await;
        let Some(accepted) = accepted else { return Ok(()) };
        let (request, respond) = accepted?;
        load.request();
        if !call::is_execute(&request) {
            tokio::spawn(call::serve_other(request, respond, router.clone()));
            continue;
        }
        let mut call = Box::pin(call::execute(request, respond, router.wire.clone()));
        if alone && poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_ready())).await {
            continue;
        }
        tokio::spawn(call);
    }
}
