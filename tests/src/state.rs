//! State from outside: values whose completeness can be checked, a process that writes such values as a
//! plugin would, and the paths of everything.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use talon_harness::{Leftovers, Scratch, Supervisor, is_root, program};

/// Only a limit for hangs, not an expectation of speed.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The smallest value: its number, and enough derived bytes to detect another key's value.
pub const SMALLEST_VALUE: usize = 10;
/// The largest value, which takes many pages of the database.
pub const LARGEST_VALUE: usize = 64 << 10;
/// One value in this many has any size up to the largest, the others fit in a page.
const LARGE_VALUE_RATIO: u64 = 8;
const SMALL_VALUE_MAX: usize = 2000;

/// The `number`-th value of a key: content and length are derived from the two.
#[must_use]
pub fn value(key: &str, number: u32) -> Vec<u8> {
    let block = |index: u32| Sha256::digest(format!("{key}\0{number}\0{index}"));
    let drawn = block(u32::MAX);
    let drawn = u64::from_le_bytes(drawn[..8].try_into().expect("a digest is longer"));
    let most = if drawn.is_multiple_of(LARGE_VALUE_RATIO) { LARGEST_VALUE } else { SMALL_VALUE_MAX };
    let span = u64::try_from(most - SMALLEST_VALUE + 1).expect("sizes here are small");
    let length =
        SMALLEST_VALUE + usize::try_from((drawn / LARGE_VALUE_RATIO) % span).expect("it is below the span");
    let mut value = Vec::with_capacity(length + 32);
    value.extend(number.to_be_bytes());
    for index in 0.. {
        if value.len() >= length {
            break;
        }
        value.extend(block(index));
    }
    value.truncate(length);
    value
}

/// The number of a value of this key.
///
/// # Errors
/// What is wrong with it, if it is not a complete value of that key and number.
pub fn number_of(key: &str, found: &[u8]) -> Result<u32, String> {
    let number = found.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let number = number.ok_or_else(|| format!("{key}: {} bytes", found.len()))?;
    let whole = value(key, number);
    if found == whole {
        return Ok(number);
    }
    let same = found.iter().zip(&whole).take_while(|(one, other)| one == other).count();
    Err(format!("{key}, number {number}: {same} of {} bytes are right, of {}", whole.len(), found.len()))
}

/// The number of each key.
pub type ValueNumbers = BTreeMap<String, u32>;

/// `talon-state-writer`: a process that has a plugin's uid and writes to its socket.
#[derive(Debug)]
pub struct Writer {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

/// What a writer does when its socket does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisconnect {
    /// Ends.
    End,
    /// Retries, until it is asked to stop.
    Retry,
}

impl Writer {
    /// Starts a writer for a plugin of this supervisor. Numbers begin at `first` and ascend.
    ///
    /// # Panics
    /// When it does not start, or the plugin has no socket.
    pub async fn start(supervisor: &Supervisor, plugin: &str, first: u32, broken: OnDisconnect) -> Self {
        let copy = supervisor.scratch.join("bin/talon-state-writer");
        if !copy.is_file() {
            // The plugin's uid may not read our build directory.
            supervisor.scratch.install(&program("talon-state-writer"), "bin/talon-state-writer");
        }
        let socket = socket_of(supervisor, plugin).await;
        let mut command = Command::new(copy);
        command.arg(&socket).arg(first.to_string());
        command.arg(if broken == OnDisconnect::End { "end" } else { "go-on" });
        as_plugin(&mut command, supervisor, plugin).await;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the writer starts");
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        Self { child, stdin, lines }
    }

    async fn line(&mut self) -> Option<String> {
        let line = tokio::time::timeout(WAIT_TIMEOUT, self.lines.next_line()).await;
        line.expect("the writer says something").expect("it says text")
    }

