//! `talon token`: access to the gateway for programs and channels.

use std::time::Duration;

use clap::{Args, Subcommand};
use talon_proto::host::{CreateTokenRequest, Credential, ListTokensRequest, RevokeTokenRequest};
use talon_sanitize::sanitized;

use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::line::sanitized_line;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::Table;

/// Issue, list and revoke tokens for the gateway.
///
/// A program shows its token with each request: `Authorization: Bearer TOKEN`. All verbs need the role admin.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Issue a token, and print it once.
///
/// Its secret is stored nowhere: who loses it makes another. What a token may do ends at gateway.max_role, whatever its scopes are.
#[derive(Debug, Args)]
#[command(after_help = "Scopes:
  chat     its own sessions
  approve  decide approvals of its own sessions
  channel  speak for the senders of one channel (--channel)
  operate  what the role operate may
  admin    what the role admin may

Examples:
  talon token create --scope chat --name laptop
  talon token create --scope chat,channel --channel telegram
  talon token create --scope chat --session 01JX… --expires 30d
  talon token create --scope chat --output json | jq -r .token")]
pub(crate) struct CreateArgs {
    /// What it may do; several with commas.
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', required = true, value_parser = ["chat", "approve", "channel", "operate", "admin"])]
    scope: Vec<String>,
    /// What you call it.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    name: String,
    /// For whom its requests count, as gw:ISSUER/SUBJECT; its own id unless given.
    #[arg(long, value_name = "SUBJECT", default_value = "", hide_default_value = true)]
    subject: String,
    /// The channel that its requests come from.
    #[arg(long, value_name = "CHANNEL", default_value = "", hide_default_value = true)]
    channel: String,
    /// The only session that it may use.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    session: String,
    /// How long it holds, such as 30d; for ever unless given.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    expires: Option<Duration>,
}

/// List tokens and open sessions of browsers, the oldest first.
#[derive(Debug, Args)]
#[command(visible_alias = "ls")]
pub(crate) struct ListArgs {}

/// Revoke a token, or end a session of a browser.
///
/// It holds no more when this returns.
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The token's id: see `talon token list`.
    id: String,
}

impl TokenVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        match self {
            Self::Create(args) => args.run(&mut client, out).await,
            Self::List(ListArgs {}) => list(&mut client, out).await,
            Self::Revoke(args) => args.run(&mut client, out).await,
        }
    }
}

impl CreateArgs {
    async fn run(self, client: &mut Client, out: &mut Output) -> Result<u8, Failure> {
        let Self { scope, name, subject, channel, session, expires } = self;
        let lifetime_ms =
            expires.map_or(0, |lifetime| u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).max(1));
        let request =
            CreateTokenRequest { name, scopes: scope, subject, channel, session_id: session, lifetime_ms };
        let answered = client.host.create_token(request).await;
        let response = answered.map_err(|status| client.failure(&status))?.into_inner();
        if out.is_json() {
            out.json(&json::fields(&response));
        } else {
            let id = response.credential.map(|credential| credential.id).unwrap_or_default();
            out.line(sanitized_line(&response.token));
            out.err_line(sanitized!(
                "it is not shown again; revoke it with `talon token revoke {}`",
                sanitized_line(&id)
            ));
        }
        Ok(exit::OK)
    }
}

impl RevokeArgs {
    async fn run(self, client: &mut Client, out: &mut Output) -> Result<u8, Failure> {
        let answered = client.host.revoke_token(RevokeTokenRequest { id: self.id.clone() }).await;
        let response = answered.map_err(|status| client.failure(&status))?.into_inner();
        if out.is_json() {
            out.json(&json::fields(&response));
        } else {
            out.line(sanitized!("{} is revoked", sanitized_line(&self.id)));
        }
        Ok(exit::OK)
    }
}

async fn list(client: &mut Client, out: &mut Output) -> Result<u8, Failure> {
    let answered = client.host.list_tokens(ListTokensRequest {}).await;
    let response = answered.map_err(|status| client.failure(&status))?.into_inner();
    if out.is_json() {
        out.json(&json::fields(&response));
        return Ok(exit::OK);
    }
    if response.credentials.is_empty() {
        out.line("no tokens: issue one with `talon token create --scope chat`");
        return Ok(exit::OK);
    }
    let mut table = Table::new(&["ID", "KIND", "NAME", "SUBJECT", "SCOPES", "EXPIRES", "LAST USED"]);
    for credential in &response.credentials {
        let Credential { id, kind, name, subject, scopes, expires_unix_ms, last_used_unix_ms, .. } =
            credential;
        let at =
            |time: u64, never: &str| if time == 0 { never.to_owned() } else { timestamp(time).to_string() };
        table.row(vec![
            id.as_str().into(),
            kind.as_str().into(),
            name.as_str().into(),
            subject.as_str().into(),
            scopes.join(",").into(),
            at(*expires_unix_ms, "never").into(),
            at(*last_used_unix_ms, "never").into(),
        ]);
    }
    out.table(&table);
    Ok(exit::OK)
}
