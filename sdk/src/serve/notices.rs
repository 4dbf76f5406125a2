//! `talon.plugin.v1.Notices`, served from the plugin's pending notices.

use std::sync::Arc;
use std::time::Duration;

use talon_proto::notices::notices_server;
use talon_proto::notices::{ListenRequest, Notice};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::notices::{Listener, PendingNotices};

/// How many notices are sent in one [`WINDOW`]; the rest stays pending, where the latest of a call replaces
/// the earlier ones. Ten times what Talon passes on for one call, so it only limits the cost of a tool that
/// reports progress in a tight loop.
const MAX_IN_WINDOW: u32 = 100;
/// See [`MAX_IN_WINDOW`].
const WINDOW: Duration = Duration::from_secs(1);
/// How many notices wait for the connection: one, so that each progress report is taken as late as possible.
const CHANNEL_CAPACITY: usize = 1;

/// Serves the listening host.
pub(super) struct NoticesService {
    pub(super) board: Arc<PendingNotices>,
    /// The stream would never end without it, and the server waits for all streams at shutdown.
    pub(super) stop: CancellationToken,
}

#[tonic::async_trait]
impl notices_server::Notices for NoticesService {
    type ListenStream = ReceiverStream<Result<Notice, Status>>;

    async fn listen(&self, _: Request<ListenRequest>) -> Result<Response<Self::ListenStream>, Status> {
        let (to, stream) = mpsc::channel(CHANNEL_CAPACITY);
        tokio::spawn(forward(self.board.listen(), self.stop.clone(), to));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// Until the plugin is asked to end, the host disconnects, or another host listens.
async fn forward(listener: Listener, stop: CancellationToken, to: mpsc::Sender<Result<Notice, Status>>) {
    let told = async {
        let (mut began, mut sent) = (Instant::now(), 0);
        loop {
            let Ok(room) = to.reserve().await else { return };
            if sent == MAX_IN_WINDOW {
                tokio::time::sleep_until(began + WINDOW).await;
            }
            let Some(notice) = listener.next().await else { return };
            room.send(Ok(notice));
            if began.elapsed() >= WINDOW {
                (began, sent) = (Instant::now(), 0);
            }
            sent += 1;
        }
    };
    tokio::select! {
        () = told => {}
        () = to.closed() => {}
        () = stop.cancelled() => {}
    }
}
