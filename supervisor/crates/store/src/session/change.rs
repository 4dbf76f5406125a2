//! Changes of a session's attributes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Session, check_metadata};
use crate::error::Error;
use crate::limits::name;

/// A session's overrides of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The thinking level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// The verbosity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
}

impl Overrides {
    /// Whether nothing is overridden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let all = [
            ("a model", &self.model),
            ("a thinking level", &self.thinking),
            ("a verbosity", &self.verbosity),
        ];
        all.into_iter().try_for_each(|(what, text)| text.as_deref().map_or(Ok(()), |text| name(what, text)))
    }
}

/// A change of a session's attributes. `None` keeps a value; `Some(None)` removes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionChange {
    /// The model that answers from now on.
    pub active_model: Option<Option<String>>,
    /// The override of the model.
    pub model: Option<Option<String>>,
    /// The override of the thinking level.
    pub thinking: Option<Option<String>>,
    /// The override of the verbosity.
    pub verbosity: Option<Option<String>>,
    /// Metadata entries to set or remove.
    pub metadata: BTreeMap<String, Option<String>>,
}

impl SessionChange {
    /// The changed session, if the change is valid.
    pub(crate) fn apply(&self, mut session: Session) -> Result<Session, Error> {
        let changes = [
            (&self.active_model, &mut session.active_model),
            (&self.model, &mut session.overrides.model),
            (&self.thinking, &mut session.overrides.thinking),
            (&self.verbosity, &mut session.overrides.verbosity),
        ];
        for (change, target) in changes {
            if let Some(value) = change {
                target.clone_from(value);
            }
        }
        for (key, value) in &self.metadata {
            match value {
                Some(value) => session.metadata.insert(key.clone(), value.clone()),
                None => session.metadata.remove(key),
            };
        }
        session.active_model.as_deref().map_or(Ok(()), |model| name("a session's model", model))?;
        session.overrides.check()?;
        check_metadata(&session.metadata)?;
        Ok(session)
    }
}
