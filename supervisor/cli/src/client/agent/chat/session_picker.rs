//! Which session a chat continues: the one that was used last, or one that a person picks.

use talon_proto::agent::Session;
use talon_sanitize::sanitized;
use tokio::signal::unix::{SignalKind, signal};

use super::conversation::Conversation;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{bounded_line, count};
use crate::client::agent::session::list;
use crate::client::agent::turn::{LineInput, discard_pending_input};
use crate::exit;
use crate::failure::Failure;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// Sessions to pick from: with the question they fit a screen of 24 lines. `talon session list` has all.
const LISTED: u32 = 20;
/// Bytes of a title.
const TITLE_BYTES: usize = 60;

/// The id of the caller's session that was used last.
pub(super) async fn latest(reach: &AgentConnection) -> Result<String, Failure> {
    let (mut sessions, _) = list::fetch(reach, false, None, 1).await?;
    sessions.pop().map(|session| session.id).ok_or_else(|| {
        Failure::new(exit::REFUSED, "there is no session to continue: `talon chat` begins the first")
    })
}

impl Conversation<'_> {
    /// Lists sessions and asks for one; `None`: the person picked none.
    pub(super) async fn pick_session(&mut self) -> Result<Option<String>, Failure> {
        if !self.messages.is_interactive {
            return Err(Failure::usage(
                "only a person at a terminal can pick a session: name it with --session ID; `talon session list` has the ids",
            ));
        }
        let (sessions, more) = list::fetch(self.connection, false, None, LISTED).await?;
        if sessions.is_empty() {
            self.out.err_line("no sessions yet: the first begins with your first message");
            return Ok(None);
        }
        let mut table = table(&sessions);
        table.fit(self.out.columns());
        self.out.err_table(&table);
        if more {
            self.out.err_line("older ones: `talon session list`, then /session ID");
        }
        loop {
            // What was typed before the question is not its answer; what is typed from here on is.
            discard_pending_input();
            self.out.err_line(sanitized!("Which one? [1-{}, nothing: none of them]", sessions.len()));
            let Some(line) = self.picked_line().await? else { return Ok(None) };
            match parse(&line, sessions.len()) {
                Ok(picked) => return Ok(picked.map(|at| sessions[at].id.clone())),
                Err(()) => self.out.err_line("write the number in front of a session"),
            }
        }
    }

    /// The reply; `None` at Ctrl-C or at the end of the input.
    async fn picked_line(&mut self) -> Result<Option<String>, Failure> {
        let failed = |error| Failure::failed(format!("cannot ask: {error}; name it with /session ID"));
        let mut interrupts = signal(SignalKind::interrupt()).map_err(failed)?;
        self.out.flush();
        let mut typed = LineInput::start().map_err(failed)?;
        tokio::select! {
            line = typed.line() => line.map_err(failed),
            _ = interrupts.recv() => Ok(None),
        }
    }
}

fn table(sessions: &[Session]) -> Table {
    let mut table = Table::of(&[
        Column::number("", 0),
        Column::prose("TITLE", 0),
        Column::text("UPDATED", 1),
        Column::text("TURN", 2),
        Column::number("MESSAGES", 3),
    ]);
    for (number, session) in (1..).zip(sessions) {
        let number: usize = number;
        let title = match session.title.as_str() {
            "" => "without a message".into(),
            title => bounded_line(title, TITLE_BYTES).into(),
        };
        table.row(vec![
            number.into(),
            title,
            timestamp(session.updated_unix_ms).into(),
            (&session.turn).into(),
            count(session.messages).into(),
        ]);
    }
    table
}

/// The index of the session with this number; `None`: none of them.
fn parse(line: &str, listed: usize) -> Result<Option<usize>, ()> {
    match line.trim() {
        "" => Ok(None),
        number => match number.parse::<usize>() {
            Ok(number) if (1..=listed).contains(&number) => Ok(Some(number - 1)),
            _ => Err(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_session_and_nothing_is_none() {
        assert_eq!(parse(" 2\n", 3), Ok(Some(1)));
        assert_eq!(parse("\n", 3), Ok(None));
        for wrong in ["0", "4", "-1", "x", "99999999999999999999"] {
            assert_eq!(parse(wrong, 3), Err(()), "{wrong}");
        }
    }
}
