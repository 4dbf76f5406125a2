//! Copies the bytes of an open tunnel in both directions.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio_util::io::InspectReader;

use super::counters::Counters;
use super::deadline::Deadline;

/// How long a tunnel may be idle in both directions. 5 min: more than the keep-alive of every common server
/// and client. After it the tunnel is closed, so that forgotten connections do not fill the plugin's slots.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The buffer of each direction, in bytes: 64 tunnels of a plugin take 1 MiB together.
const BUFFER_BYTES: usize = 8 << 10;

/// Copies until both sides have ended, one of them fails, or nothing has moved for [`IDLE_TIMEOUT`]. The end
/// of one direction is passed on while the other keeps running, because some protocols use half-closed
/// connections.
pub(super) async fn run<P, T>(plugin: P, target: T, counters: &Counters)
where
    P: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let deadline = Deadline::after(IDLE_TIMEOUT);
    let mut plugin = InspectReader::new(plugin, |bytes: &[u8]| {
        deadline.set(IDLE_TIMEOUT);
        counters.sent(bytes.len());
    });
    let mut target = InspectReader::new(target, |bytes: &[u8]| {
        deadline.set(IDLE_TIMEOUT);
        counters.received(bytes.len());
    });
    tokio::select! {
        // An error on either side ends both; they see a closed connection.
        _ = copy_bidirectional_with_sizes(&mut plugin, &mut target, BUFFER_BYTES, BUFFER_BYTES) => {}
        () = deadline.passed() => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::{Instant, sleep_until};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_that_carries_nothing_is_closed() {
        let counters = Counters::default();
        let ((mut plugin, near), (far, mut host)) = (duplex(64), duplex(64));
        let start = Instant::now();
        let plugin = async {
            sleep_until(start + IDLE_TIMEOUT - Duration::from_secs(1)).await;
            plugin.write_all(b"x").await.unwrap();
            assert_eq!(host.read_u8().await.unwrap(), b'x');
            assert_eq!(plugin.read(&mut [0]).await.unwrap(), 0);
        };
        tokio::join!(run(near, far, &counters), plugin);
        assert_eq!(start.elapsed().as_secs(), 2 * IDLE_TIMEOUT.as_secs() - 1);
    }
}
