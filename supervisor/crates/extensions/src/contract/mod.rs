//! What a role is asked, and what it answers.

mod api_route;
mod auth_provider;
mod channel;
mod hook;
mod notification;
mod scheduled_task;
mod storage_backend;
mod storage_bytes;
mod text;
mod verdict;

pub(crate) use api_route::is_header_name;
pub use api_route::{ApiReply, ApiReplyError, ApiRequest, BodyEncoding};
pub use auth_provider::{AuthError, AuthOutcome, AuthPeer, AuthReply, AuthRequest, AuthenticatedSubject};
pub use channel::{
    BUTTON_TOPIC, CLOSED_TOPIC, ChannelButton, ChannelFeature, ChannelFile, ChannelOp, ChannelOutcome,
    ChannelReply, ChannelRequest, FILE_FIELD, FilePiece, MAX_FILES, MAX_PIECE_BYTES, MESSAGE_TOPIC,
    UNSUPPORTED_TOPIC,
};
pub use hook::{HookRequest, HookSession};
pub(crate) use notification::add_named_fields;
pub use notification::{
    DeliveryStatus, Event, NotificationReply, NotificationReplyError, NotificationRequest,
};
pub use scheduled_task::{ScheduledRun, ScheduledTaskRequest};
pub use storage_backend::{
    StorageAnswer, StorageItem, StorageOp, StorageOutcome, StorageReply, StorageReplyError, StorageRequest,
};
pub use storage_bytes::{StorageBytes, StorageBytesError};
pub(crate) use verdict::is_metadata_key;
pub use verdict::{HookVerdict, VerdictError, VerdictKind, VerdictOutcome};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Role;

/// The schemas of a role: of its arguments, and of its structured answer.
#[must_use]
pub fn schemas(role: Role) -> (Schema, Schema) {
    match role {
        Role::Filter | Role::RequestHook | Role::ResponseHook => {
            (schema::<HookRequest>(), schema::<HookVerdict>())
        }
        Role::NotificationSink => (schema::<NotificationRequest>(), schema::<NotificationReply>()),
        Role::ScheduledTask => (schema::<ScheduledTaskRequest>(), schema::<Value>()),
        Role::AuthProvider => (schema::<AuthRequest>(), schema::<AuthReply>()),
        Role::ApiRoute => (schema::<ApiRequest>(), schema::<ApiReply>()),
        Role::StorageBackend => (schema::<StorageRequest>(), schema::<StorageReply>()),
        Role::Channel => (schema::<ChannelRequest>(), schema::<ChannelReply>()),
    }
}

/// A sample of what a role is asked: for `talon extension test`, and to try templates.
#[must_use]
pub fn sample(role: Role) -> Value {
    fn value(request: &impl Serialize) -> Value {
        // The types have string keys only.
        serde_json::to_value(request).unwrap_or_default()
    }
    match role {
        Role::Filter | Role::RequestHook | Role::ResponseHook => value(&hook::sample()),
        Role::NotificationSink => value(&notification::sample()),
        Role::ScheduledTask => value(&scheduled_task::sample()),
        Role::AuthProvider => value(&auth_provider::sample()),
        Role::ApiRoute => value(&api_route::sample()),
        Role::StorageBackend => value(&storage_backend::sample()),
        Role::Channel => value(&channel::sample()),
    }
}

/// What placeholders of a template find in the sample.
#[must_use]
pub fn sample_variables(role: Role) -> Value {
    match role {
        Role::NotificationSink => notification::sample().variables(),
        _ => sample(role),
    }
}

/// A sample with every argument that a role may ever be given, also those that are left out at times.
#[must_use]
pub fn full_sample(role: Role) -> Value {
    if role == Role::StorageBackend {
        // The type has string keys only.
        return serde_json::to_value(storage_backend::full_sample()).unwrap_or_default();
    }
    let mut full = sample(role);
    if role == Role::NotificationSink {
        full["events"] = json!([full["event"].clone()]);
    }
    full
}

/// Whether a structured answer is one of the role, whatever its entry allows.
///
/// # Errors
/// A sentence that says what is wrong, and repeats little of the answer.
pub fn check_answer(role: Role, structured: &Value) -> Result<(), String> {
    match role {
        Role::Filter | Role::RequestHook | Role::ResponseHook => {
            HookVerdict::parse(structured).map(drop).map_err(|error| error.to_string())
        }
        Role::NotificationSink => {
            NotificationReply::parse(structured).map(drop).map_err(|error| error.to_string())
        }
        Role::ScheduledTask => Ok(()),
        Role::AuthProvider => AuthReply::parse(structured).map(drop).map_err(|error| error.to_string()),
        Role::ApiRoute => ApiReply::parse(structured).map(drop).map_err(|error| error.to_string()),
        Role::StorageBackend => StorageReply::parse(structured).map(drop).map_err(|error| error.to_string()),
        Role::Channel => ChannelReply::read(structured, "text").map(drop),
    }
}

fn schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>()
}
