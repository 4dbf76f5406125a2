//! Ghosts at the next prompt of a shell, if `watchers.shell.show_ghosts` asks for them: one line in
//! `$XDG_RUNTIME_DIR/talon/ghosts`, which the integration prints once when it differs from the last one. So a
//! prompt costs a shell the look at a file, and starts no program.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use talon_client::Agent;
use talon_proto::agent::ghost_event::Kind;
use talon_proto::agent::{FollowGhostsRequest, Ghost};
use tonic::Status;

use crate::runtime_dir;

/// The pause before an agent that does not answer is asked again. What it says is told by the sender.
const PAUSE: Duration = Duration::from_secs(10);

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

/// Keeps the file, for ever.
pub(crate) async fn keep(socket: PathBuf, file: PathBuf) {
    loop {
        // All ghosts that are stored come first, so that nothing is left over from before.
        let mut waiting = WaitingGhosts::default();
        // The end of a stream is an agent that is replaced; what is wrong with it is said by the sender.
        let _ = follow(&socket, &file, &mut waiting).await;
        // Nobody would take a line away that is no longer true.
        remove(&file);
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow(socket: &Path, file: &Path, waiting: &mut WaitingGhosts) -> Result<(), Status> {
    let unavailable = |error: std::io::Error| Status::unavailable(error.to_string());
    let agent = Agent::connect(socket.to_owned()).await.map_err(unavailable)?;
    let mut stream = agent.grpc().follow_ghosts(FollowGhostsRequest::default()).await?.into_inner();
    let mut has_caught_up = false;
    while let Some(event) = stream.message().await? {
        match event.kind {
            Some(Kind::Ghost(ghost)) => waiting.take(ghost),
            Some(Kind::CaughtUp(_)) => has_caught_up = true,
            Some(Kind::Event(_)) | None => continue,
        }
        if has_caught_up {
            write(file, waiting.line().as_deref()).map_err(unavailable)?;
        }
    }
    Ok(())
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
