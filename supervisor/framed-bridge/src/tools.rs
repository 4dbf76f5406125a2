//! Makes an SDK plugin from the capabilities that the program declares.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use talon_action_name::action_name;
use talon_bridge::text::quoted;
use talon_sdk::proto::{Action as Declared, Parameter};
use talon_sdk::{Plugin, Tool, ToolError};

use crate::exchange::{Exchange, ExchangeError};
use crate::message::{Action, Capabilities, MAX_ACTIONS, MAX_PARAMETERS, Request};
use talon_bridge::logging;

/// The longest name of a plugin that the SDK takes.
const MAX_NAME_LEN: usize = 64;
/// How many actions are logged one by one that are skipped, and that are offered under another name.
const MAX_LOGGED: usize = 8;
/// The name of a plugin whose own name is invalid.
const DEFAULT_NAME: &str = "plugin";

/// Why the program cannot be offered as a plugin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CapabilitiesError {
    /// The request for the capabilities failed.
    #[error("its capabilities cannot be read: {0}")]
    Request(#[from] ExchangeError),
    /// It refused.
    #[error("it refuses to declare its capabilities: {0}")]
    Refused(String),
    /// Its response has none.
    #[error("its answer to \"capabilities\" holds no caps; it has to answer as in OpenTalon v0.0.1")]
    Missing,
}

/// Requests the capabilities of the program.
pub(crate) async fn read(exchange: &Exchange) -> Result<Capabilities, CapabilitiesError> {
    let answer = exchange.request(&Request::capabilities()).await?;
    if !answer.error.is_empty() {
        return Err(CapabilitiesError::Refused(quoted(&answer.error)));
    }
    answer.caps.ok_or(CapabilitiesError::Missing)
}

/// The program as a plugin. It takes no settings: v0.0.1 has no way to pass any.
pub(crate) fn plugin(exchange: Exchange, capabilities: Capabilities) -> Plugin {
    let exchange = Arc::new(exchange);
    let name = slug(&capabilities.name);
    if name != capabilities.name {
        logging::warn(format_args!("it calls itself {}, which becomes {name:?}", quoted(&capabilities.name)));
    }
    let called: Arc<str> = capabilities.name.as_str().into();
    let plugin = Plugin::new(name).description(capabilities.description.clone()).tools(tools(
        &exchange,
        &called,
        capabilities,
    ));
    plugin.refresh(move || {
        let (exchange, called) = (exchange.clone(), called.clone());
        async move {
            // The error holds nothing that must be kept from the caller.
            let capabilities = read(&exchange).await.map_err(|error| ToolError::new(error.to_string()))?;
            Ok(tools(&exchange, &called, capabilities))
        }
    })
}

/// A valid plugin name derived from the program's name.
fn slug(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = name.chars().map(fit).skip_while(|c| *c == '-').take(MAX_NAME_LEN).collect();
    if slug.is_empty() { DEFAULT_NAME.to_owned() } else { slug }
}

/// Tools for the actions that can be offered, and a log line for each of the first few that cannot.
fn tools(exchange: &Arc<Exchange>, plugin: &Arc<str>, capabilities: Capabilities) -> Vec<Tool> {
    let actions = capabilities.actions;
    if actions.more > 0 {
        logging::warn(format_args!(
            "it declares {} actions beyond the first {MAX_ACTIONS}, which are left out",
            actions.more
        ));
    }
    let mut names = HashSet::new();
    let (mut tools, mut left_out, mut escaped) = (Vec::new(), 0_usize, 0_usize);
    for action in actions.items {
        match defect(&action, &names) {
            None => {
                let name = action_name(&action.name);
                escaped += usize::from(name != action.name);
                if name != action.name && escaped <= MAX_LOGGED {
                    logging::info(format_args!("its action {} is offered as {name}", quoted(&action.name)));
                }
                names.insert(action.name.clone());
                tools.push(tool(exchange.clone(), plugin.clone(), action));
            }
            Some(defect) => {
                left_out += 1;
                if left_out <= MAX_LOGGED {
                    logging::warn(format_args!("its action {} is left out: {defect}", quoted(&action.name)));
                }
            }
        }
    }
    if left_out > MAX_LOGGED {
        logging::warn(format_args!(
            "{} more of its actions are left out for such reasons",
            left_out - MAX_LOGGED
        ));
    }
    if escaped > MAX_LOGGED {
        logging::info(format_args!(
            "{} more of its actions are offered under such names",
            escaped - MAX_LOGGED
        ));
    }
    tools
}

