//! The agent's own small actions in the middle of a turn: to wait, to ask the person, and to write the plan.

use std::time::Duration;

use serde_json::{Value, json};
use talon_client::tool::tool_name;
use talon_llm::model::{Arguments, ToolCall};
use talon_proto::plugin::{Action, Parameter};

use crate::plan::{MAX_STEPS, PlanStep, StepError, StepState, checked_steps};

/// The agent's own plugin of these actions.
pub const TURN_PLUGIN: &str = "talon";
/// The action that waits before a model looks again.
pub const WAIT_ACTION: &str = "wait";
/// The action that asks the person.
pub const ASK_ACTION: &str = "ask_user";
/// The action that writes the session's plan.
pub const PLAN_ACTION: &str = "plan";

/// The longest wait: half of a turn's default time. A longer one is shortened by the model, who is informed.
pub const MAX_WAIT: Duration = Duration::from_secs(300);
/// The most answers that a question suggests.
const MAX_CHOICES: usize = 8;

/// The action that waits.
#[must_use]
pub fn wait_action() -> Action {
    Action {
        name: WAIT_ACTION.to_owned(),
        description: "Waits before you look again, for a job that is still running. Wait longer each time."
            .to_owned(),
        parameters: vec![parameter("seconds", "integer", true, "1 to 300")],
        read_only: true,
        destructive: Some(false),
        ..Action::default()
    }
}

/// The action that asks the person.
#[must_use]
pub fn ask_action() -> Action {
    Action {
        name: ASK_ACTION.to_owned(),
        description:
            "Asks the user something that you cannot find out and have to know. Call nothing else with it."
                .to_owned(),
        parameters: vec![
            parameter("question", "string", true, "In the user's language"),
            parameter("choices", "array", false, "Suggested answers"),
        ],
        read_only: true,
        destructive: Some(false),
        ..Action::default()
    }
}

/// The action that writes the session's plan.
#[must_use]
pub fn plan_action() -> Action {
    let step = json!({
        "type": "object",
        "properties": { "text": { "type": "string" }, "state": { "enum": StepState::WORDS } },
        "required": ["text"]
    });
    let schema = json!({ "type": "array", "items": step, "maxItems": MAX_STEPS });
    let steps = Parameter {
        schema: schema.to_string(),
        ..parameter("steps", "array", true, "All of them, in order, in the user's language")
    };
    Action {
        name: PLAN_ACTION.to_owned(),
        description:
            "Writes the plan that the user sees, whole. Write it again when a step is begun or done."
                .to_owned(),
        parameters: vec![steps],
        read_only: true,
        destructive: Some(false),
        ..Action::default()
    }
}

pub(super) fn parameter(name: &str, kind: &str, required: bool, description: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        description: description.to_owned(),
        r#type: kind.to_owned(),
        required,
        schema: String::new(),
    }
}

/// The question of a call that asks the person, with the suggested answers; `None` for any other call, and for
/// one without a question.
#[must_use]
pub fn question_of(call: &ToolCall) -> Option<(&str, Vec<&str>)> {
    let arguments = arguments_of(call, ASK_ACTION)?;
    let question = arguments.get("question")?.as_str().map(str::trim).filter(|text| !text.is_empty())?;
    let choices = arguments.get("choices").and_then(Value::as_array);
    let choices = choices.into_iter().flatten().filter_map(Value::as_str).take(MAX_CHOICES).collect();
    Some((question, choices))
}

/// The steps of a call that writes the plan; `None` for any other call.
///
/// # Errors
/// [`StepError`]
#[must_use]
pub fn plan_steps(call: &ToolCall) -> Option<Result<Vec<PlanStep>, StepError>> {
    let steps = arguments_of(call, PLAN_ACTION)?.get("steps")?.as_array()?;
    Some(checked_steps(steps.iter().map(|step| {
        (
            step.get("text").and_then(Value::as_str).unwrap_or_default(),
            step.get("state").and_then(Value::as_str).unwrap_or_default(),
        )
    })))
}

/// How long a call wants to wait, in seconds; `None` for any other call.
#[must_use]
pub fn wait_seconds(call: &ToolCall) -> Option<u64> {
    arguments_of(call, WAIT_ACTION)?.get("seconds").and_then(|seconds| match seconds {
        Value::String(text) => text.parse().ok(),
        seconds => seconds.as_u64(),
    })
}

fn arguments_of<'c>(call: &'c ToolCall, action: &str) -> Option<&'c serde_json::Map<String, Value>> {
    match &call.arguments {
        Arguments::Object(arguments) if call.name == tool_name(TURN_PLUGIN, action) => Some(arguments),
        Arguments::Object(_) | Arguments::Unreadable(_) => None,
    }
}
