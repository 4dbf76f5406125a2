//! The long polls, and which update was the last.

use std::time::Duration;

use serde_json::{Value, json};
use talon_sdk::{EventSource, SourceEvent, State, tracing};
use talon_sink::edit_notices::{EditNotices, edited_conversation};
use talon_sink::reconnect_wait::reconnect_wait;
use tokio::time::{Instant, sleep};

use crate::api::{Api, ApiError};
use crate::update::{ALLOWED_UPDATES, Bot, Update, event};

/// The most updates of one answer. 50: all of them fit into the queue of events, however long they are.
const MAX_UPDATES: u32 = 50;
/// The least time between two polls that brought nothing: a server that does not wait is not asked without end.
const MIN_INTERVAL: Duration = Duration::from_millis(500);

/// Polls for as long as it is polled itself, and the token is somebody's.
pub(crate) async fn poll(api: Api, bot: Bot, events: EventSource, state: State, waits: Duration) {
    let key = format!("offset/{}", bot.id);
    let mut failures = 0_u32;
    let mut offset = loop {
        match state.get_json::<i64>(&key).await {
            Ok(offset) => break offset.unwrap_or_default(),
            Err(error) => {
                tracing::warn!("which update was the last cannot be read, and is asked again: {error}");
                failures = failures.saturating_add(1);
                sleep(reconnect_wait(failures)).await;
            }
        }
    };
    failures = 0;
    let mut edits = EditNotices::default();
    loop {
        let began = Instant::now();
        match updates(&api, offset, waits).await {
            Ok(found) => {
                failures = 0;
                let is_empty = found.is_empty();
                if let Some(next) = tell(&api, &bot, &events, &mut edits, &found).await {
                    offset = next;
                    // If it cannot be stored, its events come again, and are known by their ids.
                    if let Err(error) = state.set_json(&key, &offset).await {
                        tracing::warn!("which update was the last cannot be stored: {error}");
                    }
                }
                if is_empty {
                    sleep(MIN_INTERVAL.saturating_sub(began.elapsed())).await;
                }
            }
            // So the call that opens the channel next fails, and tells.
            Err(error @ ApiError::Token(_)) => {
                tracing::error!("Telegram is not listened to any more: {error}");
                return;
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                let after = if let ApiError::Later { after, .. } = &error {
                    after.unwrap_or_default()
                } else {
                    Duration::ZERO
                };
                tracing::warn!("Telegram cannot be listened to, and is asked again: {error}");
                sleep(reconnect_wait(failures).max(after)).await;
            }
        }
    }
}

/// The updates from a number on. Asking for it confirms all earlier ones.
async fn updates(api: &Api, offset: i64, waits: Duration) -> Result<Vec<Value>, ApiError> {
    let arguments = json!({
        "offset": offset, "limit": MAX_UPDATES, "timeout": waits.as_secs(), "allowed_updates": ALLOWED_UPDATES,
    });
    api.call("getUpdates", &arguments, waits).await
}

/// Tells all updates in their order, and waits until the host has them. Returns the number of the next one.
async fn tell(
    api: &Api,
    bot: &Bot,
    events: &EventSource,
    edits: &mut EditNotices,
    found: &[Value],
) -> Option<i64> {
    let mut next = None;
    for update in found {
        let number = update["update_id"].as_i64();
        next = next.max(number.map(|number| number.saturating_add(1)));
        // One that is not understood is of a later version; it would come again and again.
        let Ok(update) = serde_json::from_value::<Update>(update.clone()) else {
            tracing::warn!("the update {} is not understood, and is left out", number.unwrap_or_default());
            continue;
        };
        let (event, query) = event(&update, bot);
        let is_due = |event: &SourceEvent| {
            edited_conversation(event)
                .is_none_or(|conversation| edits.is_due(&conversation, std::time::Instant::now()))
        };
        if let Some(event) = event.filter(is_due) {
            let id = event.id().to_owned();
            if let Err(error) = events.deliver(event).await {
                tracing::warn!("{id}: {error}");
            }
        }
        if let Some(query) = query {
            // The button stops to blink. That is all that it is for.
            let arguments = json!({"callback_query_id": query});
            if let Err(error) = api.call::<Value>("answerCallbackQuery", &arguments, Duration::ZERO).await {
                tracing::debug!("a button's query was not answered: {error}");
            }
        }
    }
    next
}
