//! The keys of `extensions`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talon_schedule::ScheduleEntry;

use crate::{AuthEntry, ChannelEntry, Entry, HookEntry, NotificationEntry, Role, RouteEntry};

/// The key `extensions`: which actions extend the system, and in which role.
///
/// A plugin can only propose a role; without an entry here it plays none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Extensions {
    /// Actions that see every message first, in this order. They let it pass, annotate or drop it.
    pub filters: Vec<HookEntry>,
    /// Actions that see every message after the filters, in this order, each with what the one before made of it.
    pub request_hooks: Vec<HookEntry>,
    /// Actions that see every answer before the person does, in this order.
    pub response_hooks: Vec<HookEntry>,
    /// Jobs that run at planned times: [schedules](schedule.md).
    pub schedule: Vec<ScheduleEntry>,
    /// Which events go to which actions, so that people learn of them: [notifications](extensions/notification-sink.md).
    pub notifications: Vec<NotificationEntry>,
    /// Actions that say whose credential a request to the gateway brings.
    pub auth: Vec<AuthEntry>,
    /// Paths of the gateway that actions answer.
    pub routes: Vec<RouteEntry>,
    /// Where people talk to the agent, through plugins: [channels](extensions/channel.md).
    pub channels: Vec<ChannelEntry>,
}

/// What the supervisor handed over is not understood.
#[derive(Debug, thiserror::Error)]
#[error(
    "the extensions that the supervisor hands over cannot be understood: both programs have to be of one release"
)]
pub struct ParseExtensionsError;

impl Extensions {
    /// Whether nothing is configured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The filters or hooks of a role; nothing for any other role.
    #[must_use]
    pub fn hooks(&self, role: Role) -> &[HookEntry] {
        match role {
            Role::Filter => &self.filters,
            Role::RequestHook => &self.request_hooks,
            Role::ResponseHook => &self.response_hooks,
            Role::NotificationSink
            | Role::ScheduledTask
            | Role::AuthProvider
            | Role::ApiRoute
            | Role::StorageBackend
            | Role::Channel => &[],
        }
    }

    /// The notification entry of this name.
    #[must_use]
    pub fn notification(&self, name: &str) -> Option<&NotificationEntry> {
        self.notifications.iter().find(|entry| entry.name() == name)
    }

    /// The channel of this name.
    #[must_use]
    pub fn channel(&self, name: &str) -> Option<&ChannelEntry> {
        self.channels.iter().find(|entry| entry.name == name)
    }

    /// All entries that have an action.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        Role::ALL.into_iter().flat_map(|role| self.of_role(role))
    }

    /// The entries of a role that have an action.
    fn of_role(&self, role: Role) -> Vec<Entry<'_>> {
        fn entry<'c>(
            role: Role,
            (index, name, action, args): (usize, &'c str, &'c str, &'c Option<Map<String, Value>>),
        ) -> Entry<'c> {
            Entry { role, index, name, action, args: args.as_ref() }
        }
        match role {
            Role::Filter | Role::RequestHook | Role::ResponseHook => {
                let hooks = self.hooks(role).iter().enumerate();
                hooks
                    .map(|(index, hook)| entry(role, (index, hook.name(), &hook.action, &hook.args)))
                    .collect()
            }
            Role::NotificationSink => {
                let sinks = self.notifications.iter().enumerate();
                sinks
                    .map(|(index, sink)| entry(role, (index, sink.name(), &sink.action, &sink.args)))
                    .collect()
            }
            // A job that asks the agent calls no action.
            Role::ScheduledTask => {
                let jobs = self.schedule.iter().enumerate();
                let called = jobs.filter_map(|(index, job)| {
                    Some((index, job.id.as_str(), job.action.as_deref()?, &job.args))
                });
                called.map(|of| entry(role, of)).collect()
            }
            Role::AuthProvider => {
                let providers = self.auth.iter().enumerate();
                providers
                    .map(|(index, auth)| entry(role, (index, auth.name(), &auth.action, &auth.args)))
                    .collect()
            }
            Role::ApiRoute => {
                let routes = self.routes.iter().enumerate();
                routes
                    .map(|(index, route)| entry(role, (index, route.name(), &route.action, &route.args)))
                    .collect()
            }
            // It is the key `state.plugins`.
            Role::StorageBackend => Vec::new(),
            Role::Channel => {
                let channels = self.channels.iter().enumerate();
                channels
                    .map(|(index, channel)| Entry {
                        role,
                        index,
                        name: &channel.name,
                        action: &channel.action,
                        args: None,
                    })
                    .collect()
            }
        }
    }

    /// The entry of a role with this name.
    #[must_use]
    pub fn entry(&self, role: Role, name: &str) -> Option<Entry<'_>> {
        self.entries().find(|entry| entry.role == role && entry.name == name)
    }

    /// Encodes them for the service that runs them: nothing at all if nothing is configured.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        // Maps have string keys and no type here refuses to be serialized.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes what [`Extensions::to_bytes`] wrote. Nothing at all is an empty configuration.
    ///
    /// # Errors
    /// [`ParseExtensionsError`]
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseExtensionsError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(bytes).map_err(|_| ParseExtensionsError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_and_survive_the_way_to_the_service() {
        let yaml = "
filters: [{ action: spam.check }]
request_hooks:
  - { action: pii.scan, args: { text: '{{ message }}' } }
  - { action: pii.scan, name: again, may: [replace] }
response_hooks: [{ action: words.polish }]
schedule: [{ id: nightly, every: 1d, action: files.tidy }, { id: ask, every: 1h, ask: 'What is new?' }]
notifications: [{ on: [plugin.*], action: mail.send, name: ops }]
auth: [{ action: oidc.authenticate, scopes: { chat: [chat] } }]
routes: [{ path: /x/tickets, method: POST, action: jira.create, scope: chat }]
channels: [{ action: telegram.channel, name: telegram }]";
        let extensions: Extensions = serde_saphyr::from_str(yaml).expect("extensions");
        let keys: Vec<String> = extensions.entries().map(|entry| entry.key().to_string()).collect();
        assert_eq!(
            keys,
            [
                "filter/spam.check",
                "request_hook/pii.scan",
                "request_hook/again",
                "response_hook/words.polish",
                "notification_sink/ops",
                "scheduled_task/nightly",
                "auth_provider/oidc.authenticate",
                "api_route/jira.create",
                "channel/telegram"
            ]
        );
        let again = extensions.entry(Role::RequestHook, "again").expect("it is there");
        assert_eq!(again.target(), ("pii", "scan"));
        assert_eq!(extensions.entry(Role::Filter, "again"), None);
        assert_eq!(Extensions::from_bytes(&extensions.to_bytes()).expect("read"), extensions);
        assert!(Extensions::from_bytes(b"").expect("nothing").is_empty() && !extensions.is_empty());
        assert!(Extensions::from_bytes(b"{\"x\":1}").is_err());
    }
}
