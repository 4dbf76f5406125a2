//! What this process may do with uids.

use rustix::thread::CapabilitySet;

/// The uid that the kernel shows for an owner without a mapping in this user namespace; `nobody` on most
/// systems.
pub const OVERFLOW_UID: u32 = 65_534;

/// Whether this process has the capabilities to give other processes their own uids.
#[must_use]
pub fn may_change_uid() -> bool {
    rustix::thread::capabilities(None).is_ok_and(|held| {
        let needed = CapabilitySet::CHOWN | CapabilitySet::SETUID | CapabilitySet::SETGID;
        held.effective.contains(needed)
    })
}
