//! A script in a worker: its calls, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use talon_lua_engine::{CallError, Context, FailureKind, Limits, Outcome, Point};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::process::{Ending, Process};
use super::workers::Workers;
use crate::asked::Asked;
use crate::message::{Answer, MachineId, Question, ToWorker, Told};

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
enum Followed {
    Done(Result<Outcome, CallError>),
    /// Its worker ended. `harmless`: the call had asked for nothing yet.
    Ended {
        ending: Ending,
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
        asked: &Asked,
        cancelled: &Notify,
    ) -> Result<Outcome, CallError> {
        let _turn = self.turn.lock().await;
        for _ in 0..MAX_ATTEMPTS {
            let process = self.workers.worker(self.slot).map_err(|error| {
                CallError::new(FailureKind::Worker, format!("no worker process can be started: {error}"))
            })?;
            match self.follow(&process, point, context, asked, cancelled).await {
                Followed::Done(outcome) => return outcome,
                Followed::Ended { ending: Ending::Killed(_), harmless: true } => {}
                Followed::Ended { ending: Ending::Killed(_), .. } => {
                    return Err(CallError::new(
                        FailureKind::Worker,
                        "its worker process was ended for another script, after this one had asked for something",
                    ));
                }
                Followed::Ended { ending: Ending::ByItself, .. } => {
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
        asked: &Asked,
        cancelled: &Notify,
    ) -> Followed {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        let mut route = process.route(self.id);
        let order = ToWorker::Call { machine: self.id, call, point, context: context.clone() };
        if let Err(error) = process.send(&order) {
            return Followed::Done(Err(CallError::new(
                FailureKind::Worker,
                format!("it cannot be called: {error}"),
            )));
        }
        let mut left = self.limits.execution + self.workers.grace();
        let mut harmless = true;
        loop {
            let waiting = Instant::now();
            let told = tokio::select! {
                told = route.told.recv() => told,
                () = sleep(left) => {
                    self.workers.counters().count_killed();
                    self.workers.replace(self.slot, process, self.id);
                    return Followed::Done(Err(CallError::new(
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
            match told {
                None => {
                    let ending = process.ending().unwrap_or(Ending::ByItself);
                    return Followed::Ended { ending, harmless };
                }
                Some(Told::Logged { level, message }) => asked.log(level, &message),
                Some(Told::Asked(question)) => {
                    harmless = false;
                    let answer = self.answer(asked, question, &mut left).await;
                    if let Err(error) = process.send(&ToWorker::Answer { machine: self.id, answer }) {
                        let answer = Answer::Failed(format!("the answer cannot be passed on: {error}"));
                        let _ = process.send(&ToWorker::Answer { machine: self.id, answer });
                    }
                }
                Some(Told::Done { call: done, outcome, memory_bytes }) if done == call => {
                    self.memory_bytes.store(memory_bytes, Ordering::Relaxed);
                    self.workers.counters().count(&outcome);
                    return Followed::Done(outcome);
                }
                // Of a worker that loaded it again, or of an earlier call.
                Some(Told::Done { .. } | Told::Loaded(_) | Told::Tested(_)) => {}
            }
        }
    }

    /// Answers a question. A model has a time limit of its own; everything else takes the script's time.
    async fn answer(&self, asked: &Asked, question: Question, left: &mut Duration) -> Answer {
        if let Question::Model { prompt, model } = question {
            return asked.model(&prompt, model.as_deref()).await;
        }
        let waiting = Instant::now();
        let limit = left.saturating_sub(self.workers.grace());
        let answer = timeout(limit, asked.key_values(question)).await;
        *left = left.saturating_sub(waiting.elapsed());
        answer.unwrap_or_else(|_| {
            Answer::Failed("the store did not answer within the script's time".to_owned())
        })
    }
}
