//! The workers, from the plugin's side.
//!
//! Each script's machine is in one of a few processes. A worker that is ended, or ends by itself, is started again at once with all
//! scripts that it had.

mod machine;
mod process;
mod workers;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use talon_lua_engine::{CallError, FailureKind, LoadError, TestReport};
use tokio::time::{Instant, sleep_until};

pub(crate) use machine::Machine;
use process::{ExitCause, START_LIMIT};
use workers::{Reservation, Workers};

use crate::counters::{Counters, EndCounters};
use crate::message::{Definition, ScriptSource, ToWorker, WorkerMessage};

/// How long after a script's deadline its worker is ended. 50 milliseconds: an interrupt comes within microseconds, so what goes on
/// then is one long operation.
pub(crate) const KILL_GRACE: Duration = Duration::from_millis(50);
/// How long all tests of one script may take together. 60 seconds: somebody waits for the reload.
const TESTS_LIMIT: Duration = Duration::from_secs(60);
/// How often a script is loaded again because its worker was ended for another one meanwhile.
const MAX_LOADS: usize = 3;

/// What runs scripts.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Workers>);

impl Pool {
    /// A pool without a running worker yet: each starts with its first script.
    pub(crate) fn new(
        program: PathBuf,
        workers: NonZeroUsize,
        grace: Duration,
        counters: Arc<Counters>,
    ) -> Self {
        Self(Arc::new(Workers::new(program, workers, grace, counters)))
    }

    /// Loads a script. Its calls that pass their time limit are counted in `ends`.
    pub(crate) async fn load(
        &self,
        script: ScriptSource,
        ends: &Arc<EndCounters>,
    ) -> Result<(Arc<Machine>, Definition), LoadError> {
        let limits = script.limits;
        for _ in 0..MAX_LOADS {
            // Dropped on every way out but the good one.
            let reservation = self.0.reserve();
            let order = ToWorker::Load { machine: reservation.machine, script: script.clone() };
            let failure = match exchange(&reservation, &order, limits.execution + self.0.grace()).await {
                Exchanged::Answered(WorkerMessage::Loaded(Ok(definition))) => {
                    // A worker that was started before this does not know it, says so when it is called, and loads it then.
                    reservation.set_script(script);
                    return Ok((Arc::new(Machine::new(reservation, limits, Arc::clone(ends))), definition));
                }
                Exchanged::Answered(WorkerMessage::Loaded(Err(error))) => return Err(error),
                Exchanged::Answered(_) => "the worker answered something else".to_owned(),
                Exchanged::Late => {
                    return Err(LoadError::Run(CallError::new(
                        FailureKind::Deadline,
                        "compiling it, and running its top level, passed its time limit: make it smaller",
                    )));
                }
                Exchanged::NotBegun => not_begun(),
                Exchanged::Ended(ExitCause::Killed(_)) => continue,
                Exchanged::Ended(ExitCause::ByItself { .. }) => {
                    "the worker process that loaded it crashed".to_owned()
                }
                Exchanged::NotStarted(error) => format!("no worker process can be started: {error}"),
            };
            return Err(worker_error(&failure));
        }
        Err(worker_error("its worker was ended again and again, for other scripts"))
    }

    /// Runs a script's tests.
    pub(crate) async fn test(
        &self,
        script: ScriptSource,
        tests_name: String,
        tests: String,
    ) -> Result<TestReport, LoadError> {
        let reservation = self.0.reserve();
        let order = ToWorker::Test { machine: reservation.machine, script, tests_name, tests };
        match exchange(&reservation, &order, TESTS_LIMIT).await {
            Exchanged::Answered(WorkerMessage::Tested(report)) => report,
            Exchanged::Answered(_) => Err(worker_error("the worker answered something else")),
            Exchanged::Late => Err(LoadError::Run(CallError::new(
                FailureKind::Deadline,
                "its tests took longer than a minute: test less",
            ))),
            Exchanged::NotBegun => Err(worker_error(&not_begun())),
            Exchanged::Ended(_) => Err(worker_error("the worker that ran its tests ended")),
            Exchanged::NotStarted(error) => Err(worker_error(&format!("no worker can be started: {error}"))),
        }
    }
}

/// Gives a worker an order and waits for what it says of it; `limit` counts from when it begins.
async fn exchange(reservation: &Reservation, order: &ToWorker, limit: Duration) -> Exchanged {
    let process = match reservation.worker() {
        Ok(process) => process,
        Err(error) => return Exchanged::NotStarted(error),
    };
    let mut route = process.route(reservation.machine);
    if let Err(error) = process.send(order) {
        return Exchanged::NotStarted(error);
    }
    let (mut begun, mut deadline) = (false, Instant::now() + START_LIMIT);
    loop {
        tokio::select! {
            message = route.messages.recv() => match message {
                Some(WorkerMessage::Begun { .. }) => (begun, deadline) = (true, Instant::now() + limit),
                Some(message) => return Exchanged::Answered(message),
                None => return Exchanged::Ended(process.exit_cause().unwrap_or(ExitCause::ByItself { alone: true })),
            },
            () = sleep_until(deadline) => {
                reservation.replace_worker(&process);
                return if begun { Exchanged::Late } else { Exchanged::NotBegun };
            }
        }
    }
}

enum Exchanged {
    Answered(WorkerMessage),
    Ended(ExitCause),
    Late,
    NotBegun,
    NotStarted(io::Error),
}

fn not_begun() -> String {
    format!("its worker did not begin within {} s, and was ended", START_LIMIT.as_secs())
}

fn worker_error(text: &str) -> LoadError {
    LoadError::Run(CallError::new(FailureKind::Worker, text))
}
