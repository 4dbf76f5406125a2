//! `talon.plugin.v1.Notices` over the plugin's board.

use std::sync::Arc;
use std::time::Duration;

use talon_proto::notices::notices_server;
use talon_proto::notices::{ListenRequest, Notice};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::notices::{Board, Listener};

/// How many notices are sent in one [`WINDOW`]; then the rest waits on the board, where the latest of a call wins. Ten times what
/// Talon passes on of one call, so that it bounds what a tool that tells its progress in a tight loop costs, and nothing else.
const MAX_IN_WINDOW: u32 = 100;
/// See [`MAX_IN_WINDOW`].
const WINDOW: Duration = Duration::from_secs(1);
/// How many notices wait for the connection: one, so that the latest progress is taken as late as possible.
const ROOM: usize = 1;

/// Serves whoever listens.
pub(super) struct NoticesService {
    pub(super) board: Arc<Board>,
    /// The stream would never end by itself, and the server waits for all of them when it is asked to end.
    pub(super) stop: CancellationToken,
}

#[tonic::async_trait]
impl notices_server::Notices for NoticesService {
    type ListenStream = ReceiverStream<Result<Notice, Status>>;

    async fn listen(&self, _: Request<ListenRequest>) -> Result<Response<Self::ListenStream>, Status> {
        let (to, stream) = mpsc::channel(ROOM);
        tokio::spawn(forward(self.board.listen(), self.stop.clone(), to));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// Until the plugin is asked to end, the host lets go, or another host listens.
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
