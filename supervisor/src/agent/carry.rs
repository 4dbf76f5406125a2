//! One connection of a client's, carried to the agent and back.
//!
//! The agent gets one end of a pair, and not the client's own connection: of one that was given away nobody here would know when it
//! ends, and there would be no bound on how many there are.

use tokio::io::copy;
use tokio::net::UnixStream;

/// Until either end is closed: what was said by then has arrived at the other. Half a connection is of no use to what is spoken
/// here.
pub(super) async fn carry(client: UnixStream, agent: UnixStream) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_agent, mut to_agent) = agent.into_split();
    // An error is the end of one of them, too.
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
            let carrying = tokio::spawn(carry(ours, theirs));
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
