//! Forwards one client connection to the agent.
//!
//! The agent gets one end of a socket pair instead of the client's own connection. Otherwise the supervisor
//! would not notice when a connection ends, and could not limit their number.

use tokio::io::copy;
use tokio::net::UnixStream;

/// Forwards until either end is closed; what was sent before is delivered. Half-closed connections are
/// useless for this protocol.
pub(super) async fn forward(client: UnixStream, agent: UnixStream) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_agent, mut to_agent) = agent.into_split();
    // An error ends the connection, too.
    tokio::select! {
        _ = copy(&mut from_client, &mut to_agent) => {}
        _ = copy(&mut from_agent, &mut to_client) => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn what_one_says_the_other_hears_and_then_its_end() {
        for agent_ends in [true, false] {
            let (mut client, ours) = UnixStream::pair().unwrap();
            let (theirs, mut agent) = UnixStream::pair().unwrap();
            let carrying = tokio::spawn(forward(ours, theirs));
            client.write_all(b"hello").await.unwrap();
            let mut heard = [0; 5];
            agent.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"hello");
            let (mut ends, mut other) = if agent_ends { (agent, client) } else { (client, agent) };
            ends.write_all(b"bye").await.unwrap();
            drop(ends);
            let mut rest = String::new();
            other.read_to_string(&mut rest).await.unwrap();
            assert_eq!(rest, "bye");
            carrying.await.unwrap();
        }
    }
}
