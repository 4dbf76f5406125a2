//! Names of people: events have their ids alone.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use talon_sdk::tracing;
use tokio::time::{Instant, timeout};

use crate::api::Api;
use crate::api_error::ApiError;
use crate::token_kind::TokenKind;

/// How long Slack may take to say a name. 1 s: an envelope is to be acknowledged within 3 s, and a message without a name is better than one
/// that comes twice.
const NAME_TIME: Duration = Duration::from_secs(1);
/// For how long a name is known. An hour: people rarely change theirs.
const KNOWN_TIME: Duration = Duration::from_secs(60 * 60);
/// The most names that are known. 1,024, of some hundred bytes each; for a further one the earliest is forgotten, and asked for again.
const MAX_NAMES: usize = 1024;

/// Names that were asked for.
#[derive(Default)]
pub(crate) struct UserNames(Mutex<HashMap<String, (Option<String>, Instant)>>);

/// What `users.info` says.
#[derive(Deserialize)]
struct UserInfo {
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    name: String,
    real_name: Option<String>,
    profile: Profile,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Profile {
    display_name: Option<String>,
    real_name: Option<String>,
}

impl User {
    /// What Slack shows: the name that they chose, else the one that they have.
    fn shown(self) -> Option<String> {
        [self.profile.display_name, self.profile.real_name, self.real_name, Some(self.name)]
            .into_iter()
            .flatten()
            .find(|name| !name.trim().is_empty())
    }
}

impl UserNames {
    /// The name of a user, if Slack says it.
    pub(crate) async fn name(&self, api: &Api, user: &str) -> Option<String> {
        if let Some((name, asked)) = self.0.lock().get(user)
            && asked.elapsed() < KNOWN_TIME
        {
            return name.clone();
        }
        let arguments = [("user", user)];
        let asked = api.call::<UserInfo>(TokenKind::Bot, "users.info", &arguments);
        let name = match timeout(NAME_TIME, asked).await {
            Ok(Ok(info)) => info.user.shown(),
            Err(_) | Ok(Err(ApiError::Later { .. })) => return None,
            // It is not asked again for each message.
            Ok(Err(error)) => {
                tracing::warn!("the name of {user} is not known: {error}");
                None
            }
        };
        self.keep(user, name.clone());
        name
    }

    fn keep(&self, user: &str, name: Option<String>) {
        let mut names = self.0.lock();
        if names.len() >= MAX_NAMES && !names.contains_key(user) {
            let earliest = names.iter().min_by_key(|(_, (_, asked))| *asked).map(|(user, _)| user.clone());
            if let Some(earliest) = earliest {
                names.remove(&earliest);
            }
        }
        names.insert(user.to_owned(), (name, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_name_is_the_one_that_slack_shows() {
        let shown = |user: Value| serde_json::from_value::<User>(user).expect("a user").shown();
        let profile = json!({"display_name": "ada", "real_name": "Ada Lovelace"});
        assert_eq!(shown(json!({"name": "alovelace", "profile": profile})).as_deref(), Some("ada"));
        let real = json!({"name": "alovelace", "real_name": "Ada Lovelace", "profile": {"display_name": ""}});
        assert_eq!(shown(real).as_deref(), Some("Ada Lovelace"));
        assert_eq!(shown(json!({"name": "alovelace"})).as_deref(), Some("alovelace"));
        assert_eq!(shown(json!({})), None);
    }

    #[test]
    fn of_too_many_names_one_is_forgotten() {
        let names = UserNames::default();
        for number in 0..=MAX_NAMES {
            names.keep(&number.to_string(), None);
        }
        let known = names.0.lock();
        assert!(known.len() == MAX_NAMES && known.contains_key(&MAX_NAMES.to_string()));
    }
}
