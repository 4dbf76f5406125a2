//! The format of a script.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::TimeSpan;
use crate::model::{ErrorClass, Finish, Usage};
use crate::remote::Failure;

/// A script: the first answer that fits is played.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What the model calls itself, after `scripted:`.
    #[serde(default)]
    pub model: Option<String>,
    /// The answers.
    pub answers: Vec<ScriptedAnswer>,
    /// How the first probes fail, one after the other; all later ones succeed.
    #[serde(default)]
    pub probes: Vec<Fault>,
}

/// One answer. In its texts `{{user}}` stands for the last question and `{{result}}` for the last result of a
/// tool.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedAnswer {
    /// Where it fits. Without anything, everywhere.
    #[serde(default)]
    pub when: MatchCondition,
    /// How often it is played before it fits no longer. Default: always.
    #[serde(default)]
    pub times: Option<u32>,
    /// It waits before its first word until the program says so (`Scripted::release`).
    #[serde(default)]
    pub wait_for: Option<String>,
    /// It waits before its first word until somebody writes into this named pipe.
    #[serde(default)]
    pub wait_for_pipe: Option<PathBuf>,
    /// What it thinks.
    #[serde(default)]
    pub think: String,
    /// What it says.
    #[serde(default)]
    pub say: String,
    /// What it calls.
    #[serde(default)]
    pub call: Vec<ScriptedCall>,
    /// The characters of each piece. Default: 12, about two words.
    #[serde(default)]
    pub piece_chars: Option<usize>,
    /// Never ends after that, so that a timeout does it.
    #[serde(default)]
    pub hang: bool,
    /// Fails after that.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// Why it stops. Default: because it is done. With `length` its last call is one that was cut off.
    #[serde(default)]
    pub finish: Option<Finish>,
    /// What it used. Default: a quarter of the characters, which is made up.
    #[serde(default)]
    pub usage: Option<Usage>,
}

/// Where an answer fits: all that is set has to hold.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchCondition {
    /// The question's number in the transcript, from 1.
    #[serde(default)]
    pub turn: Option<usize>,
    /// How often the model is asked in this turn, from 1.
    #[serde(default)]
    pub step: Option<usize>,
    /// A regular expression that the last question has a match for.
    #[serde(default)]
    pub user: Option<String>,
    /// Tools that have answered in this turn, each at least once.
    #[serde(default)]
    pub results: Vec<String>,
    /// A regular expression that the last result in this turn has a match for.
    #[serde(default)]
    pub result: Option<String>,
    /// A tool that has to be on offer.
    #[serde(default)]
    pub tool: Option<String>,
    /// The model that is asked for.
    #[serde(default)]
    pub model: Option<String>,
}

/// One call.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Its arguments as text that may be no JSON, instead of `arguments`.
    #[serde(default)]
    pub raw: Option<String>,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Of which kind.
    pub class: ErrorClass,
    /// The HTTP status that it is said to have.
    #[serde(default)]
    pub status: Option<u16>,
    /// What it says.
    #[serde(default)]
    pub message: Option<String>,
    /// When it is said to want to be asked again.
    #[serde(default)]
    pub retry_after: Option<TimeSpan>,
}

impl Fault {
    pub(super) fn failure(&self) -> Failure {
        let message = self.message.clone().unwrap_or_else(|| "a fault that stands in the script".to_owned());
        Failure {
            status: self.status,
            retry_after: self.retry_after.map(TimeSpan::get),
            ..Failure::new(self.class, message)
        }
    }
}
