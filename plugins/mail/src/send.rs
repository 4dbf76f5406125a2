//! `send`: one message, bounded in time.

use std::time::Duration;

use lettre::Address;
use talon_sdk::{Context, Notification, Output, ToolError, tracing};
use talon_sink::delivery::Delivery;
use talon_sink::peer_text::one_line;
use talon_sink::trust::Trust;

use crate::account::Account;
use crate::message::{message, message_id};
use crate::outcome;
use crate::sent_before::SentBefore;
use crate::settings::Settings;
use crate::smtp;

/// The credential with the password.
const PASSWORD: &str = "password";
/// What is left of the caller's time for the answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// What all calls share.
pub(crate) struct Mailer {
    account: Account,
    /// `None` where this machine trusts nothing.
    trust: Option<Trust>,
    sent_before: SentBefore,
}

impl Mailer {
    pub(crate) fn new(settings: &Settings) -> Result<Self, ToolError> {
        let account = Account::new(settings)?;
        let trust = match Trust::load() {
            Ok(trust) => Some(trust),
            Err(error) => {
                tracing::warn!("only tls: none can be used: {error}");
                None
            }
        };
        Ok(Self { account, trust, sent_before: SentBefore::default() })
    }

    async fn send(&self, asked: &Notification, cx: &Context) -> Result<Delivery, ToolError> {
        let account = &self.account;
        let password = cx.credential(PASSWORD);
        if account.username.is_some() && password.is_none() {
            return Ok(Delivery::retry(
                "there is no password for username: configure the credential `password` of this plugin",
            ));
        }
        let id = message_id(account, &asked.event.id);
        let before = self.sent_before.receivers(&id);
        let left: Vec<Address> =
            account.to.iter().map(|to| to.email.clone()).filter(|to| !before.contains(to)).collect();
        if left.is_empty() {
            return Ok(Delivery::Delivered(Some("it was sent before".to_owned())));
        }
        let message = message(account, &asked.event, &asked.events)?.formatted();
        let timeout = cx
            .remaining()
            .map_or(account.timeout, |remaining| account.timeout.min(remaining.saturating_sub(ANSWER_TIME)));
        let password = password.as_ref().map(|password| password.value);
        let sending = smtp::send(account, password, self.trust.as_ref(), left, &message);
        Ok(match tokio::time::timeout(timeout, sending).await {
            Ok(Ok(sent)) => {
                self.sent_before.add(&id, &sent.receivers);
                outcome::of_sent(&sent, before.len())
            }
            Ok(Err(error)) => outcome::of_error(&error),
            Err(_) => Delivery::retry(format!(
                "{} did not take it within {} s",
                account.server,
                timeout.as_secs_f32()
            )),
        })
    }
}

/// Sends a notification by e-mail.
#[talon_sdk::notification_sink]
pub(crate) async fn send(asked: Notification, cx: Context) -> Result<Output, ToolError> {
    let mailer = cx.shared::<Mailer>()?;
    let delivery = mailer.send(&asked, &cx).await?;
    tracing::debug!("event {}, attempt {}: {delivery:?}", one_line(&asked.event.id), asked.attempt);
    delivery.output()
}
