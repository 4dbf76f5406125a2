//! The agent's metrics. The agent is asked at each scrape, but the scrape waits only briefly; if the answer
//! is late, the page shows the previous one.

mod render;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_proto::agent::GetMetricsRequest;
use talon_proto::agent::agent_client::AgentClient;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tonic::transport::Channel;

use crate::agent::AgentSupervisor;

/// How long a page waits for the answer. The agent only reads counters; if it takes longer, it is busy, and
/// the answer is used for the next page.
const WAIT: Duration = Duration::from_millis(200);
/// Timeout of a request.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Maximum size of an answer. It has some dozens of families; a larger one is rejected.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Requests the agent's metrics.
pub(super) struct AgentMetrics {
    agent: Option<(AgentSupervisor, AgentClient<Channel>)>,
    latest: Arc<Mutex<Arc<str>>>,
    /// Allows one request at a time.
    turn: Arc<Semaphore>,
}

impl AgentMetrics {
    /// Uses this supervisor's agent. Must be called within a tokio runtime.
    pub(super) fn new(keeper: Option<AgentSupervisor>) -> Self {
        let agent = keeper.map(|keeper| {
            let client = AgentClient::new(keeper.channel()).max_decoding_message_size(MAX_ANSWER_BYTES);
            (keeper, client)
        });
        Self { agent, latest: Arc::new(Mutex::new(Arc::from(""))), turn: Arc::new(Semaphore::new(1)) }
    }

    /// The metrics as text for the page; empty without a running agent.
    pub(super) async fn read(&self) -> Arc<str> {
        let Some((keeper, client)) = &self.agent else { return Arc::from("") };
        if !keeper.status().state.answers() {
            *self.latest.lock() = Arc::from("");
        } else if let Ok(turn) = Arc::clone(&self.turn).try_acquire_owned() {
            let (mut client, latest) = (client.clone(), Arc::clone(&self.latest));
            // A separate task, which finishes even if the page does not wait for it.
            let asking = tokio::spawn(async move {
                let _turn = turn;
                let answer = timeout(ANSWER_WITHIN, client.get_metrics(GetMetricsRequest {})).await;
                if let Ok(Ok(answer)) = answer {
                    *latest.lock() = render::text(answer.into_inner().families).into();
                }
            });
            let _ = timeout(WAIT, asking).await;
        }
        self.latest.lock().clone()
    }
}
