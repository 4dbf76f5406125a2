//! Everything of one sender is forgotten.

use talon_proto::agent::{ForgetSenderRequest, ForgetSenderResponse};
use talon_store::{ForgetSelector, MemoryQuery, OWNER_TAG, PageRequest, SessionFilter};
use tonic::Status;

use super::client::{Client, Origin};
use super::service::Service;
use crate::channels;
use crate::error_status::store_error_status;

/// Records read at once.
const PAGE: u32 = 100;

impl Service {
    /// Deletes sessions first: a turn that still runs could remember something.
    pub(super) async fn forget_sender(
        &self,
        client: &Client,
        request: ForgetSenderRequest,
    ) -> Result<ForgetSenderResponse, Status> {
        let sender = request.sender;
        if sender.is_empty() {
            return Err(Status::invalid_argument(
                "say whose: a sender, as `talon session list --all` shows them",
            ));
        }
        if client.origin != Origin::Person {
            return Err(Status::permission_denied(
                "only a person has a sender forgotten: this connection is a model's or a program's; use `talon forget` by hand",
            ));
        }
        if *sender != *client.sender {
            client.require_operator("to forget somebody else's state")?;
        }
        let mut forgotten =
            ForgetSenderResponse { sessions: self.forget_sessions(&sender).await?, ..Default::default() };
        let main = self.agent.forget_main_session(&sender).await;
        main.map_err(|error| store_error_status(&error))?;
        self.agent.turn_cache.forget(&sender);
        let unanswered = channels::forget_sender(self.agent.store.key_values(), &sender).await;
        unanswered.map_err(|error| store_error_status(&error))?;
        (forgotten.memories, forgotten.shared_memories) = self.forget_owned_memories(&sender).await?;
        let approvals = self.agent.approvals.forget_sender(&sender).await;
        (forgotten.approvals, forgotten.rules) = approvals.map_err(|error| store_error_status(&error))?;
        if let Some(exports) = self.agent.retention.directory() {
            exports.forget(&sender).await.map_err(|error| {
                Status::unavailable(talon_child::truncate(talon_error_chain::error_chain(&error)))
            })?;
        }
        let vectors = self.agent.costs.forget_embeddings(&sender).await;
        vectors.map_err(|error| store_error_status(&error))?;
        let ghosts = self.agent.shadow.forget_sender(&sender).await;
        forgotten.ghosts = ghosts.map_err(|error| store_error_status(&error))?;
        // Last: what is forgotten reports nothing more.
        let notifications = self.agent.store.outbox().forget_sender(&sender).await;
        forgotten.notifications = notifications.map_err(|error| store_error_status(&error))?;
        tracing::info!(by = %client.sender, sessions = forgotten.sessions, memories = forgotten.memories, "a sender was forgotten");
        Ok(forgotten)
    }

    async fn forget_sessions(&self, sender: &str) -> Result<u64, Status> {
        let filter = SessionFilter { sender: Some(sender.to_owned()), ..SessionFilter::default() };
        let mut forgotten = 0;
        loop {
            // What was read is deleted, so the first page is always the next.
            let page = self.agent.sessions.list(&filter, &PageRequest::first(PAGE)).await;
            let sessions = page.map_err(|error| store_error_status(&error))?.items;
            if sessions.is_empty() {
                return Ok(forgotten);
            }
            for session in sessions {
                self.agent.delete_session(&session).await?;
                forgotten += 1;
            }
        }
    }

    /// Forgets what only this sender owns. Also returns how many memories others own, too.
    async fn forget_owned_memories(&self, sender: &str) -> Result<(u64, u64), Status> {
        let query = MemoryQuery { tags: vec![format!("{OWNER_TAG}{sender}")], ..MemoryQuery::default() };
        let (mut owned, mut shared) = (Vec::new(), 0);
        let mut page = PageRequest::first(PAGE);
        loop {
            let found = self.agent.memory.search(&query, &page).await;
            let found = found.map_err(|error| store_error_status(&error))?;
            for memory in found.items {
                match memory.owners().nth(1) {
                    None => owned.push(memory.id),
                    Some(_) => shared += 1,
                }
            }
            let Some(next) = found.next else { break };
            page = PageRequest::after(next, PAGE);
        }
        let mut forgotten = 0;
        for id in owned {
            let gone = self.agent.memory.forget(&ForgetSelector::Id(id)).await;
            forgotten += gone.map_err(|error| store_error_status(&error))?;
        }
        Ok((forgotten, shared))
    }
}
