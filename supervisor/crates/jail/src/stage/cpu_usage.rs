//! How much CPU time a tree has used since its memory was counted.
//!
//! Reading every process's status takes 100 µs with cold caches, as for a sleeping process, and hundreds of
//! monitors do it several times a second: that took a fifth of a core of an idle machine. But memory does not
//! grow without CPU time. A process that used none has touched none, and otherwise there is a limit to what
//! it can touch in that time. Asking the kernel for a process's clock and for the last assigned pid takes a
//! few microseconds.

use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{pread, retry_on_intr};

/// How much memory a process is assumed to touch in a second of CPU time: 16 GiB, the rate of clearing huge
/// pages on fast machines. With small pages it is a tenth of that.
const BYTES_PER_SECOND: u64 = 16 << 30;

/// The clocks of a tree's processes, and their values when it was counted.
#[derive(Debug)]
pub(super) struct CpuUsage {
    clocks: Vec<(ClockId, Duration)>,
    /// The last assigned pid when the processes were listed.
    last_pid: u64,
}

/// Reads the last assigned pid of a pid namespace.
#[derive(Debug)]
pub(super) struct LastPid(OwnedFd);

impl LastPid {
    /// Uses the namespace's `/proc`. `None` if it does not say.
    pub(super) fn of(proc: &OwnedFd) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let numbers = Self(openat(proc, "loadavg", flags, Mode::empty()).ok()?);
        numbers.read().map(|_| numbers)
    }

    /// `0.01 0.05 0.00 2/531 4711`: the last of these.
    fn read(&self) -> Option<u64> {
        let mut line = [0; 128];
        let length = retry_on_intr(|| pread(&self.0, &mut line, 0)).ok()?;
        std::str::from_utf8(&line[..length]).ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
    }
}

impl CpuUsage {
    /// To be called before a tree's processes are listed: a later process is detected by its pid.
    pub(super) fn begin(numbers: &LastPid) -> Option<Self> {
        Some(Self { clocks: Vec::new(), last_pid: numbers.read()? })
    }

    /// Adds a process's clock, before its memory is counted. `None` if it has none; then nothing is known.
    pub(super) fn add_process(mut self, process: i32) -> Option<Self> {
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(process)).ok()?;
        self.clocks.push((clock, read_clock(clock)?));
        Some(self)
    }

    /// The most by which the tree's memory can have grown since. `None` if that is unknown, because there are
    /// new processes.
    pub(super) fn max_growth_bytes(&self, numbers: &LastPid) -> Option<u64> {
        if numbers.read() != Some(self.last_pid) {
            return None;
        }
        let spent = self.clocks.iter().try_fold(Duration::ZERO, |sum, (clock, before)| {
            Some(sum + read_clock(*clock)?.saturating_sub(*before))
        })?;
        Some((spent.as_secs_f64() * BYTES_PER_SECOND as f64) as u64)
    }
}

/// `None` once the process is gone.
fn read_clock(clock: ClockId) -> Option<Duration> {
    clock.now().ok().map(Duration::from)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that executes what it reads, and reports when it is done.
    fn shell() -> Child {
        Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    fn order(shell: &mut Child, order: &str) {
        use std::io::{Read as _, Write as _};
        let order = format!("{order}; echo\n");
        shell.stdin.as_mut().unwrap().write_all(order.as_bytes()).unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }

    /// This machine's last pid, frozen now, since other processes start while a test runs.
    fn standing() -> LastPid {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy("/proc/loadavg", file.path()).unwrap();
        LastPid(file.into_file().into())
    }

    // Promises: JAIL-37
    #[test]
    fn a_process_that_sleeps_touches_nothing_and_one_that_works_some() {
        let mut shell = shell();
        order(&mut shell, ":");
        let numbers = standing();
        let process = i32::try_from(shell.id()).unwrap();
        let spent = CpuUsage::begin(&numbers).unwrap().add_process(process).unwrap();
        // It may not have reached its next read yet.
        let first = spent.max_growth_bytes(&numbers).unwrap();
        assert!(first < 256 << 20, "{first}");
        order(&mut shell, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
        let then = spent.max_growth_bytes(&numbers).unwrap();
        assert!(then > first + (100 << 20), "{first}, {then}");
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(spent.max_growth_bytes(&numbers), None, "nothing is known of who is gone");
    }

    // Promises: JAIL-37
    #[test]
    fn a_new_process_is_seen_by_its_number() {
        let proc: OwnedFd = std::fs::File::open("/proc").unwrap().into();
        let numbers = LastPid::of(&proc).unwrap();
        let spent = CpuUsage::begin(&numbers).unwrap();
        let mut shell = shell();
        assert_eq!(spent.max_growth_bytes(&numbers), None);
        shell.kill().unwrap();
        shell.wait().unwrap();
        let nowhere = tempfile::tempdir().unwrap();
        assert!(LastPid::of(&std::fs::File::open(nowhere.path()).unwrap().into()).is_none());
    }
}
