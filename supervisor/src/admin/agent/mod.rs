//! What the agent counts, as it says itself. It is asked when somebody scrapes, and waited for no longer than nobody notices: what it
//! said last stands there until it answers.

mod render;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use talon_proto::agent::GetMetricsRequest;
use talon_proto::agent::agent_client::AgentClient;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tonic::transport::Channel;

use crate::agent::Keeper;
use crate::service::KeeperState;

/// How long a page waits for its answer. It only reads what it has counted; one that takes longer is busy, and its answer is for the
/// next page.
const WAIT: Duration = Duration::from_millis(200);
/// How long an answer may take at all.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The largest answer. It has some dozens of families; a larger one is not read.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Asks for the numbers.
pub(super) struct Numbers {
    agent: Option<(Keeper, AgentClient<Channel>)>,
    latest: Arc<Mutex<Arc<str>>>,
    /// One question at a time.
    turn: Arc<Semaphore>,
}

impl Numbers {
    /// Asks the agent of this keeper. Must be called within a tokio runtime.
    pub(super) fn new(keeper: Option<Keeper>) -> Self {
        let agent = keeper.map(|keeper| {
            let client = AgentClient::new(keeper.channel()).max_decoding_message_size(MAX_ANSWER_BYTES);
            (keeper, client)
        });
        Self { agent, latest: Arc::new(Mutex::new(Arc::from(""))), turn: Arc::new(Semaphore::new(1)) }
    }

    /// As text for a page, made to fit there; empty if there is no agent, or none that serves.
    pub(super) async fn read(&self) -> Arc<str> {
        let Some((keeper, client)) = &self.agent else { return Arc::from("") };
        if keeper.status().state != KeeperState::Serving {
            *lock(&self.latest) = Arc::from("");
        } else if let Ok(turn) = Arc::clone(&self.turn).try_acquire_owned() {
            let (mut client, latest) = (client.clone(), Arc::clone(&self.latest));
            // A task of its own: a page that does not wait for it leaves it to its end.
            let asking = tokio::spawn(async move {
                let _turn = turn;
                let answer = timeout(ANSWER_WITHIN, client.get_metrics(GetMetricsRequest {})).await;
                if let Ok(Ok(answer)) = answer {
                    *lock(&latest) = render::text(answer.into_inner().families).into();
                }
            });
            let _ = timeout(WAIT, asking).await;
        }
        lock(&self.latest).clone()
    }
}

fn lock(latest: &Mutex<Arc<str>>) -> std::sync::MutexGuard<'_, Arc<str>> {
    latest.lock().unwrap_or_else(PoisonError::into_inner)
}
