//! A script in a worker: its calls, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use talon_lua_engine::{CallError, Context, FailureKind, Limits, Outcome, Point};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::process::{ExitCause, Process, START_LIMIT};
use super::workers::Reservation;
use crate::counters::EndCounters;
use crate::host_requests::HostRequests;
use crate::message::{Answer, Question, ToWorker, WorkerMessage};

/// How often a call is made when its worker is ended for another script.
const MAX_ATTEMPTS: usize = 3;

/// A script that is loaded. Dropping the last handle, which every call has, unloads it.
pub(crate) struct Machine {
    reservation: Reservation,
    limits: Limits,
    turn: tokio::sync::Mutex<()>,
    next_call: AtomicU64,
    memory_bytes: AtomicUsize,
    /// The script's, also of its earlier versions.
    ends: Arc<EndCounters>,
}

/// How following a call ended.
enum CallEnd {
    Done(Result<Outcome, CallError>),
    /// Its worker ended. `harmless`: the call had asked for nothing yet.
    WorkerEnded {
        exit_cause: ExitCause,
        harmless: bool,
    },
}

/// What a call is made with.
struct Request<'a> {
    point: Point,
    context: &'a Context,
    requests: &'a HostRequests,
    cancelled: &'a CancellationToken,
}

impl Machine {
    pub(super) fn new(reservation: Reservation, limits: Limits, ends: Arc<EndCounters>) -> Self {
        Self {
            reservation,
            limits,
            turn: tokio::sync::Mutex::new(()),
            next_call: AtomicU64::new(1),
            memory_bytes: AtomicUsize::new(0),
            ends,
        }
    }

    /// The memory that it had after its last call, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// Calls a function. `cancelled` ends it: while it waits for its turn or for an answer of the host, and otherwise at the next step
    /// of the script.
    pub(crate) async fn call(
        &self,
        point: Point,
        context: &Context,
        requests: &HostRequests,
        cancelled: &CancellationToken,
    ) -> Result<Outcome, CallError> {
        let request = Request { point, context, requests, cancelled };
        let Some(_turn) = cancelled.run_until_cancelled(self.turn.lock()).await else {
            return Err(was_cancelled());
        };
        // Held by a call that is made again after a crash.
        let mut suspect = None;
        for _ in 0..MAX_ATTEMPTS {
            if cancelled.is_cancelled() {
                return Err(was_cancelled());
            }
            let process = self.reservation.worker().map_err(|error| {
                CallError::new(FailureKind::Worker, format!("no worker process can be started: {error}"))
            })?;
            match self.follow(&process, &request).await {
                CallEnd::Done(outcome) => return outcome,
                CallEnd::WorkerEnded { exit_cause: ExitCause::Killed(_), harmless: true } => {}
                CallEnd::WorkerEnded { exit_cause: ExitCause::Killed(_), .. } => {
                    return Err(CallError::new(
                        FailureKind::Worker,
                        "its worker process was ended for another script, after this one had asked for something",
                    ));
                }
                CallEnd::WorkerEnded { exit_cause: ExitCause::ByItself { alone: false }, harmless: true }
                    if suspect.is_none() =>
                {
                    let turn = cancelled.run_until_cancelled(self.reservation.suspect_turn()).await;
                    suspect = Some(turn.ok_or_else(was_cancelled)?);
                }
                CallEnd::WorkerEnded { exit_cause: ExitCause::ByItself { .. }, .. } => {
                    return Err(CallError::new(FailureKind::Worker, "its worker process crashed"));
                }
            }
        }
        Err(CallError::new(
            FailureKind::Worker,
            "its worker process was ended again and again, for another script",
        ))
    }

