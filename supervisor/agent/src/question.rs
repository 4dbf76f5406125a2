//! Questions to the person in the middle of a turn: of the model, or of a plugin in a call.

use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// A question to the person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The question.
    pub text: String,
    /// Answers that the model suggests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Of a plugin's question: whose it is, and what has to be filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<PluginForm>,
    /// The session's plan, if the question is whether to carry it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
}

/// What a plugin asks for in the middle of a call
/// ([`InputRequest`](talon_proto::plugin::InputRequest)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginForm {
    /// The plugin's name in the configuration.
    pub plugin: String,
    /// The action that was called.
    pub action: String,
    /// The plugin's id of the question, with which the call continues.
    pub id: String,
    /// The JSON Schema of one flat object.
    pub schema: String,
}