    /// The values it found before it began to write, all of them complete.
    ///
    /// # Panics
    /// When a value was incomplete.
    pub async fn found(&mut self) -> ValueNumbers {
        let mut found = ValueNumbers::new();
        loop {
            let line = self.line().await.unwrap_or_else(|| panic!("it ended after {} keys", found.len()));
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["have", key, number] => {
                    found.insert((*key).to_owned(), number.parse().expect("a number"));
                }
                ["checked"] => return found,
                // From before the stop.
                ["ack", ..] => {}
                _ => panic!("{line}"),
            }
        }
    }

    /// The next acknowledged write; `None` once it has ended.
    ///
    /// # Panics
    /// When a write was refused.
    pub async fn acknowledged(&mut self) -> Option<(String, u32)> {
        let line = self.line().await?;
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["ack", key, number] => Some(((*key).to_owned(), number.parse().expect("a number"))),
            _ => panic!("{line}"),
        }
    }

    /// Reads this many acknowledged writes, or all until it ends.
    pub async fn read_acknowledged(&mut self, most: usize, into: &mut ValueNumbers) -> usize {
        for taken in 0..most {
            match self.acknowledged().await {
                Some((key, number)) => into.insert(key, number),
                None => return taken,
            };
        }
        most
    }

    /// Asks it to stop, and reads the acknowledged writes until then and the values that it finds at the end.
    ///
    /// # Panics
    /// When a value was incomplete, or a write was refused.
    pub async fn stop(mut self, acknowledged: &mut ValueNumbers) -> ValueNumbers {
        drop(self.stdin.take());
        let mut found = ValueNumbers::new();
        while let Some(line) = self.line().await {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["ack", key, number] => {
                    acknowledged.insert((*key).to_owned(), number.parse().expect("a number"));
                }
                ["have", key, number] => {
                    found.insert((*key).to_owned(), number.parse().expect("a number"));
                }
                ["checked"] => {}
                _ => panic!("{line}"),
            }
        }
        self.ended().await;
        found
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it failed.
    pub async fn ended(mut self) {
        let status = tokio::time::timeout(WAIT_TIMEOUT, self.child.wait()).await.expect("it ends");
        let status = status.expect("it is ours");
        assert!(status.success(), "the writer: {status}");
    }
}

/// Checks that all acknowledged writes are there: that number or, for a write in flight, a later one.
///
/// # Panics
/// When not.
pub fn assert_kept(acknowledged: &ValueNumbers, found: &ValueNumbers, when: &str) {
    for (key, number) in acknowledged {
        let there = found.get(key);
        assert!(there.is_some_and(|there| there >= number), "{when}: {key} {number} is lost: {there:?}");
    }
}

/// Runs a command with the plugin's uid and gid, if it has its own.
///
/// # Panics
/// When the plugin does not run.
pub async fn as_plugin(command: &mut Command, supervisor: &Supervisor, plugin: &str) {
    if is_root() {
        let uid = supervisor.client.plugin(plugin).await.instances[0].uid;
        command.uid(uid).gid(uid);
    }
}

/// The path of a plugin's state socket on the host. With rights it is known by the plugin's uid, otherwise by what its process was told.
///
/// # Panics
/// When there is none.
pub async fn socket_of(supervisor: &Supervisor, plugin: &str) -> PathBuf {
    let instance = &supervisor.client.plugin(plugin).await.instances[0];
    let found = sockets(supervisor.runtime_dir());
    let told = match is_root() {
        true => None,
        false => Some(environment(instance.pid)),
    };
    let of_plugin = |path: &&PathBuf| match &told {
        // It sees a directory of its own at the same path.
        Some(told) => told.contains(&format!("TALON_STATE_SOCKET={}", path.display())),
        None => std::fs::metadata(path).is_ok_and(|found| found.gid() == instance.uid),
    };
    let Some(path) = found.iter().find(of_plugin) else {
        panic!("{plugin} has none of these sockets: {found:?}; {instance:?} was told {told:?}")
    };
    path.clone()
}

/// The environment that a process was started with.
fn environment(pid: u32) -> Vec<String> {
    let text = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_else(|error| panic!("{pid}: {error}"));
    text.split(|byte| *byte == 0).map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

/// All sockets of plugins' state.
#[must_use]
pub fn sockets(runtime_dir: &Path) -> Vec<PathBuf> {
    let plugins = std::fs::read_dir(runtime_dir.join("p")).into_iter().flatten().flatten();
    plugins.map(|entry| entry.path().join("k")).filter(|path| path.exists()).collect()
}

/// The database of plugins' key-values.
#[must_use]
pub fn database(scratch: &Scratch) -> PathBuf {
    scratch.join("data/state/state.db")
}

/// The same for a supervisor that has ended.
#[must_use]
pub fn left_database(left: &Leftovers) -> PathBuf {
    database(left.scratch())
}
