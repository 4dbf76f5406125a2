//! One server of an editor's list.

use serde_json::{Map, Value};

/// The supported settings of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Server {
    pub(super) launch: LaunchMethod,
    pub(super) env: Vec<(String, String)>,
    pub(super) enabled: bool,
}

/// How the server is reached.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LaunchMethod {
    Program { command: String, args: Vec<String>, cwd: Option<String> },
    Url { url: String, headers: Vec<(String, String)> },
}

/// Keys that do not affect how the server runs and can be ignored.
const WITHOUT_MEANING: [&str; 6] = ["name", "description", "$schema", "version", "icon", "gallery"];

/// Why a server is unusable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ServerError {
    #[error("is no object: correct it")]
    NoObject,
    #[error("has the type {kind:?}: stdio, http and sse are what can be taken over")]
    UnknownType { kind: String },
    #[error(
        "is a container image, and a plugin is a program of this machine: install the program that is in it, or reach it by a \
         url; its jail takes the container's place"
    )]
    Image,
    #[error("has both a command and a url: leave one of them out")]
    CommandAndUrl,
    #[error("has neither a command nor a url: there is nothing to run")]
    NeitherCommandNorUrl,
    #[error("its {what} is no text: correct it")]
    NoText { what: &'static str },
    #[error("its url is none of http or https: correct it")]
    OtherScheme,
    #[error("its args are no list: correct them")]
    NoList,
    #[error("its {what} are no object: correct them")]
    NoPairs { what: &'static str },
}

/// Parses one server. A setting that is not imported becomes a note, or the error if the server is unusable
/// without it.
pub(super) fn read(about: &Value, notes: &mut Vec<String>) -> Result<Server, ServerError> {
    let Value::Object(about) = about else { return Err(ServerError::NoObject) };
    let mut about = about.clone();
    let mut take = |key: &str| about.shift_remove(key).filter(|value| !value.is_null());
    let kind = [take("type"), take("transport"), take("transportType")].into_iter().flatten().next();
    let url = [take("url"), take("serverUrl"), take("httpUrl")].into_iter().flatten().next();
    let (command, args, cwd) = (take("command"), take("args"), take("cwd"));
    let (env, headers) = (take("env"), [take("headers"), take("requestInit")].into_iter().flatten().next());
    let image = take("image").or_else(|| take("dockerImage"));
    let disabled = take("disabled").is_some_and(|value| value == true)
        || take("enabled").is_some_and(|value| value == false);
    for key in about.keys().filter(|key| !WITHOUT_MEANING.contains(&key.as_str())) {
        notes.push(format!("the key {key:?} is not taken over{}", instead_of(key)));
    }
    if disabled {
        notes
            .push("is disabled there, and so is not started here: `talon plugin start` starts it".to_owned());
    }
    if image.is_some() && command.is_none() && url.is_none() {
        return Err(ServerError::Image);
    }
    match kind.as_ref().and_then(Value::as_str) {
        Some("docker" | "container" | "oci") => return Err(ServerError::Image),
        Some(
            "stdio" | "http" | "streamable-http" | "streamableHttp" | "streamable_http" | "sse" | "local"
            | "remote",
        )
        | None => {}
        Some(other) => {
            return Err(ServerError::UnknownType { kind: other.to_owned() });
        }
    }
    let runs = match (command, url) {
        (Some(Value::String(command)), None) if !command.is_empty() => {
            let cwd = cwd.map(|cwd| text("cwd", cwd)).transpose()?;
            LaunchMethod::Program { command, args: texts(args)?, cwd }
        }
        (None, Some(Value::String(url))) if url.starts_with("https://") || url.starts_with("http://") => {
            LaunchMethod::Url { url, headers: pairs("headers", headers)? }
        }
        (Some(_), Some(_)) => return Err(ServerError::CommandAndUrl),
        (None, None) => return Err(ServerError::NeitherCommandNorUrl),
        (Some(_), None) => return Err(ServerError::NoText { what: "command" }),
        (None, Some(_)) => return Err(ServerError::OtherScheme),
    };
    Ok(Server { launch: runs, env: pairs("env", env)?, enabled: !disabled })
}

/// Talon's counterpart of a key.
fn instead_of(key: &str) -> &'static str {
    match key {
        "autoApprove" | "alwaysAllow" | "allowedTools" | "includeTools" | "tools" => {
            ": `talon mcp --allow` says which tools are offered"
        }
        "disabledTools" | "excludeTools" => ": `talon mcp --deny` says which tools are not offered",
        "timeout" | "initTimeout" | "startupTimeout" => {
            ": the plugin's `timeout` and `start_timeout` have that meaning"
        }
        "envFile" => {
            ": set its variables in the supervisor's environment, and name them in the plugin's `env`"
        }
        "oauth" | "auth" | "authorization" => ": a header of config.headers is what a plugin can log in with",
        _ => "",
    }
}

