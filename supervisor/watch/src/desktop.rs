//! Ghosts as notifications of the desktop, if `desktop_notifications` asks for them. `notify-send` shows them, which
//! desktops have; so no bus is linked into this program.
//!
//! Each ghost is shown once, also when watcher or agent is started again: the latest one that was shown is kept in a
//! file, and is written before it is shown.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use talon_proto::agent::Ghost;
use tokio::process::Command;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::ghost_stream::GhostView;
use crate::notice::Notices;

/// The program; its options are those of libnotify since 0.7.
const PROGRAM: &str = "notify-send";

/// How long it may take. 10 s: it says one thing to the session's bus; some desktops are slow at their start.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How many ghosts are shown one by one; more that came meanwhile are one notification.
const ONE_BY_ONE: usize = 3;

/// How many notifications wait for the program; further ones are left out, and said.
const QUEUE: usize = 16;

/// How many ghosts that were not shown are remembered, until all that are stored were taken.
const GHOSTS: usize = 100;

/// The longest text of a notification: some four lines.
const BODY_BYTES: usize = 300;

/// What one notification says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Notification {
    summary: String,
    body: String,
}

/// Shows ghosts on the desktop.
pub(crate) struct Desktop {
    notifications: Sender<Notification>,
    notices: Notices,
    /// Where the sequence of the latest one that was shown is kept.
    file: Option<PathBuf>,
    /// Absent before the first start: what waits already is not shown.
    shown: Option<u64>,
    new: Vec<Ghost>,
    has_caught_up: bool,
}

impl Desktop {
    /// Starts showing; within a runtime.
    pub(crate) fn start(file: Option<PathBuf>, notices: Notices) -> Self {
        let (notifications, received) = channel(QUEUE);
        tokio::spawn(show_all(received, notices.clone()));
        Self::new(notifications, file, notices)
    }

    fn new(notifications: Sender<Notification>, file: Option<PathBuf>, notices: Notices) -> Self {
        let text = file.as_deref().and_then(|file| std::fs::read_to_string(file).ok());
        let shown = text.and_then(|text| text.trim().parse().ok());
        Self { notifications, notices, file, shown, new: Vec::new(), has_caught_up: false }
    }

    fn remember(&mut self, sequence: u64) {
        self.shown = Some(sequence);
        if let Some(file) = &self.file
            && let Err(error) = keep(file, sequence)
        {
            let text = format!(
                "cannot write {}: {error}; the desktop may be told of a ghost once more after a restart",
                file.display()
            );
            self.notices.once("shown", text);
        }
    }

    /// Shows what is new.
    fn show_new(&mut self) {
        let new = std::mem::take(&mut self.new);
        let Some(latest) = new.iter().map(|ghost| ghost.sequence).max() else { return };
        self.remember(latest);
        for notification in notifications(&new) {
            if self.notifications.try_send(notification).is_err() {
                self.notices.once(
                    "desktop queue",
                    "more ghosts came than the desktop shows; `talon shadow list` has them",
                );
            }
        }
    }
}

impl GhostView for Desktop {
    fn take(&mut self, ghost: Ghost) {
        self.new.retain(|known| known.id != ghost.id);
        let is_new = ghost.state == "waiting" && self.shown.is_none_or(|shown| ghost.sequence > shown);
        if is_new && self.new.len() < GHOSTS {
            self.new.push(ghost);
        }
        if self.has_caught_up {
            self.show_new();
        }
    }

    fn caught_up(&mut self) {
        self.has_caught_up = true;
        if self.shown.is_some() {
            self.show_new();
            return;
        }
        let latest = self.new.iter().map(|ghost| ghost.sequence).max();
        self.remember(latest.unwrap_or_default());
        self.new.clear();
    }

    fn lost(&mut self) {
        self.new.clear();
        self.has_caught_up = false;
    }
}

fn notifications(ghosts: &[Ghost]) -> Vec<Notification> {
    if ghosts.len() > ONE_BY_ONE {
        let summary = format!("Talon: {} proposals wait", ghosts.len());
        return vec![Notification { summary, body: "talon shadow list".to_owned() }];
    }
    let notification = |ghost: &Ghost| {
        let id: String = ghost.id.chars().filter(char::is_ascii_alphanumeric).take(26).collect();
        let said = format!("{} {}", plain(&ghost.observation), plain(&ghost.proposal));
        let said = talon_sanitize::truncate(&said, BODY_BYTES, "…");
        Notification {
            summary: format!("Talon: {}", talon_sanitize::truncate(&plain(&ghost.trigger), BODY_BYTES, "…")),
            body: format!("{}\ntalon shadow show {id}", markup_free(&said)),
        }
    };
    ghosts.iter().map(notification).collect()
}

