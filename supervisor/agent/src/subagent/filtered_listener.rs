//! The chunks of a sub-agent's turn that its session receives.

use std::sync::Arc;

use talon_proto::agent::chunk::Kind;

use crate::driver::Listener;

/// Forwards the chunks that require action or attention. The sub-agent's text, thoughts and calls are
/// dropped: mixed with the session's, they could not be distinguished.
pub(super) struct FilteredListener(pub(super) Arc<dyn Listener>);

impl Listener for FilteredListener {
    fn on_chunk(&self, chunk: Kind) {
        match chunk {
            Kind::Approval(_) => self.0.on_chunk(chunk),
            // A client must not discard the session's own text for it.
            Kind::Notice(mut notice) => {
                notice.discard_text = false;
                self.0.on_chunk(Kind::Notice(notice));
            }
            _ => {}
        }
    }
}
