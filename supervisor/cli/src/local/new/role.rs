//! The role that a new plugin plays: its program, a sample of what it is asked, and what it answers.

use clap::ValueEnum;
use serde_json::{Map, Value};

use super::language::Language;
use super::template::Template;

/// The program of a role in a language, and its test.
macro_rules! program {
    ($role:expr, $main:literal, $test:literal, $directory:literal, $extension:literal, $template:literal) => {
        [
            match $role {
                NewRole::Filter | NewRole::RequestHook | NewRole::ResponseHook => {
                    program!(@one $main, $directory, "hook", $extension)
                }
                NewRole::NotificationSink => program!(@one $main, $directory, "notification_sink", $extension),
                NewRole::ScheduledTask => program!(@one $main, $directory, "scheduled_task", $extension),
                NewRole::AuthProvider => program!(@one $main, $directory, "auth_provider", $extension),
                NewRole::ApiRoute => program!(@one $main, $directory, "api_route", $extension),
                NewRole::StorageBackend => program!(@one $main, $directory, "storage_backend", $extension),
                NewRole::Channel => program!(@one $main, $directory, "channel", $extension),
            },
            Template {
                path: $test,
                #[cfg(test)]
                from: "",
                text: include_str!(concat!("../../../../../plugins-examples/roles/", $directory, "/", $template)),
            },
        ]
    };
    (@one $path:literal, $directory:literal, $name:literal, $extension:literal) => {
        Template {
            path: $path,
            #[cfg(test)]
            from: "",
            text: include_str!(concat!("../../../../../plugins-examples/roles/", $directory, "/", $name, $extension)),
        }
    };
}
/// The roles of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum NewRole {
    /// Looks at every message first.
    Filter,
    /// Looks at every message, and may refine it.
    RequestHook,
    /// Looks at every answer, and may refine it.
    ResponseHook,
    /// Delivers events to people.
    NotificationSink,
    /// Runs at planned times.
    ScheduledTask,
    /// Says whose a credential is.
    AuthProvider,
    /// Answers HTTP requests.
    ApiRoute,
    /// Keeps the plugins' state.
    StorageBackend,
    /// Brings people's messages to the agent, and its answers to them.
    Channel,
}