fn text(what: &'static str, value: Value) -> Result<String, ServerError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(yes) => Ok(yes.to_string()),
        _ => Err(ServerError::NoText { what }),
    }
}

fn texts(values: Option<Value>) -> Result<Vec<String>, ServerError> {
    match values {
        None => Ok(Vec::new()),
        Some(Value::Array(values)) => values.into_iter().map(|value| text("args", value)).collect(),
        Some(_) => Err(ServerError::NoList),
    }
}

fn pairs(what: &'static str, values: Option<Value>) -> Result<Vec<(String, String)>, ServerError> {
    let values = match values {
        None => Map::new(),
        Some(Value::Object(mut values)) => match values.shift_remove("headers") {
            // The structure of `requestInit`.
            Some(Value::Object(inner)) if what == "headers" => inner,
            Some(other) => {
                values.insert("headers".to_owned(), other);
                values
            }
            None => values,
        },
        Some(_) => return Err(ServerError::NoPairs { what }),
    };
    values.into_iter().map(|(name, value)| Ok((name, text(what, value)?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: Value) -> (Result<Server, ServerError>, Vec<String>) {
        let mut notes = Vec::new();
        (read(&value, &mut notes), notes)
    }

    #[test]
    fn programs_and_addresses_are_understood() {
        let (server, notes) = of(json!({
            "type": "stdio", "command": "git-mcp", "args": ["-p", 8080], "env": { "A": "b", "N": 1, "Y": true }, "cwd": "/x",
        }));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let launch = LaunchMethod::Program {
            command: "git-mcp".to_owned(),
            args: vec!["-p".to_owned(), "8080".to_owned()],
            cwd: Some("/x".to_owned()),
        };
        let env = vec![pair("A", "b"), pair("N", "1"), pair("Y", "true")];
        assert_eq!((server, notes), (Ok(Server { launch, env, enabled: true }), vec![]));

        let headers = vec![pair("Authorization", "Bearer x")];
        for (key, more) in [("url", "headers"), ("serverUrl", "headers"), ("httpUrl", "headers")] {
            let (server, notes) = of(
                json!({ key: "https://a.example/mcp", more: { "Authorization": "Bearer x" }, "disabled": true }),
            );
            let launch =
                LaunchMethod::Url { url: "https://a.example/mcp".to_owned(), headers: headers.clone() };
            assert_eq!(server, Ok(Server { launch, env: vec![], enabled: false }), "{key}");
            assert!(notes.iter().any(|note| note.contains("disabled")), "{notes:?}");
        }
    }

    // Promises: MCP-37
    #[test]
    fn a_server_of_the_older_transport_is_an_address() {
        for kind in ["type", "transport"] {
            let (server, notes) = of(json!({ "url": "https://a.example/sse", kind: "sse" }));
            let launch = LaunchMethod::Url { url: "https://a.example/sse".to_owned(), headers: vec![] };
            assert_eq!((server, notes), (Ok(Server { launch, env: vec![], enabled: true }), vec![]));
        }
    }

    #[test]
    fn what_cannot_be_taken_over_says_why() {
        for (server, why) in [
            (json!([]), "no object"),
            (json!({}), "neither"),
            (json!({ "command": "" }), "no text"),
            (json!({ "command": ["a"] }), "no text"),
            (json!({ "command": "a", "url": "https://a" }), "both"),
            (json!({ "command": "a", "args": "b" }), "no list"),
            (json!({ "command": "a", "args": [{}] }), "no text"),
            (json!({ "command": "a", "env": ["A=b"] }), "no object"),
            (json!({ "url": "ftp://a" }), "http or https"),
            (json!({ "url": "https://a", "type": "ws" }), "\"ws\""),
            (json!({ "image": "ghcr.io/a/b:1" }), "container image"),
            (json!({ "type": "docker", "command": "a" }), "container image"),
        ] {
            let (result, _) = of(server.clone());
            assert!(
                result.as_ref().is_err_and(|reason| reason.to_string().contains(why)),
                "{server}: {result:?}"
            );
        }
    }

    #[test]
    fn keys_that_are_not_known_are_told_with_what_talon_has_instead() {
        let (server, notes) =
            of(json!({ "command": "a", "autoApprove": ["x"], "description": "d", "quux": 1 }));
        assert!(server.is_ok());
        assert_eq!(notes.len(), 2, "{notes:?}");
        let told = |note: &String| note.contains("autoApprove") && note.contains("--allow");
        assert!(notes.iter().any(told), "{notes:?}");
    }
}
