//! Ghosts, between two turns: each is shown once.

use std::collections::BTreeSet;

use talon_proto::agent::{Ghost, ListGhostsRequest};
use talon_sanitize::{Sanitized, sanitized};

use super::conversation::Conversation;
use crate::client::agent::formatting::single_line;

/// How many are shown at once; `talon shadow list` has all.
const MAX_SHOWN: u32 = 5;
/// How many are remembered as shown: more than a chat of a day sees. Beyond that all are forgotten, and may be shown again.
const MAX_KNOWN: usize = 1000;

impl Conversation<'_> {
    /// Shows ghosts that wait and were not shown in this chat. An agent that does not answer is told of by the next message.
    pub(super) async fn show_ghosts(&mut self) {
        if !self.messages.is_interactive {
            return;
        }
        let request = ListGhostsRequest {
            state: "waiting".to_owned(),
            page_size: MAX_SHOWN,
            ..ListGhostsRequest::default()
        };
        let found = self.connection.query(|mut agent| {
            let request = request.clone();
            async move { agent.list_ghosts(request).await }
        });
        let Ok(found) = found.await else { return };
        for line in lines(&found.ghosts, &mut self.shown_ghosts) {
            self.out.err_line(line);
        }
    }
}

/// Lines about those that are new, the oldest first.
fn lines(ghosts: &[Ghost], shown: &mut BTreeSet<String>) -> Vec<Sanitized> {
    let mut lines = Vec::new();
    for ghost in ghosts.iter().rev() {
        if shown.len() >= MAX_KNOWN {
            shown.clear();
        }
        if !shown.insert(ghost.id.clone()) {
            continue;
        }
        let (id, proposal) = (single_line(&ghost.id), single_line(&ghost.proposal));
        lines.push(sanitized!("ghost: {} {}", single_line(&ghost.observation), proposal));
        lines.push(match ghost.no_act.as_str() {
            "" => sanitized!(
                "  `talon shadow approve {}` has it done, `talon shadow dismiss {}` does not",
                id,
                id
            ),
            why => sanitized!("  it offers no act: {}; `talon shadow dismiss {}`", single_line(why), id),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-26
    #[test]
    fn each_is_shown_once_the_oldest_first_and_what_is_remembered_is_bounded() {
        let ghost = |id: &str, no_act: &str| Ghost {
            id: id.into(),
            proposal: format!("Mend {id}.\u{1b}[2J"),
            no_act: no_act.into(),
            ..Ghost::default()
        };
        let mut shown = BTreeSet::new();
        let told = lines(&[ghost("B", "no tool can see it"), ghost("A", "")], &mut shown);
        let told: Vec<&str> = told.iter().map(Sanitized::as_str).collect();
        assert!(told[0].contains("Mend A.") && told[1].contains("talon shadow approve A"), "{told:?}");
        assert!(told[3].contains("no tool can see it") && !told[3].contains("approve"), "{told:?}");
        assert!(told.iter().all(|line| !line.contains('\u{1b}')));
        assert_eq!(lines(&[ghost("C", ""), ghost("B", "")], &mut shown).len(), 2);
        for number in 0..=MAX_KNOWN {
            lines(&[ghost(&number.to_string(), "")], &mut shown);
        }
        assert!(shown.len() <= MAX_KNOWN);
    }
}
