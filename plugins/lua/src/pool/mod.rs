//! The workers, from the plugin's side.
//!
//! Each script's machine is in one of a few processes. A worker that is ended, or ends by itself, is started again at once with all
//! scripts that it had.

mod machine;
mod process;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use talon_lua_engine::{CallError, FailureKind, LoadError, TestReport};
use tokio::time::Instant;

pub(crate) use machine::Machine;
use process::{Ending, Process};

use crate::counters::Counters;
use crate::message::{Definition, MachineId, ScriptSource, ToWorker, Told};

/// How long after a script's deadline its worker is ended. 50 milliseconds: an interrupt comes within microseconds, so what goes on
/// then is one long operation.
pub(crate) const KILL_GRACE: Duration = Duration::from_millis(50);
/// How long all tests of one script may take together. 60 seconds: somebody waits for the reload.
const TESTS_LIMIT: Duration = Duration::from_secs(60);
/// How often a script is loaded again because its worker was ended for another one meanwhile.
const MAX_LOADS: usize = 3;

/// The workers.
pub(crate) struct Pool {
    program: PathBuf,
    grace: Duration,
    slots: Vec<Slot>,
    next_machine: AtomicU64,
    counters: Arc<Counters>,
}

/// A place for one worker.
#[derive(Default)]
struct Slot {
    process: Mutex<Option<Arc<Process>>>,
    /// What a worker that is started here loads.
    machines: Mutex<BTreeMap<MachineId, ScriptSource>>,
}

impl Pool {
    /// A pool without a running worker yet: each starts with its first script.
    pub(crate) fn new(
        program: PathBuf,
        workers: NonZeroUsize,
        grace: Duration,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        let slots = (0..workers.get()).map(|_| Slot::default()).collect();
        Arc::new(Self { program, grace, slots, next_machine: AtomicU64::new(1), counters })
    }

    /// The worker of a slot: the one that runs, or a new one with all scripts of the slot.
    fn worker(&self, slot: usize) -> io::Result<Arc<Process>> {
        let slot = &self.slots[slot];
        let mut process = slot.process.lock();
        if let Some(running) = process.as_ref().filter(|process| process.ending().is_none()) {
            return Ok(Arc::clone(running));
        }
        let started = Process::start(&self.program, &self.counters)?;
        for (machine, script) in &*slot.machines.lock() {
            started.send(&ToWorker::Load { machine: *machine, script: script.clone() })?;
        }
        *process = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Ends a worker, and starts it again at once.
    fn replace(&self, slot: usize, process: &Process, machine: MachineId) {
        process.kill(machine);
        if let Err(error) = self.worker(slot) {
            talon_sdk::tracing::error!(%error, "a worker cannot be started again; the next call tries it");
        }
    }

    /// The slot with the fewest scripts.
    fn emptiest(&self) -> usize {
        let sizes = self.slots.iter().map(|slot| slot.machines.lock().len()).enumerate();
        sizes.min_by_key(|(_, size)| *size).map_or(0, |(index, _)| index)
    }

    fn next_id(&self) -> MachineId {
        self.next_machine.fetch_add(1, Ordering::Relaxed)
    }

    /// Loads a script.
    pub(crate) async fn load(
        self: &Arc<Self>,
        script: ScriptSource,
    ) -> Result<(Arc<Machine>, Definition), LoadError> {
        let limits = script.limits;
        for _ in 0..MAX_LOADS {
            let (id, slot) = (self.next_id(), self.emptiest());
            let order = ToWorker::Load { machine: id, script: script.clone() };
            let process = match self.exchange(slot, id, &order, limits.execution + self.grace).await {
                Exchanged::Told(Told::Loaded(Ok(definition)), process) => {
                    let _ = self.slots[slot].machines.lock().insert(id, script);
                    let machine = Machine::new(id, slot, limits, Arc::clone(self));
                    // A worker that was ended between the two has not got it; the one after it has.
                    if process.ending().is_some() {
                        let _ = self.worker(slot);
                    }
                    return Ok((Arc::new(machine), definition));
                }
                Exchanged::Told(Told::Loaded(Err(error)), process) => {
                    let _ = process.send(&ToWorker::Unload { machine: id });
                    return Err(error);
                }
                Exchanged::Told(..) => return Err(worker_error("the worker answered something else")),
                Exchanged::Late => {
                    return Err(LoadError::Run(CallError::new(
                        FailureKind::Deadline,
                        "compiling it, and running its top level, passed its time limit: make it smaller",
                    )));
                }
                Exchanged::Ended(Ending::Killed(_)) => continue,
                Exchanged::Ended(Ending::ByItself) => "the worker process that loaded it crashed".to_owned(),
                Exchanged::NotStarted(error) => format!("no worker process can be started: {error}"),
            };
            return Err(worker_error(&process));
        }
        Err(worker_error("its worker was ended again and again, for other scripts"))
    }

    /// Runs a script's tests.
    pub(crate) async fn test(
        self: &Arc<Self>,
        script: ScriptSource,
        tests_name: String,
        tests: String,
    ) -> Result<TestReport, LoadError> {
        let (id, slot) = (self.next_id(), self.emptiest());
        let order = ToWorker::Test { machine: id, script, tests_name, tests };
        match self.exchange(slot, id, &order, TESTS_LIMIT).await {
            Exchanged::Told(Told::Tested(report), _) => report,
            Exchanged::Told(..) => Err(worker_error("the worker answered something else")),
            Exchanged::Late => Err(worker_error("its tests took longer than a minute: test less")),
            Exchanged::Ended(_) => Err(worker_error("the worker that ran its tests ended: save it again")),
            Exchanged::NotStarted(error) => Err(worker_error(&format!("no worker can be started: {error}"))),
        }
    }

    /// Gives a worker an order and waits for what it says of it.
    async fn exchange(&self, slot: usize, id: MachineId, order: &ToWorker, limit: Duration) -> Exchanged {
        let process = match self.worker(slot) {
            Ok(process) => process,
            Err(error) => return Exchanged::NotStarted(error),
        };
        let mut route = process.route(id);
        if let Err(error) = process.send(order) {
            return Exchanged::NotStarted(error);
        }
        let until = Instant::now() + limit;
        tokio::select! {
            told = route.told.recv() => match told {
                Some(told) => Exchanged::Told(told, process),
                None => Exchanged::Ended(process.ending().unwrap_or(Ending::ByItself)),
            },
            () = tokio::time::sleep_until(until) => {
                self.replace(slot, &process, id);
                Exchanged::Late
            }
        }
    }

    /// Forgets a script.
    fn unload(&self, slot: usize, machine: MachineId) {
        let slot = &self.slots[slot];
        let _ = slot.machines.lock().remove(&machine);
        if let Some(process) = &*slot.process.lock() {
            // One that has ended knows no scripts any more.
            let _ = process.send(&ToWorker::Unload { machine });
        }
    }
}

enum Exchanged {
    Told(Told, Arc<Process>),
    Ended(Ending),
    Late,
    NotStarted(io::Error),
}

fn worker_error(text: &str) -> LoadError {
    LoadError::Run(CallError::new(FailureKind::Worker, text))
}
