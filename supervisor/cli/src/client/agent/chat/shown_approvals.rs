//! Which calls this chat has shown, with their digests: only those can be approved without showing them
//! again.

use std::collections::BTreeMap;

use talon_proto::agent::Approval;

use crate::client::agent::turn::approval::is_pending;

/// Calls to remember, more than a chat shows in a day. Beyond that all are forgotten, and are shown again
/// before an approval.
const MAX_SHOWN: usize = 1000;

/// What was shown, by approval id.
#[derive(Debug, Default)]
pub(super) struct ShownApprovals {
    versions: BTreeMap<String, Version>,
}

/// The digest of a call, and the revision of a plan, which has the same digest after it was changed.
type Version = (String, Option<u64>);

fn version(approval: &Approval) -> Version {
    (approval.digest.clone(), approval.plan.as_ref().map(|plan| plan.revision))
}

impl ShownApprovals {
    /// Records pending calls with the digest that was shown. A decided call is shown by name only, so it is
    /// not recorded.
    pub(super) fn record<'a>(&mut self, approvals: impl IntoIterator<Item = &'a Approval>) {
        for approval in approvals.into_iter().filter(|approval| is_pending(approval)) {
            if self.versions.len() >= MAX_SHOWN {
                self.versions.clear();
            }
            self.versions.insert(approval.id.clone(), version(approval));
        }
    }

    /// Whether exactly this call was shown.
    pub(super) fn contains(&self, approval: &Approval) -> bool {
        !approval.digest.is_empty() && self.versions.get(&approval.id) == Some(&version(approval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(id: &str, digest: &str, state: &str) -> Approval {
        Approval { id: id.into(), digest: digest.into(), state: state.into(), ..Approval::default() }
    }

    // Promises: AGENT-60
    #[test]
    fn only_what_was_shown_is_known() {
        let mut seen = ShownApprovals::default();
        seen.record(&[approval("a", "1", "pending"), approval("b", "2", "approved"), approval("c", "", "")]);
        assert!(seen.contains(&approval("a", "1", "pending")));
        // A changed call under the same id, a different id with the same digest, a call shown by name only,
        // one without a digest.
        for (id, digest) in [("a", "2"), ("d", "1"), ("b", "2"), ("c", "")] {
            assert!(!seen.contains(&approval(id, digest, "pending")), "{id}");
        }
        seen.record(&[approval("a", "2", "pending")]);
        assert!(
            seen.contains(&approval("a", "2", "pending")) && !seen.contains(&approval("a", "1", "pending"))
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut seen = ShownApprovals::default();
        for id in 0..=MAX_SHOWN {
            seen.record(&[approval(&id.to_string(), "1", "")]);
        }
        assert_eq!(seen.versions.len(), 1);
    }
}
