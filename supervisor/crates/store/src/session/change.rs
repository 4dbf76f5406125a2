//! Changes of a session's attributes.

use std::collections::BTreeMap;

use super::record::{Session, check_metadata};
use crate::error::Error;
use crate::limits::name;

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
