//! What an operator writes about providers.

mod build;
mod duration;
mod entry;
mod proxy;
mod timeouts;

#[cfg(test)]
mod docs_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use build::{Environment, Problem, Providers, process_environment, providers};
pub use duration::TimeSpan;
pub use entry::{Dialect, Entry, Kind};
pub(crate) use proxy::proxy;
pub use timeouts::Timeouts;

/// The providers, each under the name by which routes and messages call it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Config(pub BTreeMap<String, Entry>);
