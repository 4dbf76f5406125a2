//! The supervisor's part in notifications: a sink that answers as a test needs, and numbered events.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use talon_proto::host::{ExecuteRequest, ExecuteResponse, HostEvent, Outcome};
use tokio::sync::{Notify, Semaphore};
use tonic::Status;

/// What outlives agents that are killed.
pub(crate) struct Sink {
    /// What was told, in order.
    told: Mutex<Vec<Value>>,
    changed: Notify,
    /// The next answers; afterwards everything is delivered.
    answers: Mutex<VecDeque<Value>>,
    /// Each answer takes a permit.
    pub(crate) permits: Semaphore,
    events: Mutex<Vec<HostEvent>>,
    acknowledged: Mutex<u64>,
}

impl Sink {
    pub(crate) fn new(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            told: Mutex::default(),
            changed: Notify::new(),
            answers: Mutex::default(),
            permits: Semaphore::new(permits),
            events: Mutex::default(),
            acknowledged: Mutex::default(),
        })
    }

    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = Value>) {
        self.answers.lock().extend(answers);
    }

    /// What was told so far.
    pub(crate) fn told(&self) -> Vec<Value> {
        self.told.lock().clone()
    }

    /// Waits until so much was told.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Value> {
        loop {
            let more = self.changed.notified();
            let told = self.told();
            if told.len() >= count {
                return told;
            }
            more.await;
        }
    }

    /// Reports an event of a plugin.
    pub(crate) fn report(&self, number: u64) {
        let event = HostEvent {
            number,
            kind: "plugin.failed".into(),
            severity: "critical".into(),
            summary: format!("number {number}"),
            time_unix_ms: 1_700_000_000_000,
            fields: [("plugin".to_owned(), format!("p{number}"))].into(),
            ..HostEvent::default()
        };
        self.events.lock().push(event);
        self.changed.notify_waiters();
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        *self.acknowledged.lock()
    }

    pub(super) fn acknowledge(&self, through: u64) {
        *self.acknowledged.lock() = through;
        self.changed.notify_waiters();
    }

    pub(super) async fn execute(&self, request: &ExecuteRequest) -> ExecuteResponse {
        assert_eq!(request.role, "notification_sink");
        let told = serde_json::from_str(&request.arguments_json).expect("the agent sends JSON");
        self.told.lock().push(told);
        self.changed.notify_waiters();
        self.permits.acquire().await.unwrap().forget();
        let answer = self.answers.lock().pop_front().unwrap_or_else(|| json!({ "status": "delivered" }));
        ExecuteResponse {
            outcome: Outcome::Ok.into(),
            structured_content: answer.to_string(),
            ..ExecuteResponse::default()
        }
    }

    /// The events after a number, and those that come.
    pub(super) fn events_after(
        self: &Arc<Self>,
        after: u64,
    ) -> BoxStream<'static, Result<HostEvent, Status>> {
        let from = (Arc::clone(self), after);
        let events = stream::unfold(from, |(sink, after)| async move {
            loop {
                let more = sink.changed.notified();
                let next = sink.events.lock().iter().find(|event| event.number > after).cloned();
                match next {
                    None => more.await,
                    Some(event) => {
                        drop(more);
                        let number = event.number;
                        return Some((Ok(event), (sink, number)));
                    }
                }
            }
        });
        events.boxed()
    }
}
