//! Which names of requests may stand in the audit log: those that the operator wrote, or that are somebody's.

use talon_extensions::Role;
use talon_schedule::JobId;
use talon_store::limits::MAX_NAME_BYTES;

use super::client::Client;
use crate::agent::Agent;
use crate::operations::NO_ID;

/// The names that a client may name.
pub(super) struct KnownNames<'n> {
    agent: &'n Agent,
    client: &'n Client,
}

impl<'n> KnownNames<'n> {
    /// The names that this client may name. A name that is none of them is [`NO_ID`].
    pub(super) fn new(agent: &'n Agent, client: &'n Client) -> Self {
        Self { agent, client }
    }

    /// A job of the configuration, or one that was accepted.
    pub(super) fn job<'t>(&self, job: &'t str) -> &'t str {
        let is_known = self.agent.jobs.get().contains_key(job);
        if is_known { job } else { NO_ID }
    }

    /// A job that a plugin proposed, as an operator names it.
    pub(super) fn proposed_job<'t>(&self, job: &'t str) -> &'t str {
        let is_id = self.client.is_operator() && job.parse::<JobId>().is_ok();
        if is_id { job } else { NO_ID }
    }

    /// An entry for notifications.
    pub(super) fn notification_entry<'t>(&self, entry: &'t str) -> &'t str {
        if self.agent.notifier.entry(entry).is_some() { entry } else { NO_ID }
    }

    /// An entry of a role, or its action; with the role.
    pub(super) fn extension(&self, role: &str, name: &str) -> String {
        let Ok(role) = role.parse::<Role>() else { return NO_ID.to_owned() };
        let setup = self.agent.setup();
        let mut entries = setup.environment.hooks.extensions().entries();
        let is_known =
            entries.any(|entry| entry.role == role && (entry.name == name || entry.action == name));
        format!("{role} {}", if is_known { name } else { NO_ID })
    }

    /// Somebody whose state is here: the client, or whom an operator names.
    pub(super) fn sender<'t>(&self, sender: &'t str) -> &'t str {
        let is_name = !sender.is_empty()
            && sender.len() <= MAX_NAME_BYTES
            && !sender.contains(|c: char| c.is_whitespace() || c.is_control());
        let is_known = *sender == *self.client.sender || (self.client.is_operator() && is_name);
        if is_known { sender } else { NO_ID }
    }
}
