//! A script in a worker: its calls, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use talon_lua_engine::{CallError, Context, FailureKind, Limits, Outcome, Point};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::process::{ExitCause, Process};
use super::workers::Workers;
use crate::host_requests::HostRequests;
use crate::message::{Answer, MachineId, Question, ToWorker, WorkerMessage};

/// How often a call is made when its worker is ended for another script.
const MAX_ATTEMPTS: usize = 3;

/// A script that is loaded. Dropping the last handle, which every call has, unloads it.
pub(crate) struct Machine {
    id: MachineId,
    slot: usize,
    limits: Limits,
    workers: Arc<Workers>,
    turn: tokio::sync::Mutex<()>,
    next_call: AtomicU64,
    memory_bytes: AtomicUsize,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.workers.unload(self.slot, self.id);
    }
}

/// How following a call ended.
enum CallEnd {
    Done(Result<Outcome, CallError>),
    /// Its worker ended. `harmless`: the call had asked for nothing yet.
    Ended {
        exit_cause: ExitCause,
        harmless: bool,
    },
}

impl Machine {
    pub(super) fn new(id: MachineId, slot: usize, limits: Limits, workers: Arc<Workers>) -> Self {
        Self {
            id,
            slot,
            limits,
            workers,
            turn: tokio::sync::Mutex::new(()),
            next_call: AtomicU64::new(1),
            memory_bytes: AtomicUsize::new(0),
        }
    }

    /// The memory that it had after its last call, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// Calls a function. `cancelled` ends it at the next step of the script.
    pub(crate) async fn call(
        &self,
        point: Point,
        context: &Context,
        requests: &HostRequests,
        cancelled: &Notify,
    ) -> Result<Outcome, CallError> {
        let _turn = self.turn.lock().await;
        for _ in 0..MAX_ATTEMPTS {
            let process = self.workers.worker(self.slot).map_err(|error| {
                CallError::new(FailureKind::Worker, format!("no worker process can be started: {error}"))
            })?;
            match self.follow(&process, point, context, requests, cancelled).await {
                CallEnd::Done(outcome) => return outcome,
                CallEnd::Ended { exit_cause: ExitCause::Killed(_), harmless: true } => {}
                CallEnd::Ended { exit_cause: ExitCause::Killed(_), .. } => {
                    return Err(CallError::new(
                        FailureKind::Worker,
                        "its worker process was ended for another script, after this one had asked for something",
                    ));
                }
                CallEnd::Ended { exit_cause: ExitCause::ByItself, .. } => {
                    return Err(CallError::new(FailureKind::Worker, "its worker process crashed"));
                }
            }
        }
        Err(CallError::new(
            FailureKind::Worker,
            "its worker process was ended again and again, for another script",
        ))
    }

    async fn follow(
        &self,
        process: &Arc<Process>,
        point: Point,
        context: &Context,
        requests: &HostRequests,
        cancelled: &Notify,
    ) -> CallEnd {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        let mut route = process.route(self.id);
        let order = ToWorker::Call { machine: self.id, call, point, context: context.clone() };
        if let Err(error) = process.send(&order) {
            return CallEnd::Done(Err(CallError::new(
                FailureKind::Worker,
                format!("it cannot be called: {error}"),
            )));
        }
        let mut left = self.limits.execution + self.workers.grace();
        let mut harmless = true;
        loop {
            let waiting = Instant::now();
            let message = tokio::select! {
                message = route.messages.recv() => message,
                () = sleep(left) => {
                    self.workers.counters().count_killed();
                    self.workers.replace(self.slot, process, self.id);
                    return CallEnd::Done(Err(CallError::new(
                        FailureKind::Deadline,
                        "the script passed its time limit within one operation that cannot be interrupted, so its worker was \
                         ended: do less at once, or raise `limits.timeout_seconds`",
                    )));
                }
                () = cancelled.notified() => {
                    // It ends with an answer, like any other.
                    let _ = process.send(&ToWorker::Cancel { machine: self.id, call });
                    continue;
                }
            };
            left = left.saturating_sub(waiting.elapsed());
            match message {
                None => {
                    let exit_cause = process.exit_cause().unwrap_or(ExitCause::ByItself);
                    return CallEnd::Ended { exit_cause, harmless };
                }
                Some(WorkerMessage::Logged { level, message }) => requests.log(level, &message),
                Some(WorkerMessage::Asked(question)) => {
                    harmless = false;
                    let answer = self.answer(requests, question, &mut left).await;
                    if let Err(error) = process.send(&ToWorker::Answer { machine: self.id, answer }) {
                        let answer = Answer::Failed(format!("the answer cannot be passed on: {error}"));
                        let _ = process.send(&ToWorker::Answer { machine: self.id, answer });
                    }
                }
                Some(WorkerMessage::Done { call: done, outcome, memory_bytes }) if done == call => {
                    self.memory_bytes.store(memory_bytes, Ordering::Relaxed);
                    self.workers.counters().count(&outcome);
                    return CallEnd::Done(outcome);
                }
                // Of a worker that loaded it again, or of an earlier call.
                Some(WorkerMessage::Done { .. } | WorkerMessage::Loaded(_) | WorkerMessage::Tested(_)) => {}
            }
        }
    }

    /// Answers a question. A model has a time limit of its own; everything else takes the script's time.
    async fn answer(&self, requests: &HostRequests, question: Question, left: &mut Duration) -> Answer {
        if let Question::Model { prompt, model } = question {
            return requests.model(&prompt, model.as_deref()).await;
        }
        let waiting = Instant::now();
        let limit = left.saturating_sub(self.workers.grace());
        let answer = timeout(limit, requests.key_values(question)).await;
        *left = left.saturating_sub(waiting.elapsed());
        answer.unwrap_or_else(|_| {
            Answer::Failed("the store did not answer within the script's time".to_owned())
        })
    }
}
