//! What the plugin and a worker tell each other.

use serde::{Deserialize, Serialize};
use talon_lua_engine::{
    CallError, Context, KvValue, Library, Limits, LoadError, LogLevel, Outcome, Point, Schedule, TestReport,
};

/// Which machine of a worker: a number that no other machine of this plugin's process ever has.
pub(crate) type MachineId = u64;

/// To a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    /// Load a script. Answered by [`WorkerMessage::Loaded`].
    Load { machine: MachineId, script: ScriptSource },
    /// Run the tests of a script, and forget both. Answered by [`WorkerMessage::Tested`].
    Test { machine: MachineId, script: ScriptSource, tests_name: String, tests: String },
    /// Call a function. Answered by [`WorkerMessage::Done`], or [`WorkerMessage::Unknown`].
    Call { machine: MachineId, call: u64, point: Point, context: Context },
    /// The answer to [`WorkerMessage::Asked`].
    Answer { machine: MachineId, answer: Answer },
    /// End the call, if it is still under way.
    Cancel { machine: MachineId, call: u64 },
    /// Forget the script.
    Unload { machine: MachineId },
}

/// A script as it was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ScriptSource {
    /// The file's name, as errors show it.
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) limits: Limits,
    pub(crate) libraries: Vec<Library>,
}

/// From a worker, about one machine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FromWorker {
    pub(crate) machine: MachineId,
    pub(crate) message: WorkerMessage,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WorkerMessage {
    /// The thread begins now: this call, or with `None` to load or to test. From here on the script's own time counts.
    Begun {
        call: Option<u64>,
    },
    /// The machine of this call is not loaded here.
    Unknown {
        call: u64,
    },
    Loaded(Result<Definition, LoadError>),
    Tested(Result<TestReport, LoadError>),
    /// A line of the log.
    Logged {
        level: LogLevel,
        message: String,
    },
    /// A script waits for this.
    Asked(Question),
    Done {
        call: u64,
        outcome: Result<Outcome, CallError>,
        memory_bytes: usize,
    },
}

/// What a script defines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Definition {
    pub(crate) points: Vec<Point>,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) memory_bytes: usize,
}

/// What a script asks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Question {
    KvGet { key: String },
    KvSet { key: String, value: KvValue },
    KvDelete { key: String },
    Model { prompt: String, model: Option<String> },
}

/// What it gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    Value(Option<KvValue>),
    Stored,
    Existed(bool),
    Text(String),
    Failed(String),
}
