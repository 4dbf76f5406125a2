//! Ghosts at the next prompt of a shell, if `watchers.shell.show_ghosts` asks for them: one line in
//! `$XDG_RUNTIME_DIR/talon/ghosts`, which the integration prints once when it differs from the last one. So a
//! prompt costs a shell the look at a file, and starts no program.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use talon_proto::agent::Ghost;

use crate::ghost_stream::GhostView;
use crate::runtime_dir;

/// How many ghosts that wait are remembered; the oldest are forgotten. An hour has ten by default.
const GHOSTS: usize = 100;

/// The longest line: what a terminal shows in two rows.
const LINE_BYTES: usize = 200;

/// The ghosts that wait, by the order in which they changed.
#[derive(Debug, Default)]
struct WaitingGhosts(BTreeMap<u64, Ghost>);

impl WaitingGhosts {
    fn take(&mut self, ghost: Ghost) {
        self.0.retain(|_, known| known.id != ghost.id);
        if ghost.state == "waiting" {
            self.0.insert(ghost.sequence, ghost);
        }
        while self.0.len() > GHOSTS {
            self.0.pop_first();
        }
    }

    /// The line for a prompt; none if nothing waits. Its text is a model's: nothing in it acts on a terminal.
    fn line(&self) -> Option<String> {
        let (_, last) = self.0.last_key_value()?;
        let more = match self.0.len() - 1 {
            0 => String::new(),
            more => format!(" ({more} more)"),
        };
        let text = format!("talon: {} {}", last.observation, last.proposal);
        let text = talon_sanitize::Raw::from(text).terminal_line().into_string();
        let text = talon_sanitize::truncate(&text, LINE_BYTES, "…").into_owned();
        let id: String = last.id.chars().filter(char::is_ascii_alphanumeric).take(26).collect();
        Some(format!("{text}{more}  [talon shadow show {id}]"))
    }
}

/// The file, as a view of ghosts.
pub(crate) struct PromptFile {
    file: PathBuf,
    waiting: WaitingGhosts,
    has_caught_up: bool,
}

impl PromptFile {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, waiting: WaitingGhosts::default(), has_caught_up: false }
    }

    /// What cannot be written is left out: a prompt is no place to say so.
    fn write(&self) {
        let _ = write(&self.file, self.waiting.line().as_deref());
    }
}

impl GhostView for PromptFile {
    fn take(&mut self, ghost: Ghost) {
        self.waiting.take(ghost);
        if self.has_caught_up {
            self.write();
        }
    }

    fn caught_up(&mut self) {
        self.has_caught_up = true;
        self.write();
    }

    /// Nobody would take a line away that is no longer true.
    fn lost(&mut self) {
        remove(&self.file);
        (self.waiting, self.has_caught_up) = (WaitingGhosts::default(), false);
    }
}

/// Removes the file; what cannot be removed is left as it is.
pub(crate) fn remove(file: &Path) {
    let _ = write(file, None);
}

/// Puts the line into the file in one step, for this user alone; without a line the file goes.
fn write(file: &Path, line: Option<&str>) -> std::io::Result<()> {
    let Some(line) = line else {
        return match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    runtime_dir::make_directory(file)?;
    let new = file.with_extension("new");
    let mut out = std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    writeln!(out, "{line}")?;
    std::fs::rename(new, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ghost(id: &str, sequence: u64, state: &str, proposal: &str) -> Ghost {
        Ghost {
            id: id.into(),
            sequence,
            state: state.into(),
            observation: "Tests fail.".into(),
            proposal: proposal.into(),
            ..Ghost::default()
        }
    }

    // Promises: SHADOW-83
    #[test]
    fn the_line_has_the_latest_ghost_and_goes_with_the_last_one() {
        let mut waiting = WaitingGhosts::default();
        assert_eq!(waiting.line(), None);
        waiting.take(ghost("A1", 1, "waiting", "Fix\u{1b}[2J\nit?"));
        waiting.take(ghost("B2", 2, "waiting", "Run it?"));
        assert_eq!(waiting.line().unwrap(), "talon: Tests fail. Run it? (1 more)  [talon shadow show B2]");
        waiting.take(ghost("B2", 3, "dismissed", "Run it?"));
        let line = waiting.line().unwrap();
        assert!(
            !line.contains('\u{1b}') && !line.contains('\n') && line.ends_with("[talon shadow show A1]"),
            "{line}"
        );
        waiting.take(ghost("A1", 4, "expired", ""));
        assert_eq!(waiting.line(), None);
        (0..300).for_each(|n| waiting.take(ghost(&n.to_string(), n, "waiting", &"x".repeat(9999))));
        assert!(waiting.0.len() <= GHOSTS && waiting.line().unwrap().len() < 2 * LINE_BYTES);
    }

    // Promises: SHADOW-83
    #[test]
    fn the_file_is_replaced_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("talon/ghosts");
        write(&file, None).unwrap();
        write(&file, Some("one")).unwrap();
        write(&file, Some("two")).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
        remove(&file);
        assert!(!file.exists());
        remove(&file);
    }
}
