//! The events of a streamed response.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::response::{OutputItem, OutputPart, ResponseObject};

// The name is a tt: a literal would come to the derives in a group, which the one for schemas does not look into.
macro_rules! events {
    ($($variant:ident { $($field:ident: $type:ty,)+ } = $name:tt, $when:literal;)+) => {
        /// An event, by its type. The list is closed.
        #[derive(Debug, Serialize, ToSchema)]
        #[serde(tag = "type")]
        pub(super) enum ResponseEvent {
            $(#[doc = $when] #[serde(rename = $name)] $variant { $($field: $type,)+ },)+
        }

        impl ResponseEvent {
            /// Its type.
            fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }
        }
    };
}

events! {
    Created { response: ResponseObject, } = "response.created", "The first event.";
    InProgress { response: ResponseObject, } = "response.in_progress", "The second event.";
    ItemAdded { output_index: usize, item: OutputItem, } = "response.output_item.added", "A message or a call begins.";
    PartAdded { item_id: String, output_index: usize, content_index: usize, part: OutputPart, } = "response.content_part.added", "The text of a message begins.";
    TextDelta { item_id: String, output_index: usize, content_index: usize, delta: String, logprobs: Vec<Value>, } = "response.output_text.delta", "A piece of the text.";
    TextDone { item_id: String, output_index: usize, content_index: usize, text: String, logprobs: Vec<Value>, } = "response.output_text.done", "The text, whole.";
    PartDone { item_id: String, output_index: usize, content_index: usize, part: OutputPart, } = "response.content_part.done", "The text of a message is complete.";
    ItemDone { output_index: usize, item: OutputItem, } = "response.output_item.done", "A message or a call is complete.";
    ArgumentsDelta { item_id: String, output_index: usize, delta: String, } = "response.function_call_arguments.delta", "A piece of a call's arguments.";
    ArgumentsDone { item_id: String, output_index: usize, name: String, arguments: String, } = "response.function_call_arguments.done", "A call's arguments, whole.";
    Completed { response: ResponseObject, } = "response.completed", "The last event of a complete answer.";
    Incomplete { response: ResponseObject, } = "response.incomplete", "The last event of an answer that a limit ended.";
    Failed { response: ResponseObject, } = "response.failed", "The last event where there is no answer.";
}

/// An event with its number.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ResponseStreamEvent {
    #[serde(flatten)]
    event: ResponseEvent,
    /// Counts up from 0 by one.
    sequence_number: u64,
}

impl ResponseStreamEvent {
    pub(super) fn new(event: ResponseEvent, sequence_number: u64) -> Self {
        Self { event, sequence_number }
    }

    /// Its type.
    pub(super) fn kind(&self) -> &'static str {
        self.event.kind()
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("keys are texts and numbers are finite")
    }
}
