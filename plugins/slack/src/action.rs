//! The channel's action: opens the channel, and sends texts.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde_json::Value;
use talon_sdk::channel::{ChannelOp, ChannelReply, ChannelRequest};
use talon_sdk::{Context, EventSource, State, ToolError, tracing};
use talon_sink::channel_start::start_channel;
use talon_sink::delivery::Delivery;
use talon_sink::held_files::HeldFiles;
use talon_sink::message_piece::next_message;
use talon_sink::trust::Trust;
use tokio_util::task::AbortOnDropHandle;

use crate::api::Api;
use crate::api_error::ApiError;
use crate::conversation::Conversation;
use crate::files::download;
use crate::listen::listen;
use crate::outbound::{MAX_SECTION_UNITS, MAX_UNITS, message, was_sent};
use crate::plain_text::escaped_units;
use crate::send_log::{EarlierSend, SendLog};
use crate::session::Listener;
use crate::settings::Settings;
use crate::socket::Socket;
use crate::token_kind::TokenKind;
use crate::user_names::UserNames;

/// How far the clocks of Slack and of this machine may be apart, in seconds. A minute: they are set by the network.
const CLOCK_SKEW_SECONDS: u64 = 60;

/// What all calls share.
pub(crate) struct Slack {
    settings: Settings,
    trust: Option<Trust>,
    events: EventSource,
    connections: Mutex<Option<Connections>>,
    sends: SendLog,
    files: HeldFiles,
}

/// What listens.
struct Connections {
    /// It has the tokens, too.
    listener: Arc<Listener>,
    task: AbortOnDropHandle<()>,
}

impl Connections {
    /// Whether they are listened to, with these tokens.
    fn is_open(&self, api: &Api) -> bool {
        let own = &self.listener.api;
        own.bot_token == api.bot_token && own.app_token == api.app_token && !self.task.is_finished()
    }

    /// What the call that opens the channel is told.
    fn state(&self) -> Delivery {
        self.listener.outage.lock().as_ref().map_or(Delivery::Delivered(None), |why| {
            Delivery::retry(format!("Slack cannot be listened to, and is asked again: {why}"))
        })
    }
}

impl Slack {
    pub(crate) fn new(settings: Settings, events: EventSource) -> Result<Self, ToolError> {
        let trust = start_channel(&settings.api(), settings.allow_http, &events)?;
        Ok(Self {
            settings,
            trust,
            events,
            connections: Mutex::default(),
            sends: SendLog::default(),
            files: HeldFiles::default(),
        })
    }

    fn api(&self, cx: &Context) -> Result<Api, Delivery> {
        Ok(Api {
            base: self.settings.api(),
            allow_http: self.settings.allow_http,
            trust: self.trust.clone(),
            bot_token: token(cx, TokenKind::Bot)?,
            app_token: token(cx, TokenKind::App)?,
        })
    }

    /// Listens, if it does not yet. While no connection can be made it says why not.
    async fn open(&self, api: Api) -> Delivery {
        let open = self.connections.lock().as_ref().filter(|open| open.is_open(&api)).map(Connections::state);
        if let Some(state) = open {
            return state;
        }
        let (own, lacking) = match api.app_user().await {
            Ok(found) => found,
            Err(error) => return Delivery::retry(error.to_string()),
        };
        if !lacking.is_empty() {
            let scopes = lacking.join(", ");
            tracing::warn!(
                "the token of `bot_token` lacks the scopes {scopes}: messages may be missing, or come twice; add them to the app, and install it anew"
            );
        }
        // Whether the app's token is one is known by the first connection.
        let first = match Socket::open(&api).await {
            Ok(first) => first,
            Err(error) => return Delivery::retry(error.to_string()),
        };
        let mut connections = self.connections.lock();
        // Another call may have been faster.
        if !connections.as_ref().is_some_and(|open| open.is_open(&api)) {
            tracing::info!("listens as @{} ({})", own.user, own.user_id);
            let listener = Arc::new(Listener {
                api,
                own,
                events: self.events.clone(),
                thread_replies: self.settings.thread_replies,
                names: UserNames::default(),
                edits: Mutex::default(),
                outage: Mutex::default(),
            });
            let task = AbortOnDropHandle::new(tokio::spawn(listen(Arc::clone(&listener), first)));
            *connections = Some(Connections { listener, task });
        }
        Delivery::Delivered(None)
    }

