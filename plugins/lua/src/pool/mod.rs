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
use tokio::time::Instant;

pub(crate) use machine::Machine;
use process::{ExitCause, Process};
use workers::Workers;

use crate::counters::Counters;
use crate::message::{Definition, MachineId, ScriptSource, ToWorker, WorkerMessage};

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

    /// Loads a script.
    pub(crate) async fn load(&self, script: ScriptSource) -> Result<(Arc<Machine>, Definition), LoadError> {
        let limits = script.limits;
        for _ in 0..MAX_LOADS {
            let (id, slot) = (self.0.next_id(), self.0.emptiest());
            let order = ToWorker::Load { machine: id, script: script.clone() };
            let process = match self.exchange(slot, id, &order, limits.execution + self.0.grace()).await {
                Exchanged::Answered(WorkerMessage::Loaded(Ok(definition)), process) => {
                    self.0.keep(slot, id, script);
                    let machine = Machine::new(id, slot, limits, Arc::clone(&self.0));
                    // A worker that was ended between the two has not got it; the one after it has.
                    if process.exit_cause().is_some() {
                        let _ = self.0.worker(slot);
                    }
                    return Ok((Arc::new(machine), definition));
                }
                Exchanged::Answered(WorkerMessage::Loaded(Err(error)), process) => {
                    let _ = process.send(&ToWorker::Unload { machine: id });
                    return Err(error);
                }
                Exchanged::Answered(..) => return Err(worker_error("the worker answered something else")),
                Exchanged::Late => {
                    return Err(LoadError::Run(CallError::new(
                        FailureKind::Deadline,
                        "compiling it, and running its top level, passed its time limit: make it smaller",
                    )));
                }
                Exchanged::Ended(ExitCause::Killed(_)) => continue,
                Exchanged::Ended(ExitCause::ByItself) => {
                    "the worker process that loaded it crashed".to_owned()
                }
                Exchanged::NotStarted(error) => format!("no worker process can be started: {error}"),
            };
            return Err(worker_error(&process));
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
        let (id, slot) = (self.0.next_id(), self.0.emptiest());
        let order = ToWorker::Test { machine: id, script, tests_name, tests };
        match self.exchange(slot, id, &order, TESTS_LIMIT).await {
            Exchanged::Answered(WorkerMessage::Tested(report), _) => report,
            Exchanged::Answered(..) => Err(worker_error("the worker answered something else")),
            Exchanged::Late => Err(worker_error("its tests took longer than a minute: test less")),
            Exchanged::Ended(_) => Err(worker_error("the worker that ran its tests ended: save it again")),
            Exchanged::NotStarted(error) => Err(worker_error(&format!("no worker can be started: {error}"))),
        }
    }

    /// Gives a worker an order and waits for what it says of it.
    async fn exchange(&self, slot: usize, id: MachineId, order: &ToWorker, limit: Duration) -> Exchanged {
        let process = match self.0.worker(slot) {
            Ok(process) => process,
            Err(error) => return Exchanged::NotStarted(error),
        };
        let mut route = process.route(id);
        if let Err(error) = process.send(order) {
            return Exchanged::NotStarted(error);
        }
        let until = Instant::now() + limit;
        tokio::select! {
            message = route.messages.recv() => match message {
                Some(message) => Exchanged::Answered(message, process),
                None => Exchanged::Ended(process.exit_cause().unwrap_or(ExitCause::ByItself)),
            },
            () = tokio::time::sleep_until(until) => {
                self.0.replace(slot, &process, id);
                Exchanged::Late
            }
        }
    }
}

enum Exchanged {
    Answered(WorkerMessage, Arc<Process>),
    Ended(ExitCause),
    Late,
    NotStarted(io::Error),
}

fn worker_error(text: &str) -> LoadError {
    LoadError::Run(CallError::new(FailureKind::Worker, text))
}
