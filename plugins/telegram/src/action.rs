//! The channel's action: opens the channel, and sends texts.

use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use talon_sdk::channel::{ChannelButton, ChannelFeature, ChannelOp, ChannelReply, ChannelRequest};
use talon_sdk::{Context, EventSource, ToolError, tracing};
use talon_sink::channel_start::start_channel;
use talon_sink::delivery::Delivery;
use talon_sink::held_files::HeldFiles;
use talon_sink::message_piece::next_message;
use talon_sink::trust::Trust;
use tokio_util::task::AbortOnDropHandle;

use crate::api::{Api, ApiError, is_token};
use crate::files::download;
use crate::poll::poll;
use crate::settings::Settings;
use crate::update::Bot;

/// The credential with the bot's token. Telegram wants it in the path, so its header says nothing.
const TOKEN: &str = "token";
/// The longest text of a message, in UTF-16 units, as Telegram counts.
const MAX_UNITS: usize = 4096;
/// The most buttons that stand side by side.
const BUTTONS_OF_A_ROW: usize = 2;

/// What all calls share.
pub(crate) struct Telegram {
    base: String,
    allow_http: bool,
    poll: Duration,
    trust: Option<Trust>,
    events: EventSource,
    /// The token with which it listens, and what listens.
    listener: Mutex<Option<(String, AbortOnDropHandle<()>)>>,
    files: HeldFiles,
}

impl Telegram {
    pub(crate) fn new(settings: Settings, events: EventSource) -> Result<Self, ToolError> {
        let (base, poll) = (settings.api(), settings.poll()?);
        let trust = start_channel(&base, settings.allow_http, &events)?;
        Ok(Self {
            base,
            allow_http: settings.allow_http,
            poll,
            trust,
            events,
            listener: Mutex::default(),
            files: HeldFiles::default(),
        })
    }

    fn api(&self, cx: &Context) -> Result<Api, Delivery> {
        let token = cx.credential(TOKEN).map(|token| token.value.to_owned());
        let Some(token) = token else {
            return Err(Delivery::retry(
                "there is no token: configure the credential `token` of this plugin",
            ));
        };
        if !is_token(&token) {
            return Err(Delivery::retry(
                "credential token: this is no token of a bot; @BotFather gives one, as 123456:ABC…",
            ));
        }
        Ok(Api { base: self.base.clone(), allow_http: self.allow_http, trust: self.trust.clone(), token })
    }

    /// Listens, if it does not yet.
    async fn open(&self, api: Api, cx: &Context) -> Result<Delivery, ToolError> {
        let is_open = |listener: &Option<(String, AbortOnDropHandle<()>)>| {
            listener.as_ref().is_some_and(|(token, task)| *token == api.token && !task.is_finished())
        };
        if is_open(&self.listener.lock()) {
            return Ok(Delivery::Delivered(None));
        }
        let bot: Bot = match api.call("getMe", &json!({}), Duration::ZERO).await {
            Ok(bot) => bot,
            Err(error) => return Ok(Delivery::retry(error.to_string())),
        };
        tracing::info!("listens as @{} ({})", bot.username, bot.id);
        let (state, events) = (cx.state()?, self.events.clone());
        let mut listener = self.listener.lock();
        // Another call may have been faster.
        if !is_open(&listener) {
            let task = tokio::spawn(poll(api.clone(), bot, events, state, self.poll));
            *listener = Some((api.token, AbortOnDropHandle::new(task)));
        }
        Ok(Delivery::Delivered(None))
    }

    /// Sends one message, and says how many bytes of the text are done with it.
    async fn send(&self, api: &Api, asked: &ChannelRequest) -> (Delivery, usize) {
        let Some((chat, topic)) = address(&asked.conversation) else {
            return (Delivery::refused("the conversation is none of Telegram's"), 0);
        };
        let (text, end) = next_message(&asked.text, MAX_UNITS, char::len_utf16);
        // Telegram takes no empty message, and an attempt that can only fail would hold up the rest.
        if text.trim().is_empty() {
            return (Delivery::Delivered(None), end);
        }
        let buttons = if end == asked.text.len() { &asked.buttons[..] } else { &[] };
        let mut sent =
            api.call::<Value>("sendMessage", &message(chat, topic, text, buttons), Duration::ZERO).await;
        if let Err(ApiError::Moved(chat)) = sent {
            tracing::warn!("a group has the id {chat} now: name it in `groups` of the channel");
            sent = api.call("sendMessage", &message(chat, topic, text, buttons), Duration::ZERO).await;
        }
        (delivery(sent), end)
    }

