//! The worker processes: which script is in which, and what starts one again.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::process::Process;
use crate::counters::Counters;
use crate::message::{MachineId, ScriptSource, ToWorker};

/// The workers.
pub(super) struct Workers {
    program: PathBuf,
    grace: Duration,
    processes: Vec<Mutex<Option<Arc<Process>>>>,
    /// The scripts of each slot. One lock for all slots: who chooses one has taken it before anybody else chooses.
    scripts: Mutex<Vec<BTreeMap<MachineId, ReservationState>>>,
    /// For each slot, the turn of calls that are made again after a crash: one after the other, so that the one that makes its
    /// worker crash is lost alone.
    suspects: Vec<tokio::sync::Mutex<()>>,
    next_machine: AtomicU64,
    counters: Arc<Counters>,
}

/// What a reservation is for.
enum ReservationState {
    /// Something that loads for the first time, or tests: a worker that is started again leaves it out.
    Loading,
    /// A script that a worker loads when it is started.
    Loaded(ScriptSource),
}

/// Room for one machine in a slot. Dropping it unloads the machine.
pub(super) struct Reservation {
    pub(super) machine: MachineId,
    pub(super) slot: usize,
    pub(super) workers: Arc<Workers>,
}

impl Reservation {
    /// What a worker that is started in this slot loads from now on.
    pub(super) fn set_script(&self, script: ScriptSource) {
        let mut scripts = self.workers.scripts.lock();
        let _ = scripts[self.slot].insert(self.machine, ReservationState::Loaded(script));
    }

    /// Its script, once it is loaded.
    pub(super) fn script(&self) -> Option<ScriptSource> {
        match self.workers.scripts.lock()[self.slot].get(&self.machine) {
            Some(ReservationState::Loaded(script)) => Some(script.clone()),
            Some(ReservationState::Loading) | None => None,
        }
    }

    /// The worker of its slot.
    pub(super) fn worker(&self) -> io::Result<Arc<Process>> {
        self.workers.worker(self.slot)
    }

    /// Waits until no other call of the slot is made again after a crash.
    pub(super) async fn suspect_turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.workers.suspects[self.slot].lock().await
    }

    /// Ends the worker of its slot for this machine, and starts it again at once.
    pub(super) fn replace_worker(&self, process: &Process) {
        process.kill(self.machine);
        if let Err(error) = self.worker() {
            talon_sdk::tracing::error!(%error, "a worker cannot be started again; the next call tries it");
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let _ = self.workers.scripts.lock()[self.slot].remove(&self.machine);
        if let Some(process) = &*self.workers.processes[self.slot].lock() {
            // One that has ended knows no scripts any more.
            let _ = process.send(&ToWorker::Unload { machine: self.machine });
        }
    }
}

impl Workers {
    /// No worker runs yet: each starts with its first script.
    pub(super) fn new(
        program: PathBuf,
        workers: NonZeroUsize,
        grace: Duration,
        counters: Arc<Counters>,
    ) -> Self {
        let processes = (0..workers.get()).map(|_| Mutex::default()).collect();
        let scripts = Mutex::new((0..workers.get()).map(|_| BTreeMap::new()).collect());
        let suspects = (0..workers.get()).map(|_| tokio::sync::Mutex::default()).collect();
        Self { program, grace, processes, scripts, suspects, next_machine: AtomicU64::new(1), counters }
    }

    /// The worker of a slot: the one that runs, or a new one with all scripts of the slot.
    fn worker(&self, slot: usize) -> io::Result<Arc<Process>> {
        let mut process = self.processes[slot].lock();
        if let Some(running) = process.as_ref().filter(|process| process.exit_cause().is_none()) {
            return Ok(Arc::clone(running));
        }
        let started = Process::start(&self.program, &self.counters)?;
        for (machine, content) in &self.scripts.lock()[slot] {
            if let ReservationState::Loaded(script) = content {
                started.send(&ToWorker::Load { machine: *machine, script: script.clone() })?;
            }
        }
        *process = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Reserves room in the slot with the fewest scripts, those that load included.
    pub(super) fn reserve(self: &Arc<Self>) -> Reservation {
        let machine = self.next_machine.fetch_add(1, Ordering::Relaxed);
        let mut scripts = self.scripts.lock();
        let sizes = scripts.iter().map(BTreeMap::len).enumerate();
        let slot = sizes.min_by_key(|(_, size)| *size).map_or(0, |(slot, _)| slot);
        let _ = scripts[slot].insert(machine, ReservationState::Loading);
        Reservation { machine, slot, workers: Arc::clone(self) }
    }

    /// How long after a script's deadline its worker is ended.
    pub(super) fn grace(&self) -> Duration {
        self.grace
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_while_its_script_loads_and_free_when_it_is_dropped() {
        let two = NonZeroUsize::new(2).expect("it is two");
        let workers = Arc::new(Workers::new(PathBuf::new(), two, Duration::ZERO, Arc::default()));
        let (first, second, third) = (workers.reserve(), workers.reserve(), workers.reserve());
        assert_eq!((first.slot, second.slot, third.slot), (0, 1, 0));
        drop((first, third));
        let (fourth, fifth) = (workers.reserve(), workers.reserve());
        assert_eq!((fourth.slot, fifth.slot), (0, 0), "the second slot holds one");
    }
}
