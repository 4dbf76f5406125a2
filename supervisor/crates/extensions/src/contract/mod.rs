//! What a role is asked, and what it answers.

mod hook;
mod verdict;

pub use hook::{HookRequest, HookSession};
pub(crate) use verdict::is_metadata_key;
pub use verdict::{HookVerdict, VerdictError, VerdictKind, VerdictOutcome};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use serde_json::Value;

use crate::Role;

/// The schemas of a role: of its arguments, and of its structured answer.
#[must_use]
pub fn schemas(role: Role) -> (Schema, Schema) {
    match role {
        Role::Filter | Role::RequestHook | Role::ResponseHook => {
            (schema::<HookRequest>(), schema::<HookVerdict>())
        }
    }
}

/// A sample of what a role is asked: for checks, and for `talon extension test`.
#[must_use]
pub fn sample(role: Role) -> Value {
    let request = match role {
        Role::Filter | Role::RequestHook | Role::ResponseHook => HookRequest {
            message: "Hello".to_owned(),
            session: HookSession {
                id: "01J00000000000000000000000".to_owned(),
                turn: 1,
                sender: "ada".to_owned(),
                channel: "cli".to_owned(),
                subagent: String::new(),
            },
            metadata: Default::default(),
        },
    };
    // The types have string keys only.
    serde_json::to_value(request).unwrap_or_default()
}

fn schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>()
}