    /// Shows that an answer is being written, for 5 s.
    async fn show_typing(&self, api: &Api, asked: &ChannelRequest) -> Delivery {
        let Some((chat, topic)) = address(&asked.conversation) else {
            return Delivery::refused("the conversation is none of Telegram's");
        };
        let mut arguments = json!({"chat_id": chat, "action": "typing"});
        if let Some(topic) = topic {
            arguments["message_thread_id"] = json!(topic);
        }
        delivery(api.call("sendChatAction", &arguments, Duration::ZERO).await)
    }
}

/// What became of a request.
fn delivery(answered: Result<Value, ApiError>) -> Delivery {
    match answered {
        Ok(_) => Delivery::Delivered(None),
        Err(ApiError::Later { reason, after }) => Delivery::Retry(reason, after),
        Err(error @ (ApiError::Token(_) | ApiError::Conflict(_))) => Delivery::retry(error.to_string()),
        Err(error @ (ApiError::Refused(_) | ApiError::Moved(_))) => Delivery::refused(error.to_string()),
    }
}

/// A chat, and a topic in it.
fn address(conversation: &str) -> Option<(i64, Option<i64>)> {
    match conversation.split_once('/') {
        None => Some((conversation.parse().ok()?, None)),
        Some((chat, topic)) => Some((chat.parse().ok()?, Some(topic.parse().ok()?))),
    }
}

/// The arguments of `sendMessage`. The text is sent as it is: nothing in it is markup.
fn message(chat: i64, topic: Option<i64>, text: &str, buttons: &[ChannelButton]) -> Value {
    // Nobody asked for previews of links that a model wrote.
    let mut message = json!({"chat_id": chat, "text": text, "link_preview_options": {"is_disabled": true}});
    if let Some(topic) = topic {
        message["message_thread_id"] = json!(topic);
    }
    if !buttons.is_empty() {
        let button = |button: &ChannelButton| json!({"text": button.label, "callback_data": button.id});
        let rows: Vec<Vec<Value>> =
            buttons.chunks(BUTTONS_OF_A_ROW).map(|row| row.iter().map(button).collect()).collect();
        message["reply_markup"] = json!({"inline_keyboard": rows});
    }
    message
}

/// Opens the channel, sends a text to a chat, shows that one is written, or gives a file.
#[talon_sdk::channel]
pub(crate) async fn channel(asked: ChannelRequest, cx: Context) -> Result<ChannelReply, ToolError> {
    let telegram = cx.shared::<Telegram>()?;
    let api = match telegram.api(&cx) {
        Ok(api) => api,
        Err(delivery) => return Ok(delivery.channel_reply()),
    };
    Ok(match asked.op {
        ChannelOp::Open => {
            telegram.open(api, &cx).await?.channel_reply().supporting([ChannelFeature::Typing])
        }
        ChannelOp::Send => match telegram.send(&api, &asked).await {
            (Delivery::Delivered(_), sent) if sent < asked.text.len() => ChannelReply::sent(sent),
            (delivery, _) => delivery.channel_reply(),
        },
        ChannelOp::Typing => telegram.show_typing(&api, &asked).await.channel_reply(),
        ChannelOp::Fetch => telegram.files.piece(&asked, download(&api, &asked.file, asked.max_bytes)).await,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_place_and_its_buttons() {
        assert_eq!(address("-1001/3"), Some((-1001, Some(3))));
        assert_eq!(address("42"), Some((42, None)));
        assert_eq!((address("x"), address("4/x"), address("")), (None, None, None));
        let button = |id: &str| ChannelButton { id: id.to_owned(), label: id.to_uppercase() };
        let sent = message(-1001, Some(3), "<b>hi</b>", &[button("a"), button("b"), button("c")]);
        assert_eq!((&sent["message_thread_id"], &sent["text"]), (&json!(3), &json!("<b>hi</b>")));
        assert_eq!(sent.get("parse_mode"), None);
        let rows = sent["reply_markup"]["inline_keyboard"].as_array().expect("rows");
        assert_eq!((rows.len(), &rows[0][1]), (2, &json!({"text": "B", "callback_data": "b"})));
        assert_eq!(message(42, None, "hi", &[]).get("reply_markup"), None);
    }
}
