//! `TestExtension`: one entry of `extensions`, tried with a sample.
//!
//! | file | content |
//! |---|---|
//! | `sample` | the built-in sample, with what the client gives laid over it |
//! | `hook` | what would come of a verdict |
//! | `gateway_roles` | what would come of the answer of a sink, an auth provider or a route |

mod gateway_roles;
mod hook;
mod sample;

use talon_extensions::{Entry, Extensions, Role};
use talon_proto::agent::{TestExtensionRequest, TestExtensionResponse};
use talon_sanitize::nearest;
use tonic::Status;

use super::client::Client;
use super::service::Service;

impl Service {
    pub(super) async fn test_extension(
        &self,
        client: &Client,
        request: TestExtensionRequest,
    ) -> Result<TestExtensionResponse, Status> {
        client.require_operator("to try an extension")?;
        let refused = |why: String| Status::invalid_argument(talon_child::truncate(why));
        let role: Role = request.role.parse().map_err(|error| refused(format!("{error}")))?;
        let setup = self.agent.setup();
        let hooks = &setup.environment.hooks;
        let entry = entry(hooks.extensions(), role, &request.entry).map_err(refused)?;
        let asked = sample::with_sample(role, &request.sample_json).map_err(refused)?;
        if let Some(hook) = hooks.extensions().hooks(role).get(entry.index) {
            return hook::test(hooks.host(), role, hook, asked).await.map_err(refused);
        }
        gateway_roles::test(hooks.host(), hooks.extensions(), &entry, asked).await.map_err(refused)
    }
}

/// The entry of this name, or the first one with this action.
fn entry<'e>(extensions: &'e Extensions, role: Role, name: &str) -> Result<Entry<'e>, String> {
    let entries = || extensions.entries().filter(|entry| entry.role == role);
    let named = entries().find(|entry| entry.name == name);
    if let Some(entry) = named.or_else(|| entries().find(|entry| entry.action == name)) {
        return Ok(entry);
    }
    let names: Vec<&str> = entries().map(|entry| entry.name).collect();
    let help = match nearest(name, names.iter().copied()).first() {
        Some(near) => format!("did you mean {near}?"),
        None if names.is_empty() => format!("extensions.{} has none with an action", role.list()),
        None => format!("there are: {}", names.join(", ")),
    };
    Err(format!("extensions.{} has no entry {name:?}; {help}", role.list()))
}

#[cfg(test)]
mod tests {
    use talon_extensions::HookEntry;

    use super::*;

    #[test]
    fn an_entry_is_found_by_name_and_by_action() {
        let named = HookEntry { name: Some("again".to_owned()), ..HookEntry::new("pii.scan") };
        let extensions = Extensions { filters: vec![HookEntry::new("a.b"), named], ..Extensions::default() };
        assert_eq!(entry(&extensions, Role::Filter, "pii.scan").expect("found").name, "again");
        assert_eq!(entry(&extensions, Role::Filter, "again").expect("found").action, "pii.scan");
        assert!(entry(&extensions, Role::Filter, "agai").expect_err("none").contains("did you mean again?"));
        let none = entry(&extensions, Role::ApiRoute, "a.b").expect_err("none");
        assert!(none.contains("extensions.routes has none"), "{none}");
    }
}
