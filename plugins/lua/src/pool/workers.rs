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

impl Workers {
    /// No worker runs yet: each starts with its first script.
    pub(super) fn new(
        program: PathBuf,
        workers: NonZeroUsize,
        grace: Duration,
        counters: Arc<Counters>,
    ) -> Self {
        let slots = (0..workers.get()).map(|_| Slot::default()).collect();
        Self { program, grace, slots, next_machine: AtomicU64::new(1), counters }
    }

    /// The worker of a slot: the one that runs, or a new one with all scripts of the slot.
    pub(super) fn worker(&self, slot: usize) -> io::Result<Arc<Process>> {
        let slot = &self.slots[slot];
        let mut process = slot.process.lock();
        if let Some(running) = process.as_ref().filter(|process| process.exit_cause().is_none()) {
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
    pub(super) fn replace(&self, slot: usize, process: &Process, machine: MachineId) {
        process.kill(machine);
        if let Err(error) = self.worker(slot) {
            talon_sdk::tracing::error!(%error, "a worker cannot be started again; the next call tries it");
        }
    }

    /// The slot with the fewest scripts.
    pub(super) fn emptiest(&self) -> usize {
        let sizes = self.slots.iter().map(|slot| slot.machines.lock().len()).enumerate();
        sizes.min_by_key(|(_, size)| *size).map_or(0, |(index, _)| index)
    }

    pub(super) fn next_id(&self) -> MachineId {
        self.next_machine.fetch_add(1, Ordering::Relaxed)
    }

    /// What a worker that is started in this slot loads from now on.
    pub(super) fn keep(&self, slot: usize, machine: MachineId, script: ScriptSource) {
        let _ = self.slots[slot].machines.lock().insert(machine, script);
    }

    /// How long after a script's deadline its worker is ended.
    pub(super) fn grace(&self) -> Duration {
        self.grace
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Forgets a script.
    pub(super) fn unload(&self, slot: usize, machine: MachineId) {
        let slot = &self.slots[slot];
        let _ = slot.machines.lock().remove(&machine);
        if let Some(process) = &*slot.process.lock() {
            // One that has ended knows no scripts any more.
            let _ = process.send(&ToWorker::Unload { machine });
        }
    }
}