/// One line without what acts on a terminal: servers log what they show.
fn plain(text: &str) -> String {
    talon_sanitize::Raw::from(text).terminal_line().into_string()
}

/// A server may read the body as markup, with links and images: it gets none of a model's.
fn markup_free(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Writes a sequence in one step, for this user alone.
fn keep(file: &Path, sequence: u64) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let new = file.with_extension("new");
    let mut out = std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    writeln!(out, "{sequence}")?;
    std::fs::rename(new, file)
}

/// Shows one after the other.
async fn show_all(mut notifications: Receiver<Notification>, notices: Notices) {
    while let Some(notification) = notifications.recv().await {
        match tokio::time::timeout(TIMEOUT, show(&notification)).await {
            Ok(Ok(())) => {
                notices.over("desktop");
            }
            Ok(Err(why)) => {
                notices.once("desktop", why);
            }
            Err(_) => {
                notices.once(
                    "desktop",
                    format!("{PROGRAM} shows nothing within {TIMEOUT:?}; does a desktop run?"),
                );
            }
        }
    }
}

/// Runs the program, with the texts as arguments of their own.
///
/// # Errors
/// Why nothing is shown, with what to do.
async fn show(notification: &Notification) -> Result<(), String> {
    let mut command = Command::new(PROGRAM);
    command.args(["--app-name=Talon", "--urgency=normal", "--"]);
    command.args([&notification.summary, &notification.body]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match command.status().await {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!(
            "{PROGRAM} shows nothing ({status}); does a desktop run, and is DBUS_SESSION_BUS_ADDRESS set?"
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(format!(
            "shadow.desktop_notifications is true, and there is no program {PROGRAM}: install libnotify-bin (Debian) or libnotify (others)"
        )),
        Err(error) => Err(format!("{PROGRAM} cannot be run: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ghost(sequence: u64, state: &str) -> Ghost {
        Ghost {
            id: format!("G{sequence}"),
            sequence,
            state: state.to_owned(),
            trigger: "test_failed: parser.rs".to_owned(),
            observation: "A test fails.".to_owned(),
            proposal: "Mend it.".to_owned(),
            ..Ghost::default()
        }
    }

    fn shown(received: &mut Receiver<Notification>) -> Vec<String> {
        std::iter::from_fn(|| received.try_recv().ok()).map(|one| one.body).collect()
    }

    // Promises: SHADOW-40
    #[test]
    fn each_ghost_is_shown_once_whoever_is_started_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/shown");
        let (sender, mut received) = channel(QUEUE);
        let desktop = || Desktop::new(sender.clone(), Some(file.clone()), Notices::default());
        let mut first = desktop();
        first.take(ghost(1, "waiting"));
        first.caught_up();
        assert!(shown(&mut received).is_empty(), "what was there before the first start is no news");
        first.take(ghost(2, "waiting"));
        first.take(ghost(3, "dismissed"));
        assert_eq!(shown(&mut received), ["A test fails. Mend it.\ntalon shadow show G2"]);
        first.lost();
        [1, 2].into_iter().for_each(|sequence| first.take(ghost(sequence, "waiting")));
        first.caught_up();
        assert!(shown(&mut received).is_empty());
        // One came while no watcher ran.
        let mut second = desktop();
        [1, 2, 4].into_iter().for_each(|sequence| second.take(ghost(sequence, "waiting")));
        second.caught_up();
        assert_eq!(shown(&mut received).len(), 1);
        let mut third = desktop();
        (5..50).for_each(|sequence| third.take(ghost(sequence, "waiting")));
        third.caught_up();
        assert_eq!(shown(&mut received), ["talon shadow list"]);
    }

    // Promises: SHADOW-40
    #[test]
    fn a_models_text_is_data_and_bounded() {
        let hostile = Ghost {
            proposal: format!("<a href=\"http://x\">\u{1b}[2J & {}", "x".repeat(5000)),
            trigger: "--icon=x".to_owned(),
            ..ghost(1, "waiting")
        };
        let [one] = &notifications(&[hostile])[..] else { panic!("one") };
        assert!(!one.body.contains(['<', '>', '\u{1b}']) && one.body.len() < 2 * BODY_BYTES, "{one:?}");
        assert!(one.body.contains("&lt;a href") && one.summary == "Talon: --icon=x", "{one:?}");
    }
}
