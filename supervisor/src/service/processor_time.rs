//! How much processor time a process has used: a process that does not answer and uses some is busy, or hangs in a loop; one that uses none
//! was stopped, or waits for something.

use std::fs;
use std::time::Duration;

/// What the kernel counts in: `USER_HZ` is 100 wherever Linux runs today.
const TICK: Duration = Duration::from_millis(10);
/// Where they stand behind the name: the times in user mode and in the kernel.
const USER_FIELD: usize = 11;

/// Of all its threads, since it began. `None` if it is gone.
pub(super) fn processor_time(pid: u32) -> Option<Duration> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (name) state ppid …`, where the name may contain anything.
fn parse(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(USER_FIELD);
    let (user, kernel): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(TICK * user.saturating_add(kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_stand_behind_any_name() {
        let stat = "17 (a) b) R 1 17 17 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 100 0 0";
        assert_eq!(parse(stat), Some(Duration::from_secs(3)));
        assert_eq!(parse("17 (a) R 1"), None);
        assert!(processor_time(std::process::id()).is_some());
        assert_eq!(processor_time(u32::MAX), None);
    }
}
