//! Sends observations to the agent over `agent.sock`, as long as it takes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use talon_client::Agent;
use talon_proto::agent::{ObserveRequest, ObserveResponse, ShadowState};
use tonic::{Code, Status};

use crate::notice::{Notices, say};
use crate::observation::unix_ms;
use crate::queue::Queue;

/// The first and the longest pause after a failure; each is twice the last one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long one request may take: the agent writes to its database, and asks no model meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// How often the agent hears of a watcher that sees nothing: it counts as gone after five minutes.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);

/// What the sender needs.
pub(crate) struct AgentSettings {
    pub(crate) socket: PathBuf,
    pub(crate) cooldown_ms: Option<u64>,
    pub(crate) max_ghosts_per_hour: Option<u32>,
}

/// The sender; lives as long as the process.
pub(crate) struct AgentSender {
    settings: AgentSettings,
    queue: Arc<Queue>,
    /// Messages of shells for which there was no room.
    shell_dropped: Arc<AtomicU64>,
    notices: Notices,
    agent: Option<Agent>,
}

impl AgentSender {
    pub(crate) fn new(
        settings: AgentSettings,
        queue: Arc<Queue>,
        shell_dropped: Arc<AtomicU64>,
        notices: Notices,
    ) -> Self {
        Self { settings, queue, shell_dropped, notices, agent: None }
    }

    /// Sends what comes, for ever. Begins with a request without observations, which says the limits and asks
    /// how the loop is; one a minute follows while nothing happens.
    pub(crate) async fn run(&mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.send().await {
                Ok(()) => {
                    pause = FIRST_PAUSE;
                    // Without an observation the agent hears that there is a watcher.
                    let _ = tokio::time::timeout(SIGN_OF_LIFE, self.queue.filled()).await;
                }
                Err(status) => {
                    self.say(&status);
                    self.agent = None;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Sends what waits until nothing does.
    pub(crate) async fn send_rest(&mut self) -> Result<(), Status> {
        while !self.queue.is_empty() {
            self.send().await?;
        }
        Ok(())
    }

    async fn send(&mut self) -> Result<(), Status> {
        // First: what is too old is dropped although no agent is there.
        let (observations, dropped) = self.queue.batch(unix_ms());
        let agent = match &self.agent {
            Some(agent) => agent.clone(),
            None => {
                let connected = Agent::connect(self.settings.socket.clone()).await;
                let agent = connected.map_err(|error| Status::unavailable(error.to_string()))?;
                self.agent.insert(agent).clone()
            }
        };
        let of_shells = self.shell_dropped.load(Ordering::Relaxed);
        let request = ObserveRequest {
            observations: observations.clone(),
            dropped: dropped.saturating_add(of_shells),
            cooldown_ms: self.settings.cooldown_ms,
            max_ghosts_per_hour: self.settings.max_ghosts_per_hour,
            limits: self.notices.limits(),
        };
        let mut grpc = agent.grpc();
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, grpc.observe(request)).await;
        let answer = answer.map_err(|_| Status::deadline_exceeded("no answer"))??.into_inner();
        self.queue.sent(&observations, dropped);
        self.shell_dropped.fetch_sub(of_shells, Ordering::Relaxed);
        self.read(&answer);
        Ok(())
    }

    fn read(&self, answer: &ObserveResponse) {
        if self.notices.over("agent") {
            say("the agent answers again");
        }
        for verdict in answer.verdicts.iter().filter(|verdict| verdict.verdict == "invalid") {
            let text = format!(
                "the agent refused an observation ({}): it may be of another version of talon",
                verdict.reason
            );
            self.notices.once(format!("invalid {}", verdict.reason), text);
        }
        let Some(ShadowState { problem, .. }) = &answer.state else { return };
        if problem.is_empty() {
            self.notices.over("state");
        } else {
            self.notices.once("state", format!("no ghost can come of what is observed: {problem}"));
        }
    }

    fn say(&self, status: &Status) {
        let path = self.settings.socket.display();
        let why = match status.code() {
            Code::Unimplemented => {
                format!("the agent at {path} is of another version of talon, and knows no observations")
            }
            Code::PermissionDenied | Code::FailedPrecondition | Code::Unauthenticated => {
                format!("the agent refuses observations: {}", status.message())
            }
            _ => format!("the agent at {path} does not answer ({})", status.message()),
        };
        let text = format!(
            "{why}; up to {} observations wait, {} now",
            crate::limits::OBSERVATIONS,
            self.queue.len()
        );
        self.notices.once("agent", text);
    }
}

#[cfg(test)]
mod tests {
    use talon_proto::agent::Observation;

    use super::*;

    // Promises: SHADOW-39
    #[tokio::test]
    async fn what_is_too_old_is_dropped_although_no_agent_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let queue = Arc::new(Queue::default());
        queue.push(Observation { id: "old".to_owned(), ..Observation::default() });
        queue.push(Observation {
            id: "new".to_owned(),
            occurred_unix_ms: unix_ms(),
            ..Observation::default()
        });
        let settings = AgentSettings {
            socket: dir.path().join("agent.sock"),
            cooldown_ms: None,
            max_ghosts_per_hour: None,
        };
        let notices = Notices::default();
        let mut sender = AgentSender::new(settings, Arc::clone(&queue), Arc::default(), notices);
        assert!(sender.send_rest().await.is_err(), "nobody listens");
        let (batch, dropped) = queue.batch(0);
        let ids: Vec<&str> = batch.iter().map(|seen| seen.id.as_str()).collect();
        assert_eq!((ids, dropped), (vec!["new"], 1));
    }
}
