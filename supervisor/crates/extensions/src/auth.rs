//! The keys of one entry of `auth`.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talon_agent_settings::TimeSpan;

use crate::scope::AccessScope;

/// A provider of identities: it says whose a credential is. Several of one scheme are asked in the order of the list, until one
/// accepts; one that fails has rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthEntry {
    /// The action, as `plugin.action`. It sees the credentials of all requests with its scheme that no token of ours has.
    #[schemars(example = &"oidc.authenticate")]
    pub action: String,
    /// The entry's name, unique in its list: the issuer in `gw:<issuer>/<subject>`. By default the action's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The scheme of the header `Authorization`, in lower case.
    #[serde(default = "default_scheme")]
    pub scheme: String,
    /// What the provider's scopes grant: `{ "talon:chat": [chat] }`. A scope that is not listed grants nothing.
    pub scopes: BTreeMap<String, Vec<AccessScope>>,
    /// How long it may take; at most 5 minutes. Then the request is refused.
    #[serde(default = "default_deadline")]
    pub deadline: TimeSpan,
    /// The arguments, for an action that does not declare the role `auth_provider`. Texts may hold `{{ credential }}`,
    /// `{{ scheme }}` and `{{ peer.address }}`. Its structured answer has to be that of the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
}

fn default_scheme() -> String {
    "bearer".to_owned()
}

fn default_deadline() -> TimeSpan {
    TimeSpan::from_secs(5)
}

impl AuthEntry {
    /// The entry's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.action)
    }

    /// How long it may take.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline.get()
    }

    /// What the provider's scopes grant, sorted, each once.
    #[must_use]
    pub fn granted<'s>(&self, scopes: impl Iterator<Item = &'s str>) -> Vec<AccessScope> {
        let mut granted: Vec<AccessScope> =
            scopes.filter_map(|scope| self.scopes.get(scope)).flatten().copied().collect();
        granted.sort_unstable();
        granted.dedup();
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_scopes_grant_something() {
        let yaml = "{ action: oidc.authenticate, scopes: { 'talon:chat': [chat], staff: [operate, chat] } }";
        let entry: AuthEntry = serde_saphyr::from_str(yaml).expect("an entry");
        assert_eq!(entry.granted(["admin", "operate"].into_iter()), []);
        let granted = entry.granted(["staff", "talon:chat"].into_iter());
        assert_eq!(granted, [AccessScope::Chat, AccessScope::Operate]);
        assert_eq!((entry.name(), entry.scheme.as_str()), ("oidc.authenticate", "bearer"));
    }
}
