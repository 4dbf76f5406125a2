//! `shadow`.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use talon_shadow_policy::QuietHours;

use crate::TimeSpan;
use crate::money::Money;

/// The shadow loop: what watchers see of a person's work becomes a proposal now and then. Nothing acts before that person
/// approves it: [shadow.md](shadow.md).
///
/// What is watched is in each person's own `~/.config/talon/watch.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShadowKeys {
    /// Whether observations are taken.
    ///
    /// Off, and then watchers are told so: what people work on is nobody's business until they say so.
    pub enabled: bool,
    /// The model that is asked about observations, as `provider/name` or alias.
    ///
    /// By default the cheapest one that may be asked.
    #[schemars(example = &"local")]
    pub model: Option<String>,
    /// The least time between two ghosts of a person. A bare number is milliseconds.
    ///
    /// 30s: reading one takes as long.
    pub cooldown: Cooldown,
    /// The most ghosts of a person within an hour.
    ///
    /// 10. Beyond that candidates wait for the next boundary, and are dropped after 15 minutes.
    #[serde(alias = "maxGhostsPerHour")]
    #[schemars(range(max = 1000), extend("x-aliases" = ["maxGhostsPerHour"]))]
    pub max_ghosts_per_hour: u32,
    /// Whether a finding waits until a piece of work ends: a commit, a test run, a shell's prompt, some idle time.
    ///
    /// On: who is interrupted in the middle of something dismisses most of what is said.
    pub boundaries_only: bool,
    /// How long a ghost waits for an answer. Then it expires.
    ///
    /// 4h: half a working day.
    pub expires_after: TimeSpan,
    /// When no model is asked, by the local clock of the agent. Default: never.
    #[schemars(example = &"22:00-07:00")]
    pub quiet_hours: Option<String>,
    /// Work trees of which nothing is asked, by their absolute paths. `talon shadow pause --repository` adds a person's own.
    #[schemars(with = "Vec<FilePath>")]
    pub muted_repositories: Vec<PathBuf>,
    /// Whether only models on this machine may see observations, and the turns of approved ghosts.
    pub local_only: bool,
    /// What may be spent on a person's observations in one day, from midnight to midnight UTC. Turns of approved ghosts are
    /// not part of it.
    pub budget: ShadowBudget,
    /// How many days ghosts that are over, and the log of what was sent, are kept.
    ///
    /// 30.
    #[schemars(range(min = 1, max = 3650))]
    pub keep_days: u32,
    /// Directories that tools can see. A ghost about another one says so, and offers no act.
    ///
    /// By default what `files.read` and `files.write` of the plugins grant.
    #[schemars(with = "Option<Vec<FilePath>>")]
    pub visible: Option<Vec<PathBuf>>,
    /// Events of plugins that are observations as well: of a build server, a forge or a calendar. The plugin needs a grant for its events,
    /// as for notifications.
    pub sources: Vec<ShadowSource>,
}

/// Events of a plugin that are observations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShadowSource {
    /// The action that tells of them, as `plugin.action`. All events of its plugin count.
    #[schemars(example = &"build-server.watch")]
    pub action: String,
    /// Whose observations they are.
    #[serde(rename = "for")]
    #[schemars(example = &"ada")]
    pub sender: String,
    /// Which topics count. Empty: all.
    #[serde(default)]
    pub topics: Vec<String>,
}

/// What may be spent in one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShadowBudget {
    /// Tokens of questions and answers.
    ///
    /// 100000: some eighty questions.
    pub tokens_per_day: u32,
    /// US dollars. Default: no limit but those of `models.budget`.
    pub per_day: Option<Money>,
}

impl Default for ShadowBudget {
    fn default() -> Self {
        Self { tokens_per_day: 100_000, per_day: None }
    }
}

impl ShadowKeys {
    /// The quiet hours; none if the text is none, which the supervisor refuses.
    #[must_use]
    pub fn quiet(&self) -> Option<QuietHours> {
        self.quiet_hours.as_deref()?.parse().ok()
    }
}

impl Default for ShadowKeys {
    fn default() -> Self {
        Self {
            enabled: false,
            model: None,
            cooldown: Cooldown(TimeSpan::from_secs(30)),
            max_ghosts_per_hour: 10,
            boundaries_only: true,
            expires_after: TimeSpan::from_secs(4 * 60 * 60),
            quiet_hours: None,
            muted_repositories: Vec::new(),
            local_only: false,
            budget: ShadowBudget::default(),
            keep_days: 30,
            visible: None,
            sources: Vec::new(),
        }
    }
}

/// The schema of a path.
struct FilePath;

impl JsonSchema for FilePath {
    fn schema_name() -> Cow<'static, str> {
        "FilePath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "path" })
    }
}

/// A duration; a bare number is milliseconds, as in the first description of this key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cooldown(pub TimeSpan);

impl Cooldown {
    /// The duration as the standard library's type.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0.get()
    }
}

impl fmt::Debug for Cooldown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for Cooldown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Cooldown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl de::Visitor<'_> for Reader {
            type Value = Cooldown;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration, or a number of milliseconds")
            }

            fn visit_u64<E: de::Error>(self, millis: u64) -> Result<Cooldown, E> {
                self.visit_str(&format!("{millis}ms"))
            }

            fn visit_i64<E: de::Error>(self, millis: i64) -> Result<Cooldown, E> {
                self.visit_str(&format!("{millis}ms"))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Cooldown, E> {
                let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let text = if is_bare { format!("{text}ms") } else { text.to_owned() };
                TimeSpan::deserialize(de::value::StringDeserializer::<E>::new(text)).map(Cooldown)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Cooldown {
    fn schema_name() -> Cow<'static, str> {
        "Cooldown".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = TimeSpan::json_schema(generator);
        schema.insert("x-bare-unit".to_owned(), "ms".into());
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-7
    #[test]
    fn the_founding_spelling_means_the_same() {
        let founding: ShadowKeys =
            serde_saphyr::from_str("{ enabled: true, cooldown: 45000, maxGhostsPerHour: 4 }").expect("keys");
        let ours: ShadowKeys =
            serde_saphyr::from_str("{ enabled: true, cooldown: 45s, max_ghosts_per_hour: 4 }").expect("keys");
        assert_eq!(founding, ours);
        assert_eq!(founding.cooldown.get(), Duration::from_secs(45));
        let again: ShadowKeys =
            serde_json::from_value(serde_json::to_value(&ours).expect("JSON")).expect("keys");
        assert_eq!(again, ours);
        for wrong in ["{ cooldown: soon }", "{ cooldown: 0 }", "{ cooldown: -5 }"] {
            assert!(serde_saphyr::from_str::<ShadowKeys>(wrong).is_err(), "{wrong}");
        }
    }

    // Promises: SHADOW-7
    #[test]
    fn it_is_off_with_the_founding_limits() {
        let keys = ShadowKeys::default();
        assert!(!keys.enabled);
        assert_eq!((keys.cooldown.get().as_millis(), keys.max_ghosts_per_hour), (30_000, 10));
    }
}
