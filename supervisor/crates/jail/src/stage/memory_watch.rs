//! Watches the memory of the whole tree, where no cgroup limits it.
//!
//! As a stand-in it has weaknesses. Between two checks a tree can grow beyond its limit, by as much as
//! [`GROWTH_BYTES_PER_SECOND`] allows. Memory that processes share counts for each of them (pages after a
//! fork, shared mappings), and a mapped file of the private directory counts there too, so that the sum errs
//! on the high side. [Sockets](kernel_memory) count with what they can hold. It does not see what no process
//! has mapped, such as memory files that were only written, which are refused.
//!
//! It reads only files that are readable by every process, so that it needs no rights later on, and nothing
//! that a process could make it wait for: `status` takes no lock that is held while a page comes from a slow
//! disk. A tree that has not [used the CPU time](Spent) to grow beyond its limit is not counted again.

use std::ffi::CStr;
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::fs::{Dir, Mode, OFlags, fstatfs, openat};
use rustix::io::{Errno, retry_on_intr};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::cpu_usage::{CpuUsage, LastPid};
use super::kernel_memory::{LOCKS_MAX, SocketBuffers, byte_range_locks};
use crate::exit::{Bytes, ExitStatus};
use crate::spec::Limits;

/// The fastest assumed growth of a tree, which determines when to check again: 4 GiB a second. On the
/// measured machine, one core touches 0.7 to 1.7 GiB a second; the rest is a reserve for more and faster
/// cores. A tree that grows faster is found a moment later, and uses more by then.
const GROWTH_BYTES_PER_SECOND: u64 = 4 << 30;

/// The shortest interval between two checks, for a tree that is close to its limit. At 13 µs a process,
/// checking ten of them takes a third of a percent of one core then.
const INTERVAL_MIN: Duration = Duration::from_millis(50);

/// The longest interval, for a tree that is far from a large limit.
const INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The interval is at least this many times as long as a check: 5 % of one core. Matters for trees of many
/// processes.
const COST_DIVISOR: u32 = 20;

/// The most processes that one check counts. The process limit is far lower.
const PROCESSES_MAX: usize = 4096;

/// The shortest interval between two counts of locks. Reading them holds up every process of the machine that
/// locks a file, for some microseconds; a tree that only makes locks makes some million in this time, or 400
/// MiB.
const LOCKS_INTERVAL: Duration = Duration::from_secs(1);

/// How much is read of one process's status. It has 1.5 KiB, and more only with thousands of supplementary
/// groups, of which a program has none.
const STATUS_MAX_BYTES: usize = 16 << 10;

/// Our own pid in the namespace whose processes are counted.
const MONITOR_PID: &str = "1";

/// Counts the memory of every process in the monitor's pid namespace except the monitor.
pub(super) struct MemoryWatch {
    limit: u64,
    /// The `/proc` of that pid namespace.
    proc: OwnedFd,
    /// The file system of the private directory, whose files are in memory.
    private: Option<OwnedFd>,
    /// The buffers of the sockets in its own network namespace. `None` in the host's, where they cannot be
    /// told from those of others.
    sockets: Option<SocketBuffers>,
    /// When to count the locks again, and whether the tree has used CPU time since they were counted.
    next_locks: Instant,
    may_have_locked: bool,
    /// `None` if the last pid is unknown.
    last_pid: Option<LastPid>,
    /// The memory at the last count, and the CPU usage since then. `None` if that is unknown.
    counted: Option<(u64, CpuUsage)>,
    /// By how much it could have grown when sockets and the private directory were last read, and what they
    /// held.
    shared: Option<(u64, u64)>,
    used: u64,
    /// When to check again.
    next: Instant,
    text: Vec<u8>,
}

/// The text for the report; `uncounted` names buffers of sockets that are not counted.
pub(super) fn describe(limits: &Limits, uncounted: Option<&str>) -> String {
    let mut text = "no cgroup: ".to_owned();
    if let Some(data) = limits.data_bytes {
        let _ = write!(text, "each process is limited to {}, and ", Bytes(data));
    }
    let _ = write!(
        text,
        "the tree is watched and killed above {}; files in memory are refused",
        Bytes(limits.memory_bytes)
    );
    if let Some(sockets) = uncounted {
        let _ = write!(text, "; what waits in {sockets} is not counted");
    }
    text
}

