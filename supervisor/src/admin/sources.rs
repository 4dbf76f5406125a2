//! The sources of health and metrics.

use std::sync::Arc;

use talon_plugin::Registry;

use super::metrics::Series;
use crate::dispatch::Dispatcher;
use crate::host::SupervisorInfo;

/// Where the values come from.
#[derive(Clone)]
pub struct Sources {
    /// The plugins.
    pub registry: Registry,
    /// The calls.
    pub dispatcher: Arc<Dispatcher>,
    /// The supervisor itself.
    pub info: Arc<SupervisorInfo>,
    /// The series that crates recorded.
    pub series: Arc<Series>,
}

impl Sources {
    /// The sources of a running supervisor.
    #[must_use]
    pub fn new(
        registry: &Registry,
        dispatcher: &Arc<Dispatcher>,
        info: Arc<SupervisorInfo>,
        series: Arc<Series>,
    ) -> Self {
        Self { registry: registry.clone(), dispatcher: Arc::clone(dispatcher), info, series }
    }
}
