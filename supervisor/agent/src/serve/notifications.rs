//! Notifications.

use std::time::Duration;

use talon_extensions::EventKind;
use talon_proto::agent::{
    self, ListNotificationsRequest, ListNotificationsResponse, NotificationStatus, RetryNotificationsRequest,
    RetryNotificationsResponse, TestNotificationRequest,
};
use talon_store::{Notification, NotificationFilter, NotificationState, Timestamp};
use tokio::time::{sleep, timeout};
use tonic::Status;

use super::client::Client;
use super::service::{Service, page, token};
use super::sessions::unix_ms;
use crate::error_status::store_error_status;
use crate::notify::{NotifyError, Payload};

/// Notifications of a page, unless the client asks for fewer: with details of 16 KiB each they fit into a message.
const MAX_NOTIFICATIONS: u32 = 100;
/// How much longer than the entry's deadline the first attempt of a test is waited for. 10 s: others may be under way.
const TEST_GRACE: Duration = Duration::from_secs(10);
/// How often a test is looked at beside the ends of this agent's attempts: another agent may make it.
const TEST_LOOK: Duration = Duration::from_secs(1);

impl Service {
    pub(super) async fn list_notifications(
        &self,
        client: &Client,
        request: ListNotificationsRequest,
    ) -> Result<ListNotificationsResponse, Status> {
        client.require_operator("to see notifications")?;
        let ListNotificationsRequest { state, entry, page_size, page_token } = request;
        let filter =
            NotificationFilter { state: state_of(&state)?, entry: (!entry.is_empty()).then_some(entry) };
        let size = if page_size == 0 { MAX_NOTIFICATIONS } else { page_size.min(MAX_NOTIFICATIONS) };
        let outbox = self.agent.store.outbox();
        let found = async { outbox.list(&filter, &page(&page_token, size)?).await };
        let found = found.await.map_err(|error| store_error_status(&error))?;
        let notifications = found.items.iter().map(view).collect();
        Ok(ListNotificationsResponse { notifications, next_page_token: token(found.next) })
    }

    pub(super) async fn retry_notifications(
        &self,
        client: &Client,
        request: RetryNotificationsRequest,
    ) -> Result<RetryNotificationsResponse, Status> {
        client.require_operator("to have notifications tried again")?;
        let outbox = self.agent.store.outbox();
        let id = (!request.id.is_empty()).then_some(request.id.as_str());
        let again = outbox.retry(id, Timestamp::now()).await;
        let notifications = again.map_err(|error| store_error_status(&error))?;
        if let Some(id) = id.filter(|_| notifications == 0) {
            let found = outbox.get(id).await.map_err(|error| store_error_status(&error))?;
            let shown: String = id.chars().take(64).filter(|c| !c.is_control()).collect();
            return Err(match found {
                None => Status::not_found(format!(
                    "there is no notification {shown:?}: `talon notification list` shows those there are"
                )),
                Some(found) => Status::failed_precondition(format!(
                    "the notification {shown} is {}: only what was refused or given up, or waits for another attempt, is tried again",
                    found.state.word()
                )),
            });
        }
        if notifications > 0 {
            tracing::info!(by = %client.sender, notifications, "notifications are tried again by wish");
            match id {
                Some(id) => {
                    let found = outbox.get(id).await.map_err(|error| store_error_status(&error))?;
                    found.iter().for_each(|found| self.agent.notifier.wish(&found.entry, id));
                }
                None => self.agent.notifier.look_at_once(),
            }
        }
        Ok(RetryNotificationsResponse { notifications })
    }

    pub(super) async fn test_notification(
        &self,
        client: &Client,
        request: TestNotificationRequest,
    ) -> Result<agent::Notification, Status> {
        client.require_operator("to send a test")?;
        let notifier = &self.agent.notifier;
        let mut attempts = notifier.attempts();
        let sent = notifier.test(&request.entry, &client.sender).await.map_err(|error| match error {
            NotifyError::UnknownEntry { .. } => Status::not_found(error.to_string()),
            NotifyError::NoRoom => Status::resource_exhausted(error.to_string()),
            NotifyError::Store(error) => store_error_status(&error),
        })?;
        tracing::info!(by = %client.sender, entry = request.entry, notification = sent.id, "a test is sent");
        let deadline = notifier.entry(&request.entry).map(|entry| entry.deadline()).unwrap_or_default();
        let outbox = self.agent.store.outbox();
        let attempted = timeout(deadline + TEST_GRACE, async {
            loop {
                if let Some(now) = outbox.get(&sent.id).await?.filter(is_attempted) {
                    return Ok(now);
                }
                tokio::select! {
                    // It ends with the agent.
                    _ = attempts.changed() => {}
                    () = sleep(TEST_LOOK) => {}
                }
            }
        });
        match attempted.await {
            Ok(Ok(notification)) => Ok(view(&notification)),
            Ok(Err(error)) => Err(store_error_status(&error)),
            Err(_) => {
                let now = outbox.get(&sent.id).await.map_err(|error| store_error_status(&error))?;
                Ok(view(&now.unwrap_or(sent)))
            }
        }
    }

    /// The status; `None` without notifications.
    pub(super) async fn notification_status(&self) -> Option<NotificationStatus> {
        let entries = self.agent.notifier.entry_names().len();
        let counts = self.agent.notification_counts().await.unwrap_or_default();
        let total = counts.waiting + counts.sending + counts.delivered + counts.refused + counts.given_up;
        (entries > 0 || total > 0).then(|| NotificationStatus {
            entries: u32::try_from(entries).unwrap_or(u32::MAX),
            waiting: counts.waiting + counts.sending,
            delivered: counts.delivered,
            refused: counts.refused,
            given_up: counts.given_up,
            dropped: self.agent.notifier.dropped(),
        })
    }
}

fn state_of(word: &str) -> Result<Option<NotificationState>, Status> {
    if word.is_empty() {
        return Ok(None);
    }
    NotificationState::of(word).map(Some).ok_or_else(|| {
        let all: Vec<_> = NotificationState::ALL.iter().map(|state| state.word()).collect();
        Status::invalid_argument(format!("no notification has this state: there are {}", all.join(", ")))
    })
}

/// Whether its first attempt is over.
fn is_attempted(notification: &Notification) -> bool {
    match notification.state {
        NotificationState::Sending => false,
        NotificationState::Waiting => notification.attempt > 0,
        NotificationState::Delivered | NotificationState::Refused | NotificationState::GivenUp => true,
    }
}

fn view(notification: &Notification) -> agent::Notification {
    let event = Payload::read(&notification.payload)
        .map(|payload| payload.event(&notification.id, notification.count))
        .ok();
    let waits = notification.state == NotificationState::Waiting;
    agent::Notification {
        id: notification.id.clone(),
        entry: notification.entry.clone(),
        kind: event.as_ref().map(|event| EventKind::as_str(event.kind).to_owned()).unwrap_or_default(),
        severity: notification.severity.clone(),
        summary: event.as_ref().map(|event| event.summary.clone()).unwrap_or_default(),
        count: notification.count,
        state: notification.state.word().to_owned(),
        attempt: notification.attempt,
        created_unix_ms: unix_ms(notification.created_at),
        next_unix_ms: waits.then(|| unix_ms(notification.next_at)),
        ended_unix_ms: notification.ended_at.map(unix_ms),
        note: notification.note.clone(),
        details: event.as_ref().map(|event| event.details.clone()).unwrap_or_default(),
        fields: event.map(|event| event.fields.into_iter().collect()).unwrap_or_default(),
    }
}