/// A `/proc` of our own pid namespace that no other process sees, and that hides no process from us, whatever
/// the program's own one does.
pub(super) fn open_proc() -> Result<OwnedFd, Errno> {
    let proc = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&proc)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mounted = fsmount(&proc, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    // fsmount returns no open directory yet, only a descriptor to open one from.
    let proc = openat(mounted, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // If the watch saw no processes, it would report no memory.
    let sees_us =
        Dir::read_from(&proc)?.flatten().any(|entry| entry.file_name().to_bytes() == MONITOR_PID.as_bytes());
    if sees_us { Ok(proc) } else { Err(Errno::NOENT) }
}

impl MemoryWatch {
    /// `proc` comes from [`open_proc`], and `private` is in the program's private file system.
    pub(super) fn new(
        limit_bytes: u64,
        proc: OwnedFd,
        private: Option<OwnedFd>,
        sockets: Option<SocketBuffers>,
    ) -> Self {
        let (text, last_pid) = (vec![0; STATUS_MAX_BYTES], LastPid::of(&proc));
        let (limit, next) = (limit_bytes, Instant::now());
        Self {
            limit,
            proc,
            private,
            sockets,
            next_locks: next,
            may_have_locked: false,
            last_pid,
            counted: None,
            shared: None,
            used: 0,
            next,
            text,
        }
    }

    /// How long to wait for the next check.
    pub(super) fn until_next_check(&self) -> Timespec {
        let left = self.next.saturating_duration_since(Instant::now());
        Timespec::try_from(left).expect("a second fits any clock")
    }

    /// Counts the memory, when it is time to. Returns the exit status of a tree that exceeds its limit.
    pub(super) fn check(&mut self) -> Option<ExitStatus> {
        let began = Instant::now();
        if began < self.next {
            return None;
        }
        // Read first: what the tree does from here on is seen by the next check.
        let growth = self.max_growth();
        let shared = match self.shared_bytes(growth) {
            Ok(bytes) => bytes,
            Err(errno) => return Some(unwatched(errno)),
        };
        let upper_bound =
            self.counted.as_ref().zip(growth).map(|((sum, _), growth)| sum.saturating_add(growth));
        let processes = match upper_bound {
            // Within the limit even by the upper bound, so not counted. A report of an exceeded limit has the
            // counted size.
            Some(bytes) if shared.saturating_add(bytes) <= self.limit => bytes,
            _ => {
                self.shared = None;
                match self.process_bytes() {
                    Ok(bytes) => bytes,
                    Err(errno) => return Some(unwatched(errno)),
                }
            }
        };
        self.used = shared.saturating_add(processes);
        self.next = began + began.elapsed() + pause(self.used, self.limit, began.elapsed());
        if self.used > self.limit {
            return Some(ExitStatus::OutOfMemory { bytes: self.used, limit: self.limit });
        }
        self.check_locks(began)
    }

    /// Counts the locks, when it is time to.
    fn check_locks(&mut self, now: Instant) -> Option<ExitStatus> {
        // Making locks takes CPU time, as using memory does.
        if !self.may_have_locked || now < self.next_locks {
            return None;
        }
        self.may_have_locked = false;
        self.next_locks = now + LOCKS_INTERVAL;
        match byte_range_locks(&self.proc) {
            Ok(count) if count <= LOCKS_MAX => None,
            Ok(_) => Some(ExitStatus::TooManyLocks { limit: LOCKS_MAX }),
            Err(error) => Some(unwatched(Errno::from_io_error(&error).unwrap_or(Errno::IO))),
        }
    }

    fn private_bytes(&self) -> u64 {
        let Some(Ok(fs)) = self.private.as_ref().map(fstatfs) else { return 0 };
        fs.f_blocks.saturating_sub(fs.f_bfree).saturating_mul(fs.f_bsize.unsigned_abs())
    }

    /// What sockets and the private directory hold. They are not read again for a tree that used no CPU time
    /// since the last check, as a sleeping one: its memory cannot have grown by as much as a byte.
    fn shared_bytes(&mut self, growth: Option<u64>) -> Result<u64, Errno> {
        if let (Some((before, bytes)), Some(growth)) = (self.shared, growth)
            && before == growth
        {
            return Ok(bytes);
        }
        let sockets = self.sockets.as_ref().map_or(Ok(0), SocketBuffers::max_bytes)?;
        let bytes = self.private_bytes().saturating_add(sockets);
        self.shared = growth.map(|growth| (growth, bytes));
        Ok(bytes)
    }

    /// By how much the processes' memory can have grown since they were counted, without checking each. `None`
    /// if it is unknown.
    fn max_growth(&self) -> Option<u64> {
        let (_, spent) = self.counted.as_ref()?;
        spent.max_growth_bytes(self.last_pid.as_ref()?)
    }

    fn process_bytes(&mut self) -> Result<u64, Errno> {
        self.may_have_locked = true;
        let mut sum = 0_u64;
        let mut processes = 0;
        let mut spent = self.last_pid.as_ref().and_then(CpuUsage::begin);
        for entry in Dir::read_from(&self.proc)? {
            let entry = entry?;
            let Some(pid) = number(entry.file_name()) else { continue };
            if pid == MONITOR_PID {
                continue;
            }
            processes += 1;
            if processes > PROCESSES_MAX {
                spent = None;
                break;
            }
            spent = spent.and_then(|spent| spent.add_process(pid.parse().ok()?));
            let bytes = match self.status_bytes(&format!("{pid}/status"))? {
                Some(bytes) => bytes,
                None => self.bytes_by_thread(pid)?,
            };
            sum = sum.saturating_add(bytes);
        }
        self.counted = spent.map(|spent| (sum, spent));
        Ok(sum)
    }

    /// The memory of a process whose status has none, because its first thread has ended. Its other threads
    /// may still run, and each of their status files shows the whole process's memory.
    fn bytes_by_thread(&mut self, pid: &str) -> Result<u64, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Some(tasks) = ignore_ended(openat(&self.proc, format!("{pid}/task"), flags, Mode::empty()))?
        else {
            return Ok(0);
        };
        for entry in Dir::read_from(tasks)?.take(PROCESSES_MAX) {
            let Some(entry) = ignore_ended(entry)? else { break };
            let Some(thread) = number(entry.file_name()) else { continue };
            if let Some(bytes) = self.status_bytes(&format!("{pid}/task/{thread}/status"))? {
                return Ok(bytes);
            }
        }
        Ok(0)
    }

    /// The memory in one status file; `None` for a process that has none, or has ended.
    fn status_bytes(&mut self, path: &str) -> Result<Option<u64>, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Some(status) = ignore_ended(openat(&self.proc, path, flags, Mode::empty()))? else {
            return Ok(None);
        };
        let mut length = 0;
        while length < self.text.len() {
            match ignore_ended(retry_on_intr(|| rustix::io::read(&status, &mut self.text[length..])))? {
                None => return Ok(None),
                Some(0) => break,
                Some(read) => length += read,
            }
        }
        Ok(own_bytes(&self.text[..length]))
    }
}

