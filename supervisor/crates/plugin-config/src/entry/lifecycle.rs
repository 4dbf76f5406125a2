//! Lifecycle settings of one plugin, as written in the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Duration;

/// How one plugin lives and dies, where it differs from all others. A key that is left out keeps the wider
/// value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LifecycleKeys {
    /// As `plugins.tools.health_check_interval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check_interval: Option<Duration>,
    /// As `plugins.tools.health_check_timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check_timeout: Option<Duration>,
    /// As `plugins.tools.health_failure_threshold`.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_failure_threshold: Option<u32>,
    /// As `plugins.tools.restart_on_failure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_on_failure: Option<bool>,
    /// As `plugins.tools.max_restarts`.
    #[schemars(range(max = 4096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_restarts: Option<u32>,
    /// As `plugins.tools.restart_window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_window: Option<Duration>,
    /// As `plugins.tools.backoff_initial`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_initial: Option<Duration>,
    /// As `plugins.tools.backoff_max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_max: Option<Duration>,
    /// As `plugins.tools.start_timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<Duration>,
    /// As `plugins.tools.grace_period`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period: Option<Duration>,
    /// As `plugins.tools.ready_wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_wait: Option<Duration>,
    /// As `plugins.tools.kill_overdue_after`.
    ///
    /// A `plugin.yaml` may ask to be watched, or to be given less time, never for more time than
    /// `plugins.tools.kill_overdue_after` says, nor not to be watched: one that does is refused until the
    /// operator says here how it is to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_overdue_after: Option<Duration>,
}
