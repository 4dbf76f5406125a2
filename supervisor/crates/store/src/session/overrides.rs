//! A session's overrides of the configuration.

use serde::{Deserialize, Serialize};

use crate::invalid::InvalidError;
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

    pub(crate) fn check(&self) -> Result<(), InvalidError> {
        let all = [
            ("a model", &self.model),
            ("a thinking level", &self.thinking),
            ("a verbosity", &self.verbosity),
        ];
        all.into_iter().try_for_each(|(what, text)| text.as_deref().map_or(Ok(()), |text| name(what, text)))
    }
}
