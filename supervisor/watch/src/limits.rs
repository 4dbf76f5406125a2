//! The limits of everything the watcher keeps and reads. Those an operator may change are keys of the
//! configuration, and stand in `config`.

use std::time::Duration;

/// The longest excerpt that leaves the watcher: 2 KiB, which the agent's protocol states. The rest is
/// counted.
pub(crate) const EXCERPT_BYTES: usize = 2048;

/// The longest `subject` and `finding`, by the agent's protocol.
pub(crate) const LINE_BYTES: usize = 256;

/// The longest path in an observation, by the agent's protocol. What lies deeper is not observed.
pub(crate) const PATH_BYTES: usize = 4096;

/// How much of a file detectors read: source files are smaller. Nothing is looked for in the rest.
pub(crate) const READ_BYTES: usize = 1 << 20;

/// How much a command (git, a checker) may print before its output is cut: an excerpt needs 2 KiB, and a
/// commit's patch of a megabyte is no work of a person.
pub(crate) const COMMAND_OUTPUT_BYTES: usize = 1 << 20;

/// How long a git command may take. 20 s: a cold index of a large repository on a slow disk takes seconds.
pub(crate) const GIT_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a look at a repository tells of commits, one at least; the next look goes on, after those at other repositories. 20 s: 50
/// commits take a second, and where git hangs, one takes as long.
pub(crate) const COMMITS_TIME: Duration = Duration::from_secs(20);

/// How many events may wait for the detectors. Whoever has more waits, and the kernel's queue in front of
/// them overflows into a rescan; only shells do not wait, and their drops are counted.
pub(crate) const EVENTS: usize = 1024;

/// How many observations wait for the agent. 512 is an hour of busy work; the oldest are dropped beyond it,
/// which is counted and said.
pub(crate) const OBSERVATIONS: usize = 512;

/// How many observations go into one request, by the agent's protocol.
pub(crate) const BATCH: usize = 64;

/// How long a directory has to rest before a change in it is looked at. 300 ms: editors save within some
/// 10 ms, in up to five steps.
pub(crate) const SETTLE: Duration = Duration::from_millis(300);

/// The longest pause between two looks at a directory that never rests. 5 s: a log that grows is then looked
/// at 12 times a minute, which costs nothing, and is read once it rests.
pub(crate) const SETTLE_MAX: Duration = Duration::from_secs(5);

/// A look at a directory may cost this share of the time until the next one: 1/20.
pub(crate) const SCAN_SHARE: u32 = 20;

/// How many directories may wait for a look; beyond it all are looked at.
pub(crate) const DIRTY: usize = 4096;

/// How many repositories are followed; further ones are left out, which is said once.
pub(crate) const REPOSITORIES: usize = 64;

/// How many refs of remotes are followed in a repository; a push to others is not seen.
pub(crate) const REMOTE_REFS: usize = 4096;

/// The longest message of a shell: a command of 8 KiB, escaped, and the fields around it.
pub(crate) const MESSAGE_BYTES: usize = 32 * 1024;

/// How much of a command line a shell reports. The rest is cut, which the message says.
pub(crate) const COMMAND_BYTES: usize = 8 * 1024;

/// How often the history file is looked at, and how soon an idle moment is noticed.
pub(crate) const TICK: Duration = Duration::from_secs(1);
