//! `<log_dir>/<plugin>.log`: one file per plugin, rotated by size, written by its own task.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use talon_plugin_config::name::PluginName;
use tokio::sync::{mpsc, oneshot};

use super::line::LogLine;
use crate::settings::LogLimits;

/// The most lines that wait for the disk. Further lines are dropped from the file and counted.
const QUEUE_LINES: usize = 1024;

/// The most lines that one visit to the blocking pool writes.
const BATCH_LINES: usize = 256;

#[derive(Debug)]
enum Job {
    Line(LogLine),
    Flush(oneshot::Sender<()>),
}

/// The sending half of the file writer.
#[derive(Debug)]
pub(super) struct FileLog {
    jobs: mpsc::Sender<Job>,
    lost: Arc<AtomicU64>,
}

impl FileLog {
    /// `None` without a tokio runtime. If the directory cannot be written, lines are lost and one warning is
    /// logged; the plugin still starts.
    pub(super) fn start(dir: &Path, plugin: &PluginName, limits: LogLimits) -> Option<Self> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (jobs, queue) = mpsc::channel(QUEUE_LINES);
        let lost = Arc::new(AtomicU64::new(0));
        let rotating = RotatingFile {
            dir: dir.to_owned(),
            name: format!("{plugin}.log"),
            limit: limits.file_bytes.max(1),
            max_rotated: limits.rotated_files,
            open: None,
            failing: false,
        };
        runtime.spawn(run(queue, rotating, lost.clone()));
        Some(Self { jobs, lost })
    }

    pub(super) fn write(&self, line: &LogLine) {
        if self.jobs.try_send(Job::Line(line.clone())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(super) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.jobs.send(Job::Flush(done)).await.is_ok() {
            // Only the end of the runtime stops the writer before it answers.
            let _ = wait.await;
        }
    }
}

/// Writes queued lines in batches until all senders are dropped.
async fn run(mut queue: mpsc::Receiver<Job>, mut rotating: RotatingFile, lost: Arc<AtomicU64>) {
    let mut batch = Vec::with_capacity(BATCH_LINES);
    while queue.recv_many(&mut batch, BATCH_LINES).await > 0 {
        let jobs = std::mem::take(&mut batch);
        let counter = lost.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut waiting = Vec::new();
            for job in jobs {
                match job {
                    Job::Line(line) => rotating.line(&line, &counter),
                    Job::Flush(done) => waiting.push(done),
                }
            }
            (rotating, waiting)
        });
        let Ok((back, waiting)) = written.await else { return };
        rotating = back;
        for done in waiting {
            let _ = done.send(());
        }
    }
}

#[derive(Debug)]
struct RotatingFile {
    dir: PathBuf,
    name: String,
    limit: u64,
    max_rotated: u32,
    open: Option<(File, u64)>,
    /// Whether the last write failed, so that a full disk is logged only when it begins and when it ends.
    failing: bool,
}

impl RotatingFile {
    fn line(&mut self, line: &LogLine, lost: &AtomicU64) {
        let text = format!(
            "{} {:5} {} {:10} {}\n",
            humantime::format_rfc3339_millis(line.at),
            line.level,
            line.instance,
            line.stream,
            line.text
        );
        match self.append(text.as_bytes()) {
            Ok(()) if self.failing => {
                self.failing = false;
                tracing::info!(plugin = %line.plugin, "its log file can be written again");
            }
            Ok(()) => {}
            Err(error) => {
                lost.fetch_add(1, Ordering::Relaxed);
                self.open = None;
                if !self.failing {
                    self.failing = true;
                    let path = self.path(0);
                    tracing::warn!(
                        plugin = %line.plugin,
                        path = %path.display(),
                        %error,
                        "its log file cannot be written, lines are kept in memory only: make room, or check log.dir"
                    );
                }
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (mut file, size) = match self.open.take() {
            Some(open) => open,
            None => self.open_current()?,
        };
        if size > 0 && size + bytes.len() as u64 > self.limit {
            drop(file);
            self.rotate()?;
            let (mut file, size) = self.open_current()?;
            file.write_all(bytes)?;
            self.open = Some((file, size + bytes.len() as u64));
            return Ok(());
        }
        file.write_all(bytes)?;
        self.open = Some((file, size + bytes.len() as u64));
        Ok(())
    }

    fn open_current(&self) -> io::Result<(File, u64)> {
        std::fs::DirBuilder::new().recursive(true).mode(0o750).create(&self.dir)?;
        // NOFOLLOW and NONBLOCK: other users with write access to the directory must not make us write
        // elsewhere, or block.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(self.path(0))?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        Ok((file, metadata.len()))
    }

    /// `x.log` → `x.log.1` → `x.log.2` …; the oldest is overwritten.
    fn rotate(&self) -> io::Result<()> {
        if self.max_rotated == 0 {
            return std::fs::remove_file(self.path(0));
        }
        for age in (0..self.max_rotated).rev() {
            match std::fs::rename(self.path(age), self.path(age + 1)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    fn path(&self, age: u32) -> PathBuf {
        if age == 0 { self.dir.join(&self.name) } else { self.dir.join(format!("{}.{age}", self.name)) }
    }
}
