//! Runs the checkers that the configuration opts in: after a saved file, one at a time each, bounded.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::config::{Checker, overrides};
use crate::event::{CheckEvent, Event};
use crate::limits::COMMAND_OUTPUT_BYTES;
use crate::notice::Notices;

/// The least time between the end of a run and the next one: a checker that writes into its own directory would
/// run all the time.
const APART: Duration = Duration::from_secs(2);

/// A saved file, and its work tree.
type Saved = (PathBuf, Option<PathBuf>);

/// Starts runs. A run that waits already covers what is saved meanwhile.
pub(crate) struct Checkers(Vec<(Checker, ignore::overrides::Override, mpsc::Sender<Saved>)>);

impl Checkers {
    /// Must be called within a tokio runtime. The checkers are known to be well-formed; one whose globs are not
    /// is left out.
    pub(crate) fn start(checkers: &[Checker], events: &SyncSender<Event>, notices: &Notices) -> Self {
        let start = |checker: &Checker| {
            let directory = checker.directory.canonicalize().ok()?;
            let checker = Checker { directory, ..checker.clone() };
            let files = overrides(&checker.directory, &checker.files).ok()?;
            let (sender, saved) = mpsc::channel(1);
            tokio::spawn(run_all(checker.clone(), saved, events.clone(), notices.clone()));
            Some((checker, files, sender))
        };
        Self(checkers.iter().filter_map(start).collect())
    }

    /// A file was saved.
    pub(crate) fn saved(&self, path: &Path, repository: Option<&Path>) {
        for (checker, files, sender) in &self.0 {
            // The globs are kept as "ignore these", so that a match is one that is meant.
            let is_meant = checker.files.is_empty() || files.matched(path, false).is_ignore();
            if is_meant && path.starts_with(&checker.directory) {
                // Full: a run waits, and will see this file.
                let _ = sender.try_send((path.to_owned(), repository.map(Path::to_owned)));
            }
        }
    }
}

async fn run_all(
    checker: Checker,
    mut saved: mpsc::Receiver<Saved>,
    events: SyncSender<Event>,
    notices: Notices,
) {
    while let Some((path, repository)) = saved.recv().await {
        match run(&checker).await {
            Ok((exit_code, output)) => {
                let event = CheckEvent {
                    path,
                    repository,
                    directory: checker.directory.clone(),
                    command: checker.command.clone(),
                    exit_code,
                    output,
                };
                if events.try_send(Event::Check(event)).is_err() {
                    notices.once("checker", "a checker's result was dropped, since too much happens at once");
                }
            }
            Err(error) => {
                let program = checker.command.first().map(String::as_str).unwrap_or_default();
                notices.once(
                    format!("checker {program}"),
                    format!("the checker {program} cannot be run: {error}"),
                );
            }
        }
        tokio::time::sleep(APART).await;
    }
}

/// The exit code (none at the timeout), and both outputs, errors first.
async fn run(checker: &Checker) -> std::io::Result<(Option<i32>, String)> {
    let [program, arguments @ ..] = checker.command.as_slice() else { return Ok((Some(0), String::new())) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&checker.directory).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let group = ProcessGroup::of(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let work = async {
        let (output, errors) = tokio::join!(read(stdout), read(stderr));
        let status = child.wait().await?;
        Ok::<_, std::io::Error>((status.code(), [errors, output].concat()))
    };
    match tokio::time::timeout(checker.timeout.0, work).await {
        Ok(done) => {
            let (code, output) = done?;
            group.ended();
            // Ended by a signal: as shells write it, it is no success.
            Ok((code.or(Some(128)), String::from_utf8_lossy(&output).into_owned()))
        }
        Err(_) => {
            drop(group);
            child.wait().await?;
            Ok((None, String::new()))
        }
    }
}

/// A checker starts programs of its own, which end with it: at its timeout, and when the watcher ends, which
/// drops the run.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// The group that a process leads which was not waited for yet.
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw))
    }

    /// Its leader was waited for, so that the number may be another one's by now.
    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Gone already, else.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The beginning of an output; the rest is read and forgotten, so that the program does not wait.
async fn read(pipe: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut pipe) = pipe else { return kept };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        let room = COMMAND_OUTPUT_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..length.min(room)]);
    }
    kept
}
