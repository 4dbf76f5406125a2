//! Puts the parts together: watchers, detectors, and where observations go.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use talon_proto::agent::Observation;
use tokio::signal::unix::{SignalKind, signal};

use crate::agent::{AgentSender, AgentSettings};
use crate::checker::Checkers;
use crate::config::{Config, FileKind, GitKind};
use crate::desktop::Desktop;
use crate::detection::Detection;
use crate::event::{Change, CommandEvent, Event};
use crate::files::{FileSettings, FileSinks, Rules};
use crate::ghost_stream::{GhostView, follow_ghosts};
use crate::git::{GitSettings, RepositoryFinder};
use crate::last_look::{FirstLook, LastLook};
use crate::limits::{COMMITS_TIME, EVENTS, TICK};
use crate::notice::{Notices, say};
use crate::observation::unix_ms;
use crate::prompt_file::PromptFile;
use crate::queue::Queue;
use crate::runtime_dir::WatcherLock;
use crate::seen_commits::SeenCommits;
use crate::shell::History;
use crate::spool::Spool;
use crate::{files, git, prompt_file, runtime_dir, shell};

/// How long what waits may take to be sent at the end.
const LAST_SEND: Duration = Duration::from_secs(2);

/// Where observations go.
pub(crate) enum Target {
    Agent(PathBuf),
    /// One JSON object a line on stdout.
    DryRun,
}

/// Watches until a signal ends it.
///
/// # Errors
/// When the kernel or the shells' socket refuses, with what to do.
pub(crate) async fn run(config: Config, roots: Vec<PathBuf>, target: Target) -> Result<(), String> {
    let ended = |error: io::Error| format!("cannot wait for signals: {error}");
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate()).map_err(ended)?, signal(SignalKind::interrupt()).map_err(ended)?);
    let notices = Notices::default();
    let (events, received) = mpsc::sync_channel(EVENTS);
    let shell_dropped = Arc::new(AtomicU64::new(0));

    let _lock = lock()?;
    let queue = Arc::new(match &target {
        Target::DryRun => Queue::default(),
        Target::Agent(_) => queue_of(&config, &notices),
    });
    let mut socket = None;
    if config.watchers.shell.enabled {
        let served = shell::start(roots.clone(), events.clone(), Arc::clone(&shell_dropped), notices.clone());
        match served {
            Ok(path) => socket = Some(path),
            Err(error @ shell::ListenError::InUse(_)) => return Err(error.to_string()),
            // Files and git are watched without it.
            Err(error) => say(error),
        }
    }
    // A dry run leaves nothing behind.
    let kept = matches!(target, Target::Agent(_)).then(|| state_directory(&config)).flatten();
    let (last_look, looked) = kept.as_deref().map(LastLook::open).unzip();
    let recent_since = looked.flatten();
    let seen_commits = kept.as_deref().map(SeenCommits::open);
    let finder = if config.watchers.git.enabled {
        let wants = |kind| config.watchers.git.events.contains(&kind);
        let settings = GitSettings {
            stage: wants(GitKind::Stage),
            commit: wants(GitKind::Commit),
            commits_time: COMMITS_TIME,
            recent_since,
            seen: seen_commits.as_ref().map(SeenCommits::all).unwrap_or_default(),
        };
        let started = git::start(settings, events.clone(), notices.clone());
        Some(Arc::new(started.map_err(|error| format!("cannot follow repositories: {error}"))?))
    } else {
        None
    };
    let checkers = Checkers::start(&config.checkers, &events, &notices);
    let sinks = FileSinks { events, repository: tell_of_repositories(finder.clone()) };
    let first_look = FirstLook::default();
    let look = first_look.clone();
    let ready = move |directories, files| {
        let say = move |repositories| {
            say(format!(
                "watches {files} files in {directories} directories, and {repositories} repositories"
            ));
        };
        match finder {
            Some(finder) => finder.all_found(say, move || look.end()),
            None => {
                say(0);
                look.end();
            }
        }
    };
    files::start(file_settings(&config, &roots, recent_since), sinks, notices.clone(), ready)
        .map_err(|error| format!("cannot watch files: {error}"))?;

    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let detection = Detection::new(config.clone(), roots, home, Instant::now());
    let history = config.watchers.shell.history_file.clone().map(History::new);
    let detector = Detector {
        detection,
        history,
        checkers,
        first_look,
        last_look,
        seen_commits,
        queue: Arc::clone(&queue),
        notices: notices.clone(),
    };
    std::thread::Builder::new()
        .name("detection".to_owned())
        .spawn(move || detector.run(&received))
        .map_err(|error| format!("cannot start a thread: {error}"))?;

    let mut ghosts = None;
    let mut sink = match target {
        Target::DryRun => Sink::Stdout(queue),
        Target::Agent(path) => {
            let prompt = runtime_dir::ghosts_file().filter(|_| config.watchers.shell.show_ghosts);
            let views = views(prompt.clone(), config.desktop_notifications, &notices);
            if !views.is_empty() {
                ghosts = Some((tokio::spawn(follow_ghosts(path.clone(), views)), prompt));
            }
            let settings = AgentSettings {
                socket: path,
                cooldown_ms: config
                    .cooldown
                    .map(|span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)),
                max_ghosts_per_hour: config.max_ghosts_per_hour,
            };
            Sink::Agent(Box::new(AgentSender::new(settings, queue, shell_dropped, notices)))
        }
    };
    let result = tokio::select! {
        result = sink.run() => result,
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
    };
    sink.finish().await;
    if let Some((keeper, file)) = ghosts {
        keeper.abort();
        // Cancelled, as it was asked to be.
        let _ = keeper.await;
        if let Some(file) = file {
            prompt_file::remove(&file);
        }
    }
    if let Some(path) = socket {
        // Gone already, else.
        let _ = std::fs::remove_file(&path);
    }
    result.map_err(|error| format!("cannot write the output: {error}"))
}