    /// Sends one message, once, and says how many bytes of the text are done with it.
    async fn send(&self, api: &Api, state: &State, asked: &ChannelRequest) -> (Delivery, usize) {
        let Some(to) = Conversation::parse(&asked.conversation) else {
            return (Delivery::refused("the conversation is none of Slack's"), 0);
        };
        let max_units = if asked.buttons.is_empty() { MAX_UNITS } else { MAX_SECTION_UNITS };
        let (text, end) = next_message(&asked.text, max_units, escaped_units);
        // Slack takes no empty message, and an attempt that can only fail would hold up the rest.
        if text.trim().is_empty() {
            return (Delivery::Delivered(None), end);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // What has no id is sent again by nobody.
        let claim = (!asked.id.is_empty()).then(|| self.sends.claim(&asked.id));
        let earlier = match &claim {
            None => Ok(EarlierSend::None),
            Some(None) => return (Delivery::retry("it is being sent by an earlier call"), 0),
            Some(Some(_)) => self.sends.begin(state, &asked.id, now).await,
        };
        match earlier {
            Ok(EarlierSend::None) => {}
            Ok(EarlierSend::Sent(sent)) => return (Delivery::Delivered(None), sent.min(asked.text.len())),
            Ok(EarlierSend::Uncertain(began)) => {
                let after = began.saturating_sub(CLOCK_SKEW_SECONDS).to_string();
                match was_sent(api, &to, &asked.id, &after).await {
                    Ok(true) => {
                        self.settle(state, &asked.id, Some(end)).await;
                        return (Delivery::Delivered(None), end);
                    }
                    Ok(false) => {}
                    Err(error @ ApiError::Later { .. }) => return (error.delivery(), 0),
                    // It is better twice than never.
                    Err(error) => {
                        tracing::warn!("a message may come twice: whether it was sent is not known: {error}")
                    }
                }
            }
            Err(error) => return (Delivery::retry(format!("what was sent is not known: {error}")), 0),
        }
        let buttons = if end == asked.text.len() { &asked.buttons[..] } else { &[] };
        let arguments = message(&to, &asked.id, text, buttons);
        let arguments: Vec<(&str, &str)> =
            arguments.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match api.call::<Value>(TokenKind::Bot, "chat.postMessage", &arguments).await {
            Ok(_) => {
                self.settle(state, &asked.id, Some(end)).await;
                (Delivery::Delivered(None), end)
            }
            // It may have been sent all the same.
            Err(error @ ApiError::Later { is_undone: false, .. }) => (error.delivery(), 0),
            Err(error) => {
                self.settle(state, &asked.id, None).await;
                (error.delivery(), 0)
            }
        }
    }

    /// Notes what became of a message. If that fails it is looked for when it comes again.
    async fn settle(&self, state: &State, id: &str, sent: Option<usize>) {
        if !id.is_empty()
            && let Err(error) = self.sends.settle(state, id, sent).await
        {
            tracing::warn!("that a message was sent cannot be stored: {error}");
        }
    }
}

/// A token that the operator configured.
fn token(cx: &Context, kind: TokenKind) -> Result<String, Delivery> {
    let (name, prefix) = (kind.credential(), kind.prefix());
    let Some(token) = cx.credential(name).map(|token| token.value.to_owned()) else {
        return Err(Delivery::retry(format!(
            "there is no token: configure the credential `{name}` of this plugin, {prefix}…"
        )));
    };
    if !kind.is_token(&token) {
        return Err(Delivery::retry(format!(
            "credential {name}: this is no token of the kind {prefix}…; the app's page at api.slack.com has it"
        )));
    }
    Ok(token)
}

/// Opens the channel, sends a text to a conversation, or gives a file.
#[talon_sdk::channel]
pub(crate) async fn channel(asked: ChannelRequest, cx: Context) -> Result<ChannelReply, ToolError> {
    let slack = cx.shared::<Slack>()?;
    let api = match slack.api(&cx) {
        Ok(api) => api,
        Err(delivery) => return Ok(delivery.channel_reply()),
    };
    Ok(match asked.op {
        ChannelOp::Open => slack.open(api).await.channel_reply(),
        ChannelOp::Send => match slack.send(&api, &cx.state()?, &asked).await {
            (Delivery::Delivered(_), sent) if sent < asked.text.len() => ChannelReply::sent(sent),
            (delivery, _) => delivery.channel_reply(),
        },
        ChannelOp::Typing => ChannelReply::refused("over Socket Mode Slack shows nobody as typing"),
        ChannelOp::Fetch => slack.files.piece(&asked, download(&api, &asked.file, asked.max_bytes)).await,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::unreachable_api;
    use crate::inbound::AppUser;

    #[tokio::test]
    async fn who_opens_the_channel_is_told_that_nothing_is_connected() {
        let api = unreachable_api();
        let listener = Arc::new(Listener {
            api: api.clone(),
            own: AppUser { user_id: "U0TALON".to_owned(), user: "talon".to_owned(), team_id: String::new() },
            events: EventSource::new(),
            thread_replies: true,
            names: UserNames::default(),
            edits: Mutex::default(),
            outage: Mutex::default(),
        });
        let task = AbortOnDropHandle::new(tokio::spawn(std::future::pending()));
        let connections = Connections { listener: Arc::clone(&listener), task };
        assert!(connections.is_open(&api));
        assert_eq!(connections.state(), Delivery::Delivered(None));
        *listener.outage.lock() = Some("no hello".to_owned());
        let why = "Slack cannot be listened to, and is asked again: no hello";
        assert_eq!(connections.state(), Delivery::Retry(why.to_owned(), None));
        let other = Api { app_token: "xapp-1-A123ABC456-another".to_owned(), ..api };
        assert!(!connections.is_open(&other), "the token is another one");
    }
}