/// Why an action cannot be offered.
fn defect(action: &Action, names: &HashSet<String>) -> Option<String> {
    if names.contains(&action.name) {
        return Some("another one has its name; rename one of them in the plugin".to_owned());
    }
    let more = action.parameters.more;
    (more > 0).then(|| format!("it has {more} parameters beyond the first {MAX_PARAMETERS}"))
}

fn tool(exchange: Arc<Exchange>, plugin: Arc<str>, action: Action) -> Tool {
    let parameters = action.parameters.items.into_iter().map(|parameter| Parameter {
        name: parameter.name,
        description: parameter.description,
        r#type: parameter.kind,
        required: parameter.required,
        schema: String::new(),
    });
    let declared = Declared {
        name: action_name(&action.name),
        description: action.description,
        parameters: parameters.collect(),
        ..Declared::default()
    };
    let called: Arc<str> = action.name.into();
    Tool::dynamic(declared, move |args: BTreeMap<String, String>, cx| {
        let (exchange, plugin, action) = (exchange.clone(), plugin.clone(), called.clone());
        async move {
            let request = Request {
                method: "execute",
                id: cx.call_id(),
                plugin: &plugin,
                action: &action,
                args: Some(&args),
            };
            match exchange.request(&request).await {
                Ok(answer) if answer.error.is_empty() => Ok(answer.content),
                Ok(answer) => Err(ToolError::new(answer.error)),
                Err(error) => {
                    logging::warn(format_args!("call {}, action {action}: {error}", quoted(cx.call_id())));
                    Err(ToolError::new(format!("the plugin's program failed: {error}")))
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message;

    fn made_of(caps: &str) -> Plugin {
        let body = format!(r#"{{"caps":{caps}}}"#);
        let capabilities = message::decode(body.as_bytes()).unwrap().caps.unwrap();
        plugin(Exchange::new("/nowhere".into()), capabilities)
    }

    #[test]
    fn what_it_declares_is_offered() {
        let plugin = made_of(
            r#"{"name":"hello-world","description":"Greets.","actions":[{"name":"hello","description":"Says it.",
                "parameters":[{"name":"who","description":"Whom.","type":"string","required":true}]}]}"#,
        );
        assert_eq!(plugin.check(), Ok(()));
        let told = plugin.capabilities();
        assert_eq!((told.name.as_str(), told.description.as_str()), ("hello-world", "Greets."));
        let action = &told.actions[0];
        assert_eq!((action.name.as_str(), action.description.as_str()), ("hello", "Says it."));
        let parameter = &action.parameters[0];
        assert_eq!(
            (parameter.name.as_str(), parameter.r#type.as_str(), parameter.required),
            ("who", "string", true)
        );
    }

    #[test]
    fn what_is_not_fit_is_left_out_and_the_rest_is_served() {
        let long = "x".repeat(65);
        let wide = format!(r#"{{"name":"wide","parameters":[{}{{}}]}}"#, "{},".repeat(300));
        let plugin = made_of(
            &format!(
                r#"{{"name":"Größe 2!","actions":[{{"name":""}},{{"name":"a b"}},{{"name":"{long}"}},{wide},
                {{"name":"ok"}},{{"name":"ok"}},null]}}"#
            )
            .replace(",null", ""),
        );
        assert_eq!(plugin.check(), Ok(()));
        let told = plugin.capabilities();
        assert_eq!(told.name, "gr--e-2-");
        let names: Vec<&str> = told.actions.iter().map(|action| action.name.as_str()).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        assert_eq!(
            (names[0], names[1], names[3]),
            ("_-n", "a_-20b", "ok"),
            "names that are none are escaped"
        );
        assert!(names[2].starts_with("xxxx") && names[2].contains("_-h"), "{names:?}");
    }

    #[test]
    fn any_name_becomes_one_that_the_sdk_takes() {
        for (name, becomes) in
            [("", "plugin"), ("---", "plugin"), ("_A", "a"), ("é", "plugin"), ("ok-1", "ok-1")]
        {
            assert_eq!(slug(name), becomes);
            assert_eq!(made_of(&format!(r#"{{"name":"{name}"}}"#)).check(), Ok(()), "{name:?}");
        }
        assert_eq!(slug(&"ab".repeat(100)).len(), MAX_NAME_LEN);
    }
}
