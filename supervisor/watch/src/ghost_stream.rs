//! Ghosts as the agent tells of them, for what shows them: the shells' prompt, and the desktop.

use std::path::{Path, PathBuf};
use std::time::Duration;

use talon_client::Agent;
use talon_proto::agent::ghost_event::Kind;
use talon_proto::agent::{FollowGhostsRequest, Ghost};
use tonic::Status;

/// The pause before an agent that does not answer is asked again. What it says is told by the sender.
const PAUSE: Duration = Duration::from_secs(10);

/// What shows ghosts.
pub(crate) trait GhostView: Send {
    /// A ghost is new, or changed.
    fn take(&mut self, ghost: Ghost);
    /// All that were stored before were taken.
    fn caught_up(&mut self);
    /// The agent ended. All ghosts come again.
    fn lost(&mut self);
}

/// Follows ghosts for ever.
pub(crate) async fn follow_ghosts(socket: PathBuf, mut views: Vec<Box<dyn GhostView>>) {
    loop {
        // The end of a stream is an agent that is replaced; what is wrong with it is said by the sender.
        let _ = follow(&socket, &mut views).await;
        views.iter_mut().for_each(|view| view.lost());
        tokio::time::sleep(PAUSE).await;
    }
}

/// All ghosts that are stored come first, so that nothing is left over from before.
async fn follow(socket: &Path, views: &mut [Box<dyn GhostView>]) -> Result<(), Status> {
    let unavailable = |error: std::io::Error| Status::unavailable(error.to_string());
    let agent = Agent::connect(socket.to_owned()).await.map_err(unavailable)?;
    let mut stream = agent.grpc().follow_ghosts(FollowGhostsRequest::default()).await?.into_inner();
    while let Some(event) = stream.message().await? {
        match event.kind {
            Some(Kind::Ghost(ghost)) => views.iter_mut().for_each(|view| view.take(ghost.clone())),
            Some(Kind::CaughtUp(_)) => views.iter_mut().for_each(|view| view.caught_up()),
            Some(Kind::Event(_)) | None => {}
        }
    }
    Ok(())
}
