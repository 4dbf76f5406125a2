//! How the current declaration compares with the approved one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use talon_plugin_client::Capability;
use talon_sanitize::Sanitized;

/// How the current declaration compares with the approved one. Replaced as a whole.
#[derive(Debug, Default)]
pub(crate) struct ApprovalStatus {
    /// Actions whose declaration differs from the approved one.
    pub(crate) changed: BTreeSet<String>,
    /// Actions that are refused because of that.
    pub(crate) withheld: Arc<BTreeSet<String>>,
    /// Whether the plugin's own texts differ from the approved ones.
    pub(crate) changed_texts: bool,
    /// Whether they are left out because of that.
    pub(crate) withheld_texts: bool,
    /// Why nothing counts as approved.
    pub(crate) problem: Option<Sanitized>,
    /// The declaration that these fields describe; `None` before the first one. It is stored here so that a
    /// reader never combines it with the status of another declaration.
    pub(crate) capability: Option<Arc<Capability>>,
    /// A digest of each changed action's declaration. A caller passes it back to approve exactly what was
    /// shown.
    pub(crate) digests: BTreeMap<String, String>,
}
