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
/// For how long a name is not asked for again that Slack did not say in time. 30 s: Slack has trouble, and each message would wait for it.
const UNKNOWN_TIME: Duration = Duration::from_secs(30);
/// The most names that are known. 1,024, of some hundred bytes each; for a further one the earliest is forgotten, and asked for again.
const MAX_NAMES: usize = 1024;

/// Names that were asked for, and until when they are not asked for again.
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
        if let Some((name, until)) = self.0.lock().get(user)
            && Instant::now() < *until
        {
            return name.clone();
        }
        let arguments = [("user", user)];
        let asked = api.call::<UserInfo>(TokenKind::Bot, "users.info", &arguments);
        let (name, time) = match timeout(NAME_TIME, asked).await {
            Ok(Ok(info)) => (info.user.shown(), KNOWN_TIME),
            Err(_) | Ok(Err(ApiError::Later { .. })) => (self.earlier(user), UNKNOWN_TIME),
            // It is not asked again for each message.
            Ok(Err(error)) => {
                tracing::warn!("the name of {user} is not known: {error}");
                (None, KNOWN_TIME)
            }
        };
        self.keep(user, name.clone(), time);
        name
    }

    /// The name that Slack said before, however long ago.
    fn earlier(&self, user: &str) -> Option<String> {
        self.0.lock().get(user).and_then(|(name, _)| name.clone())
    }

    fn keep(&self, user: &str, name: Option<String>, time: Duration) {
        let mut names = self.0.lock();
        if names.len() >= MAX_NAMES && !names.contains_key(user) {
            let earliest = names.iter().min_by_key(|(_, (_, until))| *until).map(|(user, _)| user.clone());
            if let Some(earliest) = earliest {
                names.remove(&earliest);
            }
        }
        names.insert(user.to_owned(), (name, Instant::now() + time));
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

    #[tokio::test]
    async fn a_name_that_slack_did_not_say_in_time_is_not_asked_for_with_each_message() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("bound").local_addr().expect("one");
        let api = |base: String| Api {
            base,
            allow_http: false,
            trust: None,
            bot_token: "xoxb-17653672481-secret".to_owned(),
            app_token: "xapp-1-A123ABC456-secret".to_owned(),
        };
        let names = UserNames::default();
        names.keep("U42", Some("Ada".to_owned()), Duration::ZERO);
        let down = api(format!("http://{free}/api"));
        assert_eq!(names.name(&down, "U42").await.as_deref(), Some("Ada"), "the one of before");
        assert_eq!(names.name(&down, "U43").await, None);
        let until = names.0.lock().get("U43").map(|(_, until)| *until).expect("kept");
        assert_eq!(names.name(&down, "U43").await, None);
        let again = names.0.lock().get("U43").map(|(_, until)| *until);
        assert_eq!(again, Some(until), "it was not asked for again");
    }

    #[test]
    fn of_too_many_names_one_is_forgotten() {
        let names = UserNames::default();
        for number in 0..=MAX_NAMES {
            names.keep(&number.to_string(), None, KNOWN_TIME);
        }
        let known = names.0.lock();
        assert!(known.len() == MAX_NAMES && known.contains_key(&MAX_NAMES.to_string()));
    }
}