impl NewRole {
    /// Its name on the wire.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::RequestHook => "request_hook",
            Self::ResponseHook => "response_hook",
            Self::NotificationSink => "notification_sink",
            Self::ScheduledTask => "scheduled_task",
            Self::AuthProvider => "auth_provider",
            Self::ApiRoute => "api_route",
            Self::StorageBackend => "storage_backend",
            Self::Channel => "channel",
        }
    }

    /// The program and its test, in a language of plugins. The programs are those of `plugins-examples/roles`.
    pub(super) const fn templates(self, language: Language) -> Option<[Template; 2]> {
        Some(match language {
            Language::Rust => program!(self, "src/main.rs", "tests/plugin.rs", "rust", ".rs", "test.rs"),
            Language::Python => program!(self, "main.py", "test_main.py", "python", ".py", "test.py"),
            Language::Go => program!(self, "main.go", "main_test.go", "go", ".go", "test.go.txt"),
            Language::Node => program!(self, "main.js", "main.test.js", "node", ".js", "test.js"),
            Language::Lua => return None,
        })
    }

    /// The program's action.
    pub(super) const fn action(self) -> &'static str {
        match self {
            Self::Filter | Self::RequestHook | Self::ResponseHook => "look",
            Self::NotificationSink => "send",
            Self::ScheduledTask => "run",
            Self::AuthProvider => "authenticate",
            Self::ApiRoute => "reply",
            Self::StorageBackend => "store",
            Self::Channel => "talk",
        }
    }

    /// What its test asks the action, as a JSON object.
    pub(super) const fn sample(self) -> &'static str {
        match self {
            Self::Filter | Self::RequestHook | Self::ResponseHook => {
                r#"{"message": "This is urgent.", "session": {"id": "s", "turn": 1, "sender": "ada", "channel": "cli"}, "metadata": {}}"#
            }
            Self::NotificationSink => {
                r#"{"event": {"id": "e1", "kind": "test", "severity": "info", "summary": "A try", "details": "", "time_unix_ms": 1780000000000, "fields": {}, "count": 1}, "attempt": 1}"#
            }
            Self::ScheduledTask => {
                r#"{"run": {"id": "r1", "job": "nightly", "planned_unix_ms": 1780000000000, "attempt": 1}, "count": 3}"#
            }
            Self::AuthProvider => {
                r#"{"scheme": "bearer", "credential": "a-token-of-nobody", "peer": {"address": "192.0.2.1", "user_agent": "test"}}"#
            }
            Self::ApiRoute => {
                r#"{"method": "GET", "path": "/x/hello", "query": {}, "headers": {}, "body": "", "body_encoding": "text", "subject": "gw:local/ada"}"#
            }
            Self::StorageBackend => {
                r#"{"op": "get", "key": {"data": "YQ", "sha256": "ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs"}}"#
            }
            Self::Channel => {
                r#"{"op": "send", "id": "m1", "conversation": "ada", "text": "Hello, Ada!", "attempt": 1}"#
            }
        }
    }

    /// The words of a call with the sample, for a shell.
    pub(super) fn call(self) -> String {
        let members: Map<String, Value> = serde_json::from_str(self.sample()).unwrap_or_default();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let word = |(name, value): (&String, &Value)| {
            let word = format!("{name}={}", text(value));
            let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./:".contains(c));
            // No sample has a quote of its own.
            if is_plain { word } else { format!("'{word}'") }
        };
        let words: Vec<String> = members.iter().map(word).collect();
        format!("{} {}", self.action(), words.join(" "))
    }

    /// What the action answers to the sample, as JSON.
    pub(super) const fn answer(self) -> &'static str {
        match self {
            Self::Filter | Self::RequestHook | Self::ResponseHook => {
                r#"{"verdict": "annotate", "metadata": {"priority": "high"}}"#
            }
            Self::NotificationSink => r#"{"status": "delivered"}"#,
            Self::ScheduledTask => r#"{"job": "nightly", "count": 3}"#,
            Self::AuthProvider => r#"{"outcome": "rejected", "reason": "no such token"}"#,
            Self::ApiRoute => {
                r#"{"status": 200, "headers": {"content-type": "text/plain; charset=utf-8"}, "body": "Hello, gw:local/ada!"}"#
            }
            Self::StorageBackend => r#"{"outcome": "absent"}"#,
            Self::Channel => r#"{"status": "delivered"}"#,
        }
    }

    /// The section of the configuration with [`entry`](Self::entry).
    pub(super) const fn section(self) -> &'static str {
        match self {
            Self::StorageBackend => "state",
            _ => "extensions",
        }
    }

    /// The entry that makes it so, below [`section`](Self::section), with the plugin's name.
    pub(super) fn entry(self, name: &str) -> String {
        let action = format!("{name}.{}", self.action());
        match self {
            Self::Filter => format!("filters: [{{ action: {action} }}]"),
            Self::RequestHook => format!("request_hooks: [{{ action: {action} }}]"),
            Self::ResponseHook => format!("response_hooks: [{{ action: {action} }}]"),
            Self::NotificationSink => format!("notifications: [{{ on: [plugin.*], action: {action} }}]"),
            Self::ScheduledTask => {
                format!(
                    "schedule: [{{ id: {name}, cron: \"0 3 * * *\", action: {action}, args: {{ count: 3 }} }}]"
                )
            }
            Self::AuthProvider => format!("auth: [{{ action: {action}, scopes: {{ user: [chat] }} }}]"),
            Self::ApiRoute => format!("routes: [{{ path: /x/{name}, action: {action}, scope: chat }}]"),
            Self::StorageBackend => format!("plugins: {{ engine: plugin, action: {action} }}"),
            Self::Channel => format!("channels: [{{ action: {action}, name: {name}, senders: [ada] }}]"),
        }
    }
}
