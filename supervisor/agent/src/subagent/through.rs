//! What of a sub-agent's turn its session hears.

use std::sync::Arc;

use talon_proto::agent::chunk::Kind;

use crate::driver::Listener;

/// Lets through what somebody has to act upon or should know. Its text, thoughts and calls are its own affair: among those of the
/// session nobody could tell whose they are.
pub(super) struct Through(pub(super) Arc<dyn Listener>);

impl Listener for Through {
    fn hear(&self, chunk: Kind) {
        match chunk {
            Kind::Approval(_) => self.0.hear(chunk),
            // Nothing of the session's own answer is to be discarded for it.
            Kind::Notice(mut notice) => {
                notice.discard_text = false;
                self.0.hear(Kind::Notice(notice));
            }
            _ => {}
        }
    }
}
