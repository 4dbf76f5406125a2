//! A connection to an address that stands for one host: a tunnel from its first byte.

use talon_plugin_config::host_port::HostPort;
use talon_sanitize::Raw;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;

use crate::denial::Denial;
use crate::proxy_state::ProxyState;
use crate::serve::REFUSED_PAUSE;
use crate::target::{self, TargetError};
use crate::tunnel;

/// Serves one connection until it ends. Where the host is not reached, the plugin sees a closed connection, and
/// its log has the reason.
pub(super) async fn connection<S>(stream: S, place: &HostPort, shared: &ProxyState)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match target::reach(place, shared).await {
        Ok(target) => {
            shared.counters.tunnel();
            tunnel::run(stream, target, &shared.counters).await;
        }
        // A denial is logged already.
        Err(TargetError::Denied(_)) => sleep(REFUSED_PAUSE).await,
        Err(TargetError::Failed { reason, .. }) => {
            shared.counters.failed();
            (shared.on_denied)(&Denial::Unreachable { reason: Raw::from(reason).line() });
            sleep(REFUSED_PAUSE).await;
        }
    }
}
