//! Uids for the plugins of one supervisor, which no other test uses meanwhile.

use std::io::ErrorKind;
use std::ops::{Deref, RangeInclusive};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::processes::in_uid_range;

/// A pool of ranges.
struct UidRangePool {
    first: u32,
    /// Uids of a range.
    each: u32,
    ranges: u32,
}

/// For most tests: more plugins than any of them has. Below 70,000, where the uids of single crates' tests
/// and of commands like `talon exec` begin, and above the ids that 16 bits hold.
const SMALL_RANGES: UidRangePool = UidRangePool { first: 65_600, each: 20, ranges: 220 };

/// For tests of many plugins: above all of the others, and below those that container tools assign.
const LARGE_RANGES: UidRangePool = UidRangePool { first: 80_000, each: 1000, ranges: 10 };

/// A range of uids. Two supervisors with the same range would count, and stop, each other's plugins; so a
/// range is locked by an abstract socket name that only one process of the machine can hold, and that is
/// released with it.
#[derive(Debug, Clone)]
pub(crate) struct Uids {
    range: RangeInclusive<u32>,
    _name: Arc<UnixListener>,
}

impl Uids {
    /// For most tests.
    pub(crate) fn few() -> Self {
        SMALL_RANGES.take(SMALL_RANGES.each)
    }

    /// For this many plugins.
    pub(crate) fn many(plugins: usize) -> Self {
        let most = u32::try_from(plugins).ok().filter(|plugins| (1..=LARGE_RANGES.each).contains(plugins));
        LARGE_RANGES.take(most.expect("a range of uids is for at most a thousand plugins"))
    }
}

impl Deref for Uids {
    type Target = RangeInclusive<u32>;
    fn deref(&self) -> &RangeInclusive<u32> {
        &self.range
    }
}

impl UidRangePool {
    /// A free range of this many uids. Searches start at different places, and a range is not reused at once:
    /// a process that was started just before may still be switching to its uid.
    fn take(&self, uids: u32) -> Uids {
        static TAKEN: AtomicU32 = AtomicU32::new(0);
        let start = std::process::id().wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % self.ranges;
        let firsts = (0..self.ranges).map(|next| self.first + (start + next) % self.ranges * self.each);
        let mut free = firsts.filter_map(|first| {
            let name = UnixListener::bind_addr(&name(first));
            let name = match name {
                Ok(name) => name,
                Err(error) if error.kind() == ErrorKind::AddrInUse => return None,
                Err(error) => panic!("a name for a range of uids: {error}"),
            };
            let range = first..=first + uids - 1;
            // Leftovers of a test that was killed.
            in_uid_range(&(first..=first + self.each - 1))
                .is_empty()
                .then(|| Uids { range, _name: Arc::new(name) })
        });
        free.next().expect("not all ranges of uids are in use")
    }
}

fn name(first: u32) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("talon-tests-uids-{first}")).expect("it is a short name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_range_is_taken_twice() {
        // Unique to this process among concurrent tests on this machine.
        let first = 1_000_000 + 16 * std::process::id();
        let shelf = UidRangePool { first, each: 5, ranges: 3 };
        let taken = [shelf.take(5), shelf.take(5), shelf.take(5)];
        let mut firsts = taken.each_ref().map(|uids| *uids.start());
        firsts.sort_unstable();
        assert_eq!(firsts, [first, first + 5, first + 10]);
        drop(taken);
        assert!(firsts.contains(shelf.take(5).start()));
    }
}
