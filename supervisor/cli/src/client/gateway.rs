//! `talon gateway`: a browser's way in.

use clap::{Args, Subcommand};
use talon_proto::host::OpenGatewayRequest;

use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::line::sanitized_line;
use crate::output::Output;

/// Open the gateway in a browser.
#[derive(Debug, Subcommand)]
pub(crate) enum GatewayVerb {
    Open(OpenArgs),
}

/// Print a link that opens a session of a browser.
///
/// It works once, within a minute. The session has the scopes chat and approve for 12 hours; `talon token revoke` ends it before.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon gateway open
  xdg-open \"$(talon gateway open)\"
  talon gateway open --scope operate")]
pub(crate) struct OpenArgs {
    /// Further scopes, as far as your role and gateway.max_role go; several with commas.
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', value_parser = ["operate", "admin"])]
    scope: Vec<String>,
}

impl GatewayVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let Self::Open(OpenArgs { scope }) = self;
        let mut client = Client::connect(socket).await?;
        let answered = client.host.open_gateway(OpenGatewayRequest { scopes: scope }).await;
        let response = answered.map_err(|status| client.failure(&status))?.into_inner();
        if out.is_json() {
            out.json(&json::fields(&response));
        } else {
            out.line(sanitized_line(&response.url));
            out.err_line("it works once, within a minute");
        }
        Ok(exit::OK)
    }
}