/// What shows ghosts, as the configuration asks.
fn views(prompt: Option<PathBuf>, on_desktop: bool, notices: &Notices) -> Vec<Box<dyn GhostView>> {
    let mut views: Vec<Box<dyn GhostView>> = Vec::new();
    if let Some(file) = prompt {
        views.push(Box::new(PromptFile::new(file)));
    }
    if on_desktop {
        let shown = runtime_dir::state_directory().map(|directory| directory.join("shown"));
        views.push(Box::new(Desktop::start(shown, notices.clone())));
    }
    views
}

/// Where what outlives this process is kept, if the configuration has it.
fn state_directory(config: &Config) -> Option<PathBuf> {
    runtime_dir::state_directory().filter(|_| config.spool)
}

/// The queue, which outlives this process unless the configuration or the file system is against it.
fn queue_of(config: &Config, notices: &Notices) -> Queue {
    let Some(directory) = state_directory(config) else { return Queue::default() };
    match Spool::open(&directory, unix_ms()) {
        Ok((spool, rest)) => Queue::spooled(spool, rest, notices.clone()),
        Err(error) => {
            let place = directory.display();
            say(format!(
                "cannot keep what waits for the agent in {place}: {error}; it is lost if this process is killed"
            ));
            Queue::default()
        }
    }
}

/// Refuses a second watcher, which would tell everything twice. Without a runtime directory there is no place to
/// see another one.
fn lock() -> Result<Option<WatcherLock>, String> {
    let Some(path) = runtime_dir::lock_file() else { return Ok(None) };
    match WatcherLock::acquire(&path) {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => Err(format!("another talon-watch serves {}; end it first", path.display())),
        // Files and git are watched without it.
        Err(error) => {
            say(format!("cannot lock {}: {error}; another talon-watch would not be seen", path.display()));
            Ok(None)
        }
    }
}

/// What is called with each repository that is found.
fn tell_of_repositories(finder: Option<Arc<RepositoryFinder>>) -> Box<dyn Fn(PathBuf) + Send> {
    Box::new(move |work_tree| {
        if let Some(finder) = &finder {
            finder.found(work_tree);
        }
    })
}

fn file_settings(config: &Config, roots: &[PathBuf], recent_since: Option<i64>) -> FileSettings {
    let filesystem = &config.watchers.filesystem;
    let change = |kind: &FileKind| match kind {
        FileKind::Add => Change::Added,
        FileKind::Change => Change::Changed,
        FileKind::Unlink => Change::Removed,
    };
    FileSettings {
        roots: roots.to_vec(),
        rules: Rules { ignore: filesystem.ignore.clone(), max_files: filesystem.max_files, recent_since },
        changes: filesystem.events.iter().map(change).collect(),
        max_files: filesystem.max_files,
        max_directories: filesystem.max_directories,
    }
}

