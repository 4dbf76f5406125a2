//! The keys of one entry of `routes`.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talon_agent_settings::TimeSpan;

use crate::scope::AccessScope;

/// A name, since `schemars` reads a list only where another crate switches on `full` of `syn`.
const EXAMPLE_HEADERS: [&str; 1] = ["content-type"];

/// A method of HTTP that a route may answer.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum RouteMethod {
    /// Reads.
    #[default]
    Get,
    /// Does something.
    Post,
    /// Puts something in its place.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

impl fmt::Display for RouteMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        })
    }
}

/// A route: requests to a path of the gateway that an action answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteEntry {
    /// The path, below `/x/`. With `/*` at its end, all paths below it.
    #[schemars(example = &"/x/tickets")]
    pub path: String,
    /// The method.
    #[serde(default)]
    pub method: RouteMethod,
    /// The action that answers, as `plugin.action`.
    #[schemars(example = &"jira.create")]
    pub action: String,
    /// The entry's name in logs and metrics, unique in its list. By default the action's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The scope that a request's token needs. There is no route without one.
    pub scope: AccessScope,
    /// Headers of the request that the action gets. `authorization`, `cookie` and the like are never passed on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = EXAMPLE_HEADERS)]
    pub headers: Vec<String>,
    /// The largest body of a request in bytes; a larger one is answered with 413.
    #[serde(default = "default_max_body_bytes")]
    #[schemars(range(max = 524_288))]
    pub max_body_bytes: u32,
    /// How long it may take; at most 5 minutes. Then the request is answered with 504.
    #[serde(default = "default_deadline")]
    pub deadline: TimeSpan,
    /// The arguments, for an action that does not declare the role `api_route`. Texts may hold `{{ body }}`, `{{ query.NAME }}`
    /// and the other values of the role. If its answer is none of the role, its structured content, or else its text, is the
    /// body with the status 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
}

fn default_max_body_bytes() -> u32 {
    64 << 10
}

fn default_deadline() -> TimeSpan {
    TimeSpan::from_secs(30)
}

impl RouteEntry {
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

    /// Whether it answers requests to a path, whatever their method.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        match self.base() {
            Some(base) => path.strip_prefix(base).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/')),
            None => path == self.path,
        }
    }

    /// Whether there is a request that both would answer.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.method != other.method {
            return false;
        }
        match (self.base(), other.base()) {
            (None, _) => other.covers(&self.path),
            (Some(_), None) => self.covers(&other.path),
            (Some(base), Some(others)) => {
                let below = |long: &str, short: &str| {
                    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                below(base, others) || below(others, base)
            }
        }
    }

    /// What stands before `/*`.
    fn base(&self) -> Option<&str> {
        self.path.strip_suffix("/*")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn route(path: &str) -> RouteEntry {
        serde_json::from_value(serde_json::json!({"path": path, "action": "a.b", "scope": "chat"}))
            .expect("a route")
    }

    #[test]
    fn a_route_covers_its_path_or_what_is_below() {
        for (pattern, path, covers) in [
            ("/x/a", "/x/a", true),
            ("/x/a", "/x/a/", false),
            ("/x/a/*", "/x/a/b", true),
            ("/x/a/*", "/x/a/b/c", true),
            ("/x/a/*", "/x/a", false),
            ("/x/a/*", "/x/a/", false),
            ("/x/a/*", "/x/ab", false),
        ] {
            assert_eq!(route(pattern).covers(path), covers, "{pattern} {path}");
        }
        let post = RouteEntry { method: RouteMethod::Post, ..route("/x/a") };
        assert!(!post.overlaps(&route("/x/a")) && post.overlaps(&post.clone()));
    }

    proptest! {
        // Promises: EXT-42
        #[test]
        fn two_routes_overlap_if_both_cover_a_path(
            a in "/x(/[ab]){1,3}(/\\*)?", b in "/x(/[ab]){1,3}(/\\*)?", paths in proptest::collection::vec("/x(/[ab]){1,5}", 20),
        ) {
            let (a, b) = (route(&a), route(&b));
            prop_assert_eq!(a.overlaps(&b), b.overlaps(&a));
            for path in &paths {
                if a.covers(path) && b.covers(path) {
                    prop_assert!(a.overlaps(&b), "{} {} {}", a.path, b.path, path);
                }
            }
            if a.overlaps(&b) {
                // One of the two paths, or something below it, is a path of both.
                let deepest = [&a, &b].map(|route| route.path.replace('*', "deepest"));
                let below = deepest.clone().map(|path| format!("{path}/deepest"));
                prop_assert!(deepest.iter().chain(&below).any(|path| a.covers(path) && b.covers(path)));
            }
        }
    }
}
