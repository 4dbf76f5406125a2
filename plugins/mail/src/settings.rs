//! What an operator writes under `config`.

use serde::Deserialize;

/// The plugin's settings, as they are read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// The mail server: a name or an address.
    pub(crate) host: String,
    /// Its port: 587 for `starttls`, 465 for `implicit`, 25 for `none` unless given.
    pub(crate) port: Option<u16>,
    /// How the connection is encrypted.
    pub(crate) tls: TlsMode,
    /// Whether `tls: none` may be used with a server of another machine: what is sent, the password too, can then be read on
    /// the way. Off by default.
    pub(crate) allow_plaintext: bool,
    /// Who sends: `talon@example.org`, or `Talon <talon@example.org>`.
    pub(crate) from: String,
    /// Who receives: 1 to 20 addresses.
    pub(crate) to: Vec<String>,
    /// What each subject begins with: `[talon]` unless given.
    pub(crate) subject_prefix: Option<String>,
    /// Who logs in, if the server wants that; the password is the credential `password`.
    pub(crate) username: Option<String>,
    /// By which name the plugin greets the server: `localhost` unless given.
    pub(crate) hello: Option<String>,
    /// How long a delivery may take, in seconds: 20 unless given, at most 300.
    pub(crate) timeout_seconds: Option<u64>,
}

/// How a connection is encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TlsMode {
    /// By STARTTLS, without which nothing is sent.
    #[default]
    Starttls,
    /// From the first byte.
    Implicit,
    /// Not at all: for a server of this machine, or with `allow_plaintext`.
    None,
}

impl TlsMode {
    /// The port that such servers have.
    pub(crate) fn port(self) -> u16 {
        match self {
            Self::Starttls => 587,
            Self::Implicit => 465,
            Self::None => 25,
        }
    }
}
