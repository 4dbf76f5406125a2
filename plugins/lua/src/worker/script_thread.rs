//! The thread of one script.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use parking_lot::Mutex;
use talon_lua_engine::{CallError, CancelFlag, Context, FailureKind, Point, Script, run_tests};

use super::outbox::Outbox;
use super::remote_host::RemoteHost;
use crate::message::{Answer, Definition, MachineId, ScriptSource, WorkerMessage};

/// The stack of a script's thread. 8 MiB, as of a process's first: the compiler recurses with the nesting of the source up to a
/// limit of its own, which fits into this.
const STACK_BYTES: usize = 8 << 20;

/// A call that waits for the thread. There is one at most: the plugin sends the next when it has the answer.
struct Call {
    id: u64,
    point: Point,
    context: Context,
    cancel: CancelFlag,
}

/// The script's thread, from the outside. The thread ends when this is dropped.
pub(super) struct ScriptThread {
    calls: Sender<Call>,
    answers: Sender<Answer>,
    under_way: Arc<Mutex<Option<(u64, CancelFlag)>>>,
}

impl ScriptThread {
    pub(super) fn start(machine: MachineId, script: ScriptSource, outbox: Outbox) -> io::Result<Self> {
        let (calls, next_call) = channel();
        let (answers, next_answer) = channel();
        let under_way = Arc::new(Mutex::new(None));
        let body = move || serve(machine, &script, &outbox, &next_call, next_answer);
        let _detached = thread::Builder::new().stack_size(STACK_BYTES).spawn(body)?;
        Ok(Self { calls, answers, under_way })
    }

    pub(super) fn call(&self, id: u64, point: Point, context: Context) {
        let cancel = CancelFlag::default();
        *self.under_way.lock() = Some((id, cancel.clone()));
        // A thread that is gone could not load its script, and has said so.
        let _ = self.calls.send(Call { id, point, context, cancel });
    }

    pub(super) fn answer(&self, answer: Answer) {
        let _ = self.answers.send(answer);
    }

    pub(super) fn cancel(&self, call: u64) {
        if let Some((id, flag)) = &*self.under_way.lock()
            && *id == call
        {
            flag.cancel();
        }
    }
}

fn serve(
    machine: MachineId,
    source: &ScriptSource,
    outbox: &Outbox,
    calls: &Receiver<Call>,
    answers: Receiver<Answer>,
) {
    let ScriptSource { name, source, limits, libraries } = source;
    outbox.tell(machine, WorkerMessage::Begun { call: None });
    let loaded = Script::load(name, source.as_bytes(), limits, libraries);
    let mut script = match loaded {
        Ok(script) => {
            let definition = Definition {
                points: script.points().to_vec(),
                schedule: script.schedule().cloned(),
                memory_bytes: script.used_memory(),
            };
            outbox.tell(machine, WorkerMessage::Loaded(Ok(definition)));
            Ok(script)
        }
        Err(error) => {
            let message = format!("the script could not be loaded again: {error}");
            outbox.tell(machine, WorkerMessage::Loaded(Err(error)));
            Err(CallError::new(FailureKind::Raised, message))
        }
    };
    let host = Rc::new(RemoteHost::new(machine, outbox.clone(), answers));
    while let Ok(Call { id, point, context, cancel }) = calls.recv() {
        outbox.tell(machine, WorkerMessage::Begun { call: Some(id) });
        let (outcome, memory_bytes) = match &mut script {
            Ok(script) => {
                let outcome = script.call_until(point, &context, host.clone(), &cancel);
                (outcome, script.used_memory())
            }
            Err(error) => (Err(error.clone()), 0),
        };
        outbox.tell(machine, WorkerMessage::Done { call: id, outcome, memory_bytes });
    }
}

/// Runs a script's tests in a thread of their own.
pub(super) fn test(
    machine: MachineId,
    script: ScriptSource,
    tests_name: String,
    tests: String,
    outbox: Outbox,
) -> io::Result<()> {
    let body = move || {
        let ScriptSource { name, source, limits, libraries } = &script;
        let (source, tests) = (source.as_bytes(), tests.as_bytes());
        outbox.tell(machine, WorkerMessage::Begun { call: None });
        let report = run_tests((name, source), (&tests_name, tests), limits, libraries);
        outbox.tell(machine, WorkerMessage::Tested(report));
    };
    let _detached = thread::Builder::new().stack_size(STACK_BYTES).spawn(body)?;
    Ok(())
}
