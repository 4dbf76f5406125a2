//! Methods as the tools of an SDK plugin.

use std::collections::BTreeMap;
use std::sync::Arc;

use talon_arguments::{ParameterKinds, read_texts};
use talon_bridge::text::{MAX_ERROR_TEXT_BYTES, cut};
use talon_sdk::proto::{Action, Parameter};
use talon_sdk::{Context, Output, Tool, ToolError};
use tonic::{Code, Status};

use crate::client::Client;
use crate::messages;
use crate::methods::Method;
use crate::schema::{self, Budget, MAX_FIELDS};

/// A request that cannot be an action's.
#[derive(Debug, thiserror::Error)]
#[error(
    "the request {message} of {method} has {count} fields, and at most {MAX_FIELDS} can be parameters: leave the method out of methods"
)]
pub(crate) struct TooManyFieldsError {
    method: String,
    message: String,
    count: usize,
}

/// The actions that are declared for the methods.
pub(crate) fn actions(methods: Vec<Method>) -> Result<Vec<(Method, Action)>, TooManyFieldsError> {
    let mut budget = Budget::default();
    let action = |method: Method| {
        let count = method.input.fields().len();
        if count > MAX_FIELDS {
            let message = method.input.full_name().to_owned();
            return Err(TooManyFieldsError { method: method.name, message, count });
        }
        let action = Action {
            name: method.action.clone(),
            description: budget.spend(method.description.clone()),
            parameters: schema::parameters(&method.input, &mut budget),
            read_only: method.is_read_only,
            ..Action::default()
        };
        Ok((method, action))
    };
    methods.into_iter().map(action).collect()
}

/// A tool that calls the method.
pub(crate) fn tool(method: Method, action: Action, client: Client) -> Tool {
    let kinds: Arc<BTreeMap<String, ParameterKinds>> =
        Arc::new(action.parameters.iter().map(|p| (p.name.clone(), kinds(p))).collect());
    let method = Arc::new(method);
    Tool::dynamic(action, move |texts: BTreeMap<String, String>, cx: Context| {
        let (method, client, kinds) = (method.clone(), client.clone(), kinds.clone());
        async move {
            let json = match cx.arguments() {
                Some(json) => json.to_json(),
                None => {
                    read_texts(&texts, &kinds).map_err(|error| ToolError::new(error.to_string()))?.to_json()
                }
            };
            call(&method, &client, &json, &cx).await
        }
    })
}

fn kinds(parameter: &Parameter) -> ParameterKinds {
    let schema = serde_json::from_str(&parameter.schema).ok();
    ParameterKinds::new(&parameter.r#type, parameter.required, schema.as_ref())
}

async fn call(method: &Method, client: &Client, json: &str, cx: &Context) -> Result<Output, ToolError> {
    let request =
        messages::request(&method.input, json).map_err(|error| ToolError::new(error.to_string()))?;
    let answer = client
        .call(method.path.clone(), request, cx.remaining())
        .await
        .map_err(|status| ToolError::new(refusal(method, &status)))?;
    let answer =
        messages::answer(&method.output, answer).map_err(|error| ToolError::new(error.to_string()))?;
    Output::text(answer.to_string()).structured(answer)
}

/// The program's refusal, as the caller reads it.
fn refusal(method: &Method, status: &Status) -> String {
    let name = &method.name;
    match status.code() {
        Code::Unimplemented => {
            format!("the program does not serve {name}: correct service, or take its own descriptor")
        }
        code => format!("{name} failed ({code:?}): {}", cut(status.message(), MAX_ERROR_TEXT_BYTES)),
    }
}