    async fn follow(&self, process: &Arc<Process>, request: &Request<'_>) -> CallEnd {
        let (machine, workers) = (self.reservation.machine, &self.reservation.workers);
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        let mut route = process.route(machine);
        let order = ToWorker::Call { machine, call, point: request.point, context: request.context.clone() };
        if let Err(error) = process.send(&order) {
            return not_passed_on(&error);
        }
        // The script's own time begins when its thread says so.
        let mut deadline = Instant::now() + START_LIMIT;
        let (mut begun, mut harmless, mut loaded_again, mut cancel_sent) = (false, true, false, false);
        loop {
            let message = tokio::select! {
                message = route.messages.recv() => message,
                () = sleep_until(deadline) => {
                    self.reservation.replace_worker(process);
                    workers.counters().count_killed();
                    self.ends.killed.add();
                    return CallEnd::Done(Err(late(begun)));
                }
                () = request.cancelled.cancelled(), if !cancel_sent => {
                    cancel_sent = true;
                    // It ends with an answer, like any other.
                    let _ = process.send(&ToWorker::Cancel { machine, call });
                    continue;
                }
            };
            match message {
                None => {
                    let exit_cause = process.exit_cause().unwrap_or(ExitCause::ByItself { alone: true });
                    return CallEnd::WorkerEnded { exit_cause, harmless };
                }
                Some(WorkerMessage::Begun { call: Some(of) }) if of == call => {
                    begun = true;
                    deadline = Instant::now() + self.limits.execution + workers.grace();
                }
                // A worker that was started before the script was kept.
                Some(WorkerMessage::Unknown { call: of }) if of == call => {
                    let Some(script) = self.reservation.script().filter(|_| !loaded_again) else {
                        return CallEnd::Done(Err(CallError::new(
                            FailureKind::Worker,
                            "its worker does not keep it: this is a defect of talon-lua",
                        )));
                    };
                    loaded_again = true;
                    let sent = process.send(&ToWorker::Load { machine, script });
                    if let Err(error) = sent.and_then(|()| process.send(&order)) {
                        return not_passed_on(&error);
                    }
                    // Sent before the worker knew the call, it was lost.
                    cancel_sent = false;
                }
                Some(WorkerMessage::Logged { level, message }) => request.requests.log(level, &message),
                Some(WorkerMessage::Asked(question)) => {
                    harmless = false;
                    let answer = self.answer(request, question, &mut deadline).await;
                    if let Err(error) = process.send(&ToWorker::Answer { machine, answer }) {
                        let answer = Answer::Failed(format!("the answer cannot be passed on: {error}"));
                        let _ = process.send(&ToWorker::Answer { machine, answer });
                    }
                }
                Some(WorkerMessage::Done { call: of, outcome, memory_bytes }) if of == call => {
                    self.memory_bytes.store(memory_bytes, Ordering::Relaxed);
                    workers.counters().count(&outcome);
                    if outcome.as_ref().is_err_and(|error| error.kind == FailureKind::Deadline) {
                        self.ends.interrupted.add();
                    }
                    return CallEnd::Done(outcome);
                }
                // Of a worker that loaded it again, or of an earlier call.
                Some(
                    WorkerMessage::Begun { .. }
                    | WorkerMessage::Unknown { .. }
                    | WorkerMessage::Done { .. }
                    | WorkerMessage::Loaded(_)
                    | WorkerMessage::Tested(_),
                ) => {}
            }
        }
    }

    /// Answers a question. A model has a time limit of its own, which moves the deadline; everything else takes the script's time.
    async fn answer(&self, request: &Request<'_>, question: Question, deadline: &mut Instant) -> Answer {
        let (requests, waiting) = (request.requests, Instant::now());
        let is_model = matches!(question, Question::Model { .. });
        let end = deadline.checked_sub(self.reservation.workers.grace()).unwrap_or(*deadline);
        let answer = async {
            match question {
                Question::Model { prompt, model } => requests.model(&prompt, model.as_deref()).await,
                question => timeout_at(end, requests.key_values(question)).await.unwrap_or_else(|_| {
                    Answer::Failed("the store did not answer within the script's time".to_owned())
                }),
            }
        };
        let answer = request.cancelled.run_until_cancelled(answer).await;
        if is_model {
            *deadline += waiting.elapsed();
        }
        answer.unwrap_or_else(|| Answer::Failed(was_cancelled().message))
    }
}

fn was_cancelled() -> CallError {
    CallError::new(FailureKind::Cancelled, "the call was cancelled")
}

fn not_passed_on(error: &std::io::Error) -> CallEnd {
    CallEnd::Done(Err(CallError::new(FailureKind::Worker, format!("it cannot be called: {error}"))))
}

/// The error of a call whose worker was ended at the deadline.
fn late(begun: bool) -> CallError {
    if begun {
        CallError::new(
            FailureKind::Deadline,
            "the script passed its time limit within one operation that cannot be interrupted, so its worker was ended: do less at \
             once, or raise `limits.timeout_seconds`",
        )
    } else {
        CallError::new(
            FailureKind::Worker,
            format!(
                "its worker did not begin the call within {} s, and was ended: call again, or run fewer scripts per worker",
                START_LIMIT.as_secs()
            ),
        )
    }
}
