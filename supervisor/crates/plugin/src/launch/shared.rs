//! What all starts of one supervisor share.

use std::path::PathBuf;
use std::sync::Arc;

use talon_jail::{Groups, Stage};
use tokio_util::task::TaskTracker;

use crate::identity::Identities;
use crate::rundir::RuntimeDir;
use crate::settings::Settings;
use crate::view::Views;

/// What all starts of one supervisor share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Arc<Settings>,
    pub(super) stage: Arc<Stage>,
    pub(super) runtime: Arc<RuntimeDir>,
    /// With symlinks resolved.
    pub(super) data_dir: PathBuf,
    pub(super) views: Views,
    pub(super) identities: Option<Identities>,
    /// Present where cgroups are available for plugins.
    pub(super) groups: Option<Groups>,
    /// Whether the supervisor can give plugins their own uids.
    pub(super) may_change_uid: bool,
    /// Tasks that read the output of processes. A supervisor that releases its processes waits for their last
    /// lines.
    pub(super) readers: TaskTracker,
}
