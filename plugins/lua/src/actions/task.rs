//! `task`: a scheduled task.

use std::sync::Arc;

use serde_json::{Map, Value};
use talon_lua_engine::{Context, Outcome, Point, Schedule};
use talon_sdk::model::Model;
use talon_sdk::proto::{Action, JobProposal};
use talon_sdk::{Output, Tool, ToolError};

use super::script::{failed, loaded};
use crate::service::Service;

pub(super) fn tool(service: &Arc<Service>, name: &str, schedule: Option<&Schedule>) -> Tool {
    let (service, script) = (Arc::clone(service), name.to_owned());
    let proposed = schedule.map(proposal).unwrap_or_default();
    let action = Action {
        name: format!("{name}-task"),
        description: format!("{name}.lua as a scheduled task: its function task.{proposed}"),
        takes_further_arguments: true,
        roles: vec!["scheduled_task".to_owned()],
        proposed_jobs: schedule.map(|schedule| job(name, schedule)).into_iter().collect(),
        ..Action::default()
    };
    Tool::dynamic(action, move |texts, cx| {
        let (service, script) = (Arc::clone(&service), script.clone());
        async move {
            let mut args: Map<String, Value> = match cx.arguments() {
                Some(typed) => {
                    let read = |json: &str| serde_json::from_str(json).unwrap_or_default();
                    typed.iter().map(|(name, json)| (name.to_owned(), read(json))).collect()
                }
                None => texts.into_iter().map(|(name, text)| (name, Value::String(text))).collect(),
            };
            let run = args.remove("run").unwrap_or_default();
            let fields = Map::from_iter([("run".to_owned(), run), ("args".to_owned(), Value::Object(args))]);
            let context = Context { fields, ..Context::default() };
            call(&service, &script, context, cx.model().ok()).await
        }
    })
}

/// The job that the script would like to have, by the script's name; the operator accepts it, or writes an entry.
fn job(name: &str, Schedule(said): &Schedule) -> JobProposal {
    let text = |key: &str| said.get(key).cloned().unwrap_or_default();
    JobProposal {
        name: name.to_owned(),
        cron: text("cron"),
        every: text("every"),
        timezone: text("timezone"),
        arguments_json: String::new(),
    }
}

/// The same for those who read the description.
fn proposal(schedule: &Schedule) -> String {
    let said: Vec<String> = schedule.0.iter().map(|(key, value)| format!("{key}: {value:?}")).collect();
    format!(" It would like to run at {{ {} }}.", said.join(", "))
}

async fn call(
    service: &Service,
    name: &str,
    context: Context,
    model: Option<Model>,
) -> Result<Output, ToolError> {
    let loaded = loaded(service, name)?;
    match service.call(name, loaded, Point::Task, context, model).await {
        Ok(Outcome::Text(text)) => Ok(Output::text(text)),
        Ok(_) => Err(ToolError::new(format!("{name}.lua gave no text: this is a defect of talon-lua"))),
        Err(error) => Err(failed(name, &error)),
    }
}