enum Sink {
    Agent(Box<AgentSender>),
    Stdout(Arc<Queue>),
}

impl Sink {
    /// A pipe that was closed ends a dry run.
    async fn run(&mut self) -> io::Result<()> {
        match self {
            Self::Agent(sender) => {
                sender.run().await;
                Ok(())
            }
            Self::Stdout(queue) => loop {
                queue.filled().await;
                match print(queue) {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                    printed => printed?,
                }
            },
        }
    }

    async fn finish(&mut self) {
        match self {
            Self::Agent(sender) => {
                // What cannot be sent now is sent after the next start, if there is a file for it.
                let sent = tokio::time::timeout(LAST_SEND, sender.send_rest()).await;
                if !matches!(sent, Ok(Ok(()))) {
                    say("ends with observations that the agent did not take");
                }
            }
            Self::Stdout(queue) => {
                let _ = print(queue);
            }
        }
    }
}

/// Prints what waits.
fn print(queue: &Queue) -> io::Result<()> {
    let mut out = io::stdout().lock();
    while !queue.is_empty() {
        let (batch, dropped) = queue.batch(unix_ms());
        for observation in &batch {
            serde_json::to_writer(&mut out, observation)?;
            writeln!(out)?;
        }
        queue.sent(&batch, dropped);
    }
    out.flush()
}

/// The thread that has the detectors.
struct Detector {
    detection: Detection,
    history: Option<History>,
    checkers: Checkers,
    first_look: FirstLook,
    last_look: Option<LastLook>,
    seen_commits: Option<SeenCommits>,
    queue: Arc<Queue>,
    notices: Notices,
}

impl Detector {
    fn run(mut self, received: &Receiver<Event>) {
        let mut tick = Instant::now() + TICK;
        loop {
            // Before: what the first look told is then taken before it counts as over.
            let first_look_over = self.first_look.is_over();
            let event = received.recv_timeout(tick.saturating_duration_since(Instant::now()));
            let now = Instant::now();
            match event {
                // What it says was told is taken, and waits in a file for the agent.
                Ok(Event::CommitsSeen(work_tree, seen)) => {
                    if let Some(commits) = &mut self.seen_commits {
                        commits.saw(&work_tree, seen, &self.notices);
                    }
                }
                Ok(event) => {
                    self.take(event, now);
                    if let Some(look) = &mut self.last_look {
                        look.happened();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(look) = &mut self.last_look {
                        look.rests(first_look_over, now, i64::try_from(unix_ms() / 1000).unwrap_or(i64::MAX));
                    }
                }
                // All watchers ended; what they could not go on with was said.
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if now >= tick {
                tick = now + TICK;
                self.read_history(now);
                if let Some(commits) = &mut self.seen_commits {
                    commits.write_if_due(now);
                }
                if let Some(idle) = self.detection.tick(now) {
                    self.send(idle);
                }
            }
        }
    }

    fn take(&mut self, event: Event, now: Instant) {
        if let Event::File(file) = &event
            && file.change != Change::Removed
        {
            self.checkers.saved(&file.path, file.repository.as_deref());
        }
        for observation in self.detection.observe(event, now) {
            self.send(observation);
        }
    }

    fn read_history(&mut self, now: Instant) {
        let Some(history) = &mut self.history else { return };
        match history.appended() {
            Ok(commands) => {
                for command in commands {
                    // It does not say where; the home directory is what shells begin with.
                    let directory = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_else(|| "/".into());
                    let event = CommandEvent { command, exit_code: None, directory, duration_ms: None };
                    self.take(Event::Command(event), now);
                }
            }
            Err(error) => {
                self.notices
                    .once("history", format!("cannot read shadow.watchers.shell.history_file: {error}"));
            }
        }
    }

    fn send(&self, observation: Observation) {
        if self.queue.push(observation) {
            self.notices
                .once("dropped", "the agent takes nothing: the oldest observations are dropped, and counted");
        }
    }
}
