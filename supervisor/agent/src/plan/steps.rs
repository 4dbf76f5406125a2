//! The steps of a plan.

use serde::{Deserialize, Serialize};
use talon_guard::Raw;
use talon_proto::agent;

/// The most steps. 32: more are no plan that a person reads, and each costs tokens in every question. Not configurable.
pub const MAX_STEPS: usize = 32;
/// The longest step, in bytes: some rows of a terminal. Not configurable.
pub const MAX_STEP_BYTES: usize = 400;

/// How far a step is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not begun.
    #[default]
    Open,
    /// Begun.
    Active,
    /// Done.
    Done,
}

impl StepState {
    /// The words, for the schema of the model's call.
    pub const WORDS: [&'static str; 3] = ["open", "active", "done"];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Active => "active",
            Self::Done => "done",
        }
    }

    /// Parses its word; an empty one is open.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "" | "open" => Some(Self::Open),
            "active" => Some(Self::Active),
            "done" => Some(Self::Done),
            _ => None,
        }
    }
}

/// One step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// One line.
    pub text: String,
    /// How far it is.
    #[serde(default, skip_serializing_if = "is_open")]
    pub state: StepState,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_open(state: &StepState) -> bool {
    *state == StepState::Open
}

/// Why steps are no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// There are too many.
    #[error("{count} steps are too many: a plan has at most {MAX_STEPS}; put what belongs together into one")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// A step has no text.
    #[error("step {number} is empty: say what is to be done")]
    Empty {
        /// Which, from 1.
        number: usize,
    },
    /// A step is too long.
    #[error("step {number} has {bytes} bytes: a step is one line of at most {MAX_STEP_BYTES}; shorten it")]
    TooLong {
        /// Which, from 1.
        number: usize,
        /// How long it is.
        bytes: usize,
    },
    /// A state is none.
    #[error("the state of step {number} is none: it is open, active or done")]
    UnknownState {
        /// Which, from 1.
        number: usize,
    },
}

/// Checks steps, each a text and the word of its state; a text becomes one line without control syntax.
///
/// # Errors
/// [`StepError`]
pub fn checked_steps<'t>(
    steps: impl ExactSizeIterator<Item = (&'t str, &'t str)>,
) -> Result<Vec<PlanStep>, StepError> {
    if steps.len() > MAX_STEPS {
        return Err(StepError::TooMany { count: steps.len() });
    }
    let check = |(at, (text, state)): (usize, (&str, &str))| {
        let number = at + 1;
        // Neutralizing makes a text longer, so it is bounded before and after.
        let bytes = text.len();
        if bytes > MAX_STEP_BYTES {
            return Err(StepError::TooLong { number, bytes });
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = Raw::from(text).line().into_string();
        if text.is_empty() {
            return Err(StepError::Empty { number });
        }
        if text.len() > MAX_STEP_BYTES {
            return Err(StepError::TooLong { number, bytes: text.len() });
        }
        let state = StepState::parse(state).ok_or(StepError::UnknownState { number })?;
        Ok(PlanStep { text, state })
    };
    steps.enumerate().map(check).collect()
}

/// The steps as a model reads them: a number, the state unless it is open, the text.
pub(super) fn numbered(steps: &[PlanStep]) -> String {
    let line = |(at, PlanStep { text, state }): (usize, &PlanStep)| match state {
        StepState::Open => format!("{}. {text}", at + 1),
        state => format!("{}. [{}] {text}", at + 1, state.word()),
    };
    steps.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// The steps on the wire.
pub(super) fn to_wire(steps: &[PlanStep]) -> Vec<agent::PlanStep> {
    let step = |PlanStep { text, state }: &PlanStep| agent::PlanStep {
        text: text.clone(),
        state: state.word().to_owned(),
    };
    steps.iter().map(step).collect()
}