/// If the watch saw nothing, it would report no memory.
fn unwatched(errno: Errno) -> ExitStatus {
    ExitStatus::Unwatched { errno: errno.raw_os_error() }
}

/// `None` for a process that has ended meanwhile. Any other failure means that the watch does not work.
fn ignore_ended<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A name that is a number.
fn number(name: &CStr) -> Option<&str> {
    name.to_str().ok().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The memory in one status file that is not a disk file's, including page tables. `None` if it has none of
/// these lines, as for a thread that has ended. A process name cannot forge a line: the kernel writes its
/// line breaks as `\n`.
fn own_bytes(status: &[u8]) -> Option<u64> {
    const COUNTED: [&[u8]; 4] = [b"RssAnon:", b"RssShmem:", b"VmSwap:", b"VmPTE:"];
    status
        .split(|byte| *byte == b'\n')
        .filter_map(|line| COUNTED.iter().find_map(|name| line.strip_prefix(*name)))
        .map(|value| kibibytes(value).unwrap_or(0))
        .reduce(u64::saturating_add)
}

/// `      1536 kB`
fn kibibytes(value: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(value).ok()?.trim_ascii().strip_suffix("kB")?.trim_ascii_end();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// The time that the tree needs to reach the limit if it grows as fast as assumed, within bounds, and limited
/// by the cost of checking.
fn pause(used: u64, limit: u64, took: Duration) -> Duration {
    let room = Duration::from_secs_f64(limit.saturating_sub(used) as f64 / GROWTH_BYTES_PER_SECOND as f64);
    room.max(took.saturating_mul(COST_DIVISOR)).clamp(INTERVAL_MIN, INTERVAL_MAX)
}

#[cfg(test)]
#[path = "memory_watch_tests.rs"]
mod tests;
