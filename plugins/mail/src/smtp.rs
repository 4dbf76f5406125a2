//! One message over one connection.

use std::fmt;
use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use talon_sink::connection::{ConnectError, connect};
use talon_sink::peer_text::one_line;
use talon_sink::trust::{TlsError, Trust, handshake_text};

use crate::account::Account;
use crate::settings::TlsMode;
use crate::stream::ByteStream;

/// How long a server may take to say goodbye. Nobody waits for it.
const QUIT_TIMEOUT: Duration = Duration::from_secs(5);

/// What of a dialogue failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Greeting,
    StartTls,
    Login,
    Sender,
    Message,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Greeting => "its greeting",
            Self::StartTls => "STARTTLS",
            Self::Login => "the login",
            Self::Sender => "the sender",
            Self::Message => "the message",
        })
    }
}

/// Why a message was not sent. The texts are one bounded line each.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SmtpError {
    #[error("{0}")]
    Connect(#[from] ConnectError),
    #[error("{0}")]
    Tls(#[from] TlsError),
    #[error("TLS with the server failed: {}", handshake_text(.0))]
    Handshake(lettre::transport::smtp::Error),
    #[error(
        "the server offers no STARTTLS, so nothing is sent to it; if it speaks TLS from the first byte, configure tls: implicit"
    )]
    NoStartTls,
    #[error("{stage}: {}", one_line(&source.to_string()))]
    Dialogue { stage: Stage, source: lettre::transport::smtp::Error },
}

/// What a server said about one receiver.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) receiver: Address,
    pub(crate) reason: String,
    /// Whether it may take it later.
    pub(crate) transient: bool,
}

/// Who got a message, and who did not.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) receivers: Vec<Address>,
    pub(crate) refusals: Vec<Refusal>,
}

/// Sends a message to these receivers. It has no time limit of its own.
pub(crate) async fn send(
    account: &Account,
    password: Option<&str>,
    trust: Option<&Trust>,
    receivers: Vec<Address>,
    message: &[u8],
) -> Result<Sent, SmtpError> {
    let mut connection = open(account, trust).await?;
    let at = |stage| move |source| SmtpError::Dialogue { stage, source };
    if let (Some(username), Some(password)) = (&account.username, password) {
        let credentials = Credentials::new(username.clone(), password.to_owned());
        connection.auth(DEFAULT_MECHANISMS, &credentials).await.map_err(at(Stage::Login))?;
    }
    let sender = Mail::new(Some(account.from.email.clone()), Vec::new());
    connection.command(sender).await.map_err(at(Stage::Sender))?;
    let mut sent = Sent::default();
    for receiver in receivers {
        match connection.command(Rcpt::new(receiver.clone(), Vec::new())).await {
            Ok(_) => sent.receivers.push(receiver),
            Err(error) if error.is_permanent() || error.is_transient() => sent.refusals.push(Refusal {
                receiver,
                reason: one_line(&error.to_string()),
                transient: error.is_transient(),
            }),
            Err(source) => return Err(SmtpError::Dialogue { stage: Stage::Sender, source }),
        }
    }
    if !sent.receivers.is_empty() {
        connection.command(Data).await.map_err(at(Stage::Message))?;
        connection.message(message).await.map_err(at(Stage::Message))?;
    }
    // The message is sent, whatever becomes of the goodbye.
    tokio::spawn(async move { tokio::time::timeout(QUIT_TIMEOUT, connection.quit()).await });
    Ok(sent)
}

/// A connection that is encrypted as configured.
async fn open(account: &Account, trust: Option<&Trust>) -> Result<AsyncSmtpConnection, SmtpError> {
    let host = &account.server.host;
    let mut stream = connect(&account.server).await?;
    if account.tls == TlsMode::Implicit {
        stream = trust.ok_or(TlsError::NoRoots)?.connect(host, stream).await?;
    }
    let greeted = AsyncSmtpConnection::connect_with_transport(Box::new(ByteStream(stream)), &account.hello);
    let mut connection =
        greeted.await.map_err(|source| SmtpError::Dialogue { stage: Stage::Greeting, source })?;
    if account.tls != TlsMode::Starttls {
        return Ok(connection);
    }
    if !connection.can_starttls() {
        connection.abort().await;
        return Err(SmtpError::NoStartTls);
    }
    let parameters = parameters(host, trust.ok_or(TlsError::NoRoots)?)?;
    match connection.starttls(parameters, &account.hello).await {
        Ok(()) => Ok(connection),
        Err(error) if error.is_permanent() || error.is_transient() => {
            Err(SmtpError::Dialogue { stage: Stage::StartTls, source: error })
        }
        Err(error) => Err(SmtpError::Handshake(error)),
    }
}

/// lettre's settings of TLS, with the certificates that this machine trusts.
fn parameters(host: &str, trust: &Trust) -> Result<TlsParameters, SmtpError> {
    let mut builder = TlsParameters::builder(host.to_owned()).certificate_store(CertificateStore::None);
    for certificate in trust.certificates() {
        let certificate = Certificate::from_der(certificate.to_vec()).map_err(SmtpError::Handshake)?;
        builder = builder.add_root_certificate(certificate);
    }
    builder.build_rustls().map_err(SmtpError::Handshake)
}
