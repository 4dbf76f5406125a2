//! `talon shadow pause` and `resume`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use talon_proto::agent::{PauseShadowRequest, ShadowState};
use talon_sanitize::{Raw, Sanitized, sanitized};

use crate::arguments::timeout;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::single_line;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;
use crate::show::timestamp;

/// Let the shadow loop rest, everywhere or for one repository. Observations are counted meanwhile, and lead to nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon shadow pause
  talon shadow pause --for 2h
  talon shadow pause --repository .")]
pub(crate) struct PauseArgs {
    /// For how long; at most 30d. Until it is resumed unless given.
    #[arg(long = "for", value_name = "DURATION", value_parser = timeout, conflicts_with = "repository")]
    time: Option<Duration>,
    /// Only for this repository, until it is resumed.
    #[arg(long, value_name = "DIRECTORY")]
    repository: Option<PathBuf>,
}

/// Let the shadow loop go on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon shadow resume
  talon shadow resume --repository .")]
pub(crate) struct ResumeArgs {
    /// Only for this repository.
    #[arg(long, value_name = "DIRECTORY")]
    repository: Option<PathBuf>,
}

impl PauseArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let for_ms = self.time.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let repository = absolute(self.repository.as_deref())?;
        change(PauseShadowRequest { paused: true, for_ms, repository }, socket, out).await
    }
}

impl ResumeArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let repository = absolute(self.repository.as_deref())?;
        change(PauseShadowRequest { paused: false, for_ms: 0, repository }, socket, out).await
    }
}

/// The path as watchers name it: absolute, without links. One that is gone stays as it is written.
fn absolute(repository: Option<&Path>) -> Result<String, Failure> {
    let Some(path) = repository else { return Ok(String::new()) };
    let found = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    let found = found.map_err(|error| {
        Failure::new(exit::USAGE, format!("{} is no path: {error}", Raw::of(path.display()).line()))
    })?;
    Ok(found.to_string_lossy().into_owned())
}

async fn change(
    request: PauseShadowRequest,
    socket: &HostSocket<'_>,
    out: &mut Output,
) -> Result<u8, Failure> {
    let reach = AgentConnection::connect(socket).await?;
    let repository = request.repository.clone();
    let state = reach.send_once(async move |mut agent| agent.pause_shadow(request).await).await?;
    if out.is_json() {
        out.json(&json::fields(&state));
    } else {
        out.line(line(&state, &repository));
    }
    Ok(exit::OK)
}

fn line(state: &ShadowState, repository: &str) -> Sanitized {
    if !repository.is_empty() {
        let shown = single_line(repository);
        return match state.muted_repositories.iter().any(|muted| muted == repository) {
            true => sanitized!("{} is muted: `talon shadow resume --repository {}` ends that", shown, shown),
            false => sanitized!("{} is not muted", shown),
        };
    }
    match (state.paused, state.paused_until_unix_ms) {
        (true, Some(until)) => sanitized!("the shadow loop rests until {}", timestamp(until)),
        (true, None) => Sanitized::literal("the shadow loop rests: `talon shadow resume` lets it go on"),
        (false, _) if state.enabled => Sanitized::literal("the shadow loop goes on"),
        (false, _) => Sanitized::literal(
            "the shadow loop does not rest, and is off: `shadow.enabled: true` in the configuration turns it on",
        ),
    }
}
