//! `on_event`: a notification sink.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use talon_lua_engine::{Context, DeliveryStatus, Outcome, Point};
use talon_sdk::model::Model;
use talon_sdk::{Delivery, Notification, Tool, ToolError};

use super::script::{failed, loaded};
use crate::service::Service;

pub(super) fn tool(service: &Arc<Service>, name: &str) -> Tool {
    let (service, script) = (Arc::clone(service), name.to_owned());
    let about = format!("{name}.lua as a notification sink: its function on_event.");
    Tool::new(&format!("{name}-on_event"), &about, move |asked: Notification, cx| {
        let (service, script) = (Arc::clone(&service), script.clone());
        async move { run(&service, &script, asked, cx.model().ok()).await }
    })
    .role("notification_sink")
}

async fn run(
    service: &Service,
    name: &str,
    asked: Notification,
    model: Option<Model>,
) -> Result<Delivery, ToolError> {
    let loaded = loaded(service, name)?;
    let context = context(&asked);
    match service.call(name, loaded, Point::OnEvent, context, model).await {
        Ok(Outcome::Delivery { status, reason, after_seconds }) => Ok(match status {
            DeliveryStatus::Delivered => Delivery::delivered(),
            DeliveryStatus::Refused => Delivery::refused(reason),
            DeliveryStatus::Retry => {
                let retry = Delivery::retry(reason);
                match after_seconds {
                    Some(seconds) => retry.after(Duration::from_secs(seconds)),
                    None => retry,
                }
            }
        }),
        Ok(_) => Err(ToolError::new(format!(
            "{name}.lua said nothing of the event: this is a defect of talon-lua"
        ))),
        Err(error) => Err(failed(name, &error)),
    }
}

fn context(asked: &Notification) -> Context {
    let Value::Object(fields) =
        json!({ "event": asked.event, "events": asked.events, "attempt": asked.attempt })
    else {
        return Context::default();
    };
    Context { message: asked.event.summary.clone(), fields, ..Context::default() }
}
