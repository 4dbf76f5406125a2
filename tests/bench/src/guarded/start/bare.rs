//! Plugins started without Talon and asked for their capabilities by unmodified tonic.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use talon_proto::plugin::plugin_service_client::PluginServiceClient;
use talon_tests::{Scratch, dial, program};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::guarded::bubblewrap;

/// How they are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launcher {
    /// Directly: `posix_spawn`.
    Alone,
    /// Bubblewrap, with all the namespaces that it knows.
    Bubblewrap,
}

impl Launcher {
    /// Those that are installed.
    pub(super) fn on_this_machine() -> &'static [Self] {
        if bubblewrap::is_installed() { &[Self::Alone, Self::Bubblewrap] } else { &[Self::Alone] }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Alone => "no jail",
            Self::Bubblewrap => "bwrap",
        }
    }

    fn command(self, sockets: &Path) -> Command {
        let plugin = program("talon-bench-plugin");
        match self {
            Self::Alone => Command::new(plugin),
            Self::Bubblewrap => bubblewrap::wrap(&plugin, Some(sockets)).into(),
        }
    }
}

/// The time until all of them, started at once, have returned their capabilities. They are ended afterwards.
pub(super) async fn start(way: Launcher, scratch: &Scratch, at_once: usize) -> Result<Duration> {
    let sockets: Vec<_> = (0..at_once).map(|number| scratch.join(&format!("bare-{number}"))).collect();
    for sockets in &sockets {
        std::fs::create_dir(sockets)?;
    }
    let begin = Instant::now();
    let starting: Vec<_> = sockets
        .iter()
        .map(|sockets| {
            let command = way.command(sockets);
            let sockets = sockets.clone();
            tokio::spawn(async move { ready(command, &sockets).await })
        })
        .collect();
    let mut started = Vec::with_capacity(at_once);
    for plugin in starting {
        started.push(plugin.await.context("starting panicked")?.context(way.name())?);
    }
    let took = begin.elapsed();
    for mut plugin in started {
        plugin.kill().await?;
    }
    for sockets in &sockets {
        std::fs::remove_dir_all(sockets)?;
    }
    Ok(took)
}

async fn ready(mut command: Command, sockets: &Path) -> Result<Child> {
    let mut child = command
        .env("TALON_PLUGIN_MAGIC_COOKIE", "d3a7c1f0-talon-plugin")
        .env("PLUGIN_PROTOCOL_VERSIONS", "1")
        .env("PLUGIN_UNIX_SOCKET_DIR", sockets)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await?;
    let socket = line.split('|').nth(3).with_context(|| format!("no handshake: {line:?}"))?;
    let mut client = PluginServiceClient::new(dial(Path::new(socket)).await?);
    let capabilities = client.capabilities(()).await?.into_inner();
    ensure!(!capabilities.actions.is_empty(), "it offers nothing");
    Ok(child)
}
