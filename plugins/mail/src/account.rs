//! The settings, checked.

use std::net::IpAddr;
use std::time::Duration;

use lettre::message::Mailbox;
use lettre::transport::smtp::extension::ClientId;
use talon_sdk::ToolError;
use talon_sink::connection::Endpoint;
use talon_sink::peer_text::one_line;

use crate::settings::{Settings, TlsMode};

/// The most receivers. For more, a mail server has lists.
const MAX_RECEIVERS: usize = 20;
/// The longest prefix of a subject, in characters: it leaves room for the subject.
const MAX_PREFIX_CHARS: usize = 50;
/// What a subject begins with unless configured.
const DEFAULT_PREFIX: &str = "[talon]";
/// How the plugin greets unless configured. Servers that people send through do not look at it.
const DEFAULT_HELLO: &str = "localhost";
/// The longest name of a host, as DNS has it.
const MAX_HOST_BYTES: usize = 253;
/// How long a delivery takes at most unless configured: below the 30 s of an entry, so that the answer of a slow server is a
/// reason and not a deadline.
const DEFAULT_TIMEOUT_SECONDS: u64 = 20;
/// The longest timeout: the longest deadline of an entry.
const MAX_TIMEOUT_SECONDS: u64 = 300;

/// From where, to whom and by which server.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) server: Endpoint,
    pub(crate) tls: TlsMode,
    pub(crate) from: Mailbox,
    pub(crate) to: Vec<Mailbox>,
    pub(crate) subject_prefix: String,
    pub(crate) username: Option<String>,
    pub(crate) hello: ClientId,
    pub(crate) timeout: Duration,
}

impl Account {
    /// Checks settings.
    pub(crate) fn new(settings: &Settings) -> Result<Self, ToolError> {
        let host = host("host", &settings.host)?;
        let port = settings.port.unwrap_or_else(|| settings.tls.port());
        if settings.tls == TlsMode::None && !settings.allow_plaintext && !is_loopback(&host) {
            return Err(wrong(
                "tls: none lets everybody on the way read what is sent; use starttls or implicit, or set allow_plaintext: true",
            ));
        }
        if settings.to.is_empty() || settings.to.len() > MAX_RECEIVERS {
            return Err(wrong(format!("to: name 1 to {MAX_RECEIVERS} addresses")));
        }
        let to = settings.to.iter().map(|address| mailbox("to", address)).collect::<Result<_, _>>()?;
        let prefix = settings.subject_prefix.as_deref().unwrap_or(DEFAULT_PREFIX);
        if prefix.chars().count() > MAX_PREFIX_CHARS || prefix.chars().any(char::is_control) {
            return Err(wrong(format!("subject_prefix: one line of at most {MAX_PREFIX_CHARS} characters")));
        }
        let seconds = settings.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&seconds) {
            return Err(wrong(format!(
                "timeout_seconds is a number from 1 to {MAX_TIMEOUT_SECONDS}, not {seconds}"
            )));
        }
        let hello = self::host("hello", settings.hello.as_deref().unwrap_or(DEFAULT_HELLO))?;
        Ok(Self {
            server: Endpoint { host, port },
            tls: settings.tls,
            from: mailbox("from", &settings.from)?,
            to,
            subject_prefix: prefix.trim().to_owned(),
            username: settings.username.clone(),
            hello: ClientId::Domain(hello),
            timeout: Duration::from_secs(seconds),
        })
    }
}

fn wrong(text: impl std::fmt::Display) -> ToolError {
    ToolError::new(format!("config: {text}"))
}

/// A name of DNS, or an address without brackets.
fn host(key: &str, text: &str) -> Result<String, ToolError> {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    let named = plain && !text.is_empty() && text.len() <= MAX_HOST_BYTES;
    if named || text.parse::<IpAddr>().is_ok() {
        return Ok(text.to_owned());
    }
    Err(wrong(format!("{key}: {:?} is no host; write mail.example.org", one_line(text))))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn mailbox(key: &str, text: &str) -> Result<Mailbox, ToolError> {
    let refused = || {
        let shown = one_line(text);
        wrong(format!("{key}: {shown:?} is no address; write ada@example.org or Ada <ada@example.org>"))
    };
    let mailbox: Mailbox = text.parse().map_err(|_| refused())?;
    let address: &str = mailbox.email.as_ref();
    // A server need not take other addresses; a name beside an address may be anything in one line.
    let plain = address.bytes().all(|byte| byte.is_ascii_graphic());
    if plain && !text.chars().any(char::is_control) { Ok(mailbox) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn account(change: &Value) -> Result<Account, String> {
        let mut settings = json!({"host": "mail.example.org", "from": "Talon <talon@example.org>", "to": ["ada@example.org"]});
        for (key, value) in change.as_object().expect("an object") {
            settings[key] = value.clone();
        }
        let settings: Settings = talon_sdk::serde_json::from_value(settings).expect("settings");
        Account::new(&settings).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn what_is_left_out_has_defaults() {
        let plain = account(&json!({})).expect("good");
        assert_eq!(
            (plain.server.to_string().as_str(), plain.tls),
            ("mail.example.org:587", TlsMode::Starttls)
        );
        assert_eq!((plain.subject_prefix.as_str(), plain.timeout.as_secs()), ("[talon]", 20));
        let implicit = account(&json!({"tls": "implicit"})).expect("good");
        assert_eq!(implicit.server.port, 465);
    }

    // Promises: EXT-80
    #[test]
    fn plain_text_is_for_this_machine_or_on_purpose() {
        for host in ["127.0.0.1", "::1", "localhost"] {
            assert_eq!(account(&json!({"host": host, "tls": "none"})).expect("good").server.port, 25);
        }
        let error = account(&json!({"tls": "none"})).expect_err("refused");
        assert!(error.contains("allow_plaintext"), "{error}");
        account(&json!({"tls": "none", "allow_plaintext": true})).expect("good");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_key() {
        for (change, says) in [
            (json!({"host": ""}), "config: host:"),
            (json!({"host": "mail.example.org:25"}), "config: host:"),
            (json!({"host": "a b"}), "config: host:"),
            (json!({"hello": "x\r\nRSET"}), "config: hello:"),
            (json!({"from": "nobody"}), "config: from:"),
            (json!({"from": "a@b.c\r\nBcc: d@e.f"}), "config: from:"),
            (json!({"to": []}), "config: to:"),
            (json!({"to": vec!["a@example.org"; 21]}), "1 to 20"),
            (json!({"to": ["a@b.c, d@e.f"]}), "config: to:"),
            (json!({"to": ["ä@example.org"]}), "config: to:"),
            (json!({"subject_prefix": "x\ny"}), "config: subject_prefix:"),
            (json!({"timeout_seconds": 0}), "config: timeout_seconds"),
            (json!({"timeout_seconds": 301}), "config: timeout_seconds"),
        ] {
            let error = account(&change).expect_err("refused");
            assert!(error.contains(says), "{change}: {error}");
        }
    }
}
