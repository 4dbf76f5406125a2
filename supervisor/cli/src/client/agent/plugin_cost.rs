//! What a plugin asked of models today, for `talon plugin show`.

use std::time::Duration;

use talon_proto::agent::{Cost, GetCostsRequest};
use tokio::time::{error::Elapsed, timeout};

use super::connection::AgentConnection;
use super::formatting::{count, usd};
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;

/// How long the agent may take: the rest of what is shown does not need it.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a plugin asked of models today, in the calls of turns and on its own account. Only operators are told; others see nothing.
pub(in crate::client) async fn today(socket: &HostSocket<'_>, plugin: &str) -> Result<Cost, Failure> {
    let late =
        |_: Elapsed| Failure::new(exit::HOST_FAULT, format!("the agent did not answer within {PATIENCE:?}"));
    timeout(PATIENCE, ask(socket, plugin)).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

async fn ask(socket: &HostSocket<'_>, plugin: &str) -> Result<Cost, Failure> {
    let reach = AgentConnection::connect(socket).await?;
    let costs =
        reach.query(|mut agent| async move { agent.get_costs(GetCostsRequest::default()).await }).await?;
    let of_plugin = costs.by_plugin.into_iter().find(|named| named.name == plugin);
    Ok(of_plugin.and_then(|named| named.cost).unwrap_or_default())
}

/// The same as a line.
pub(in crate::client) fn line(cost: &Cost) -> String {
    format!(
        "{} answers, {} failures, {} tokens, {}",
        count(cost.answers),
        count(cost.failures),
        count(cost.input_tokens + cost.output_tokens),
        usd(cost.cost_pico_usd)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-170
    #[test]
    fn a_plugins_use_of_models_is_one_line() {
        let cost = Cost { answers: 3, failures: 1, input_tokens: 1000, output_tokens: 30, ..Cost::default() };
        let line = line(&Cost { cost_pico_usd: 3_300_000_000, ..cost });
        assert!(line.starts_with("3 answers, 1 failures, ") && line.contains("0.0033"), "{line}");
    }
}
