//! What a program with many plugins and no supervisor does: it starts them with the handshake's environment,
//! connects to each, asks for its capabilities, and keeps them all running. No jail, no guard, no monitoring.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use talon_proto::plugin::plugin_service_client::PluginServiceClient;
use talon_tests::dial;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::Semaphore;
use tonic::transport::Channel;

use super::bare::BareCaller;
use crate::load::Caller;
use crate::rng::PluginPicker;

/// The handshake's environment variable, which every plugin for this kind of host expects.
const COOKIE: (&str, &str) = ("TALON_PLUGIN_MAGIC_COOKIE", "d3a7c1f0-talon-plugin");

/// A running plugin.
struct PluginProcess {
    calls: BareCaller,
    _child: Child,
    /// Kept open, because otherwise the plugin's next write to its standard output would fail.
    _stdout: BufReader<ChildStdout>,
}

/// All plugins; a call goes to a random one.
#[derive(Clone)]
pub(super) struct SpawnedPlugins {
    held: Arc<Vec<PluginProcess>>,
    whom: PluginPicker,
}

impl SpawnedPlugins {
    /// Starts this many, as many at once as a supervisor does by default, and returns when all are ready.
    pub(super) async fn start(plugin: PathBuf, sockets: PathBuf, count: usize) -> Result<Self> {
        let at_once = std::thread::available_parallelism().map_or(2, |cores| cores.get() * 2);
        let places = Arc::new(Semaphore::new(at_once));
        let starts: Vec<_> = (0..count)
            .map(|_| {
                let (places, sockets, plugin) = (places.clone(), sockets.clone(), plugin.clone());
                tokio::spawn(async move {
                    let _place = places.acquire().await?;
                    start(&plugin, &sockets).await
                })
            })
            .collect();
        let mut held = Vec::with_capacity(count);
        for start in starts {
            held.push(start.await.context("a start panicked")??);
        }
        Ok(Self { whom: PluginPicker::of(held.len()), held: Arc::new(held) })
    }
}

async fn start(plugin: &Path, sockets: &Path) -> Result<PluginProcess> {
    // Without a pre_exec hook, so that the library uses posix_spawn.
    let mut child = Command::new(plugin)
        .env_clear()
        .env(COOKIE.0, COOKIE.1)
        .env("PLUGIN_UNIX_SOCKET_DIR", sockets)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| plugin.display().to_string())?;
    let mut stdout = BufReader::new(child.stdout.take().context("stdout is piped")?);
    let mut line = String::new();
    stdout.read_line(&mut line).await?;
    let fields: Vec<&str> = line.trim_end().split('|').collect();
    ensure!(fields.get(2) == Some(&"unix") && fields.len() > 4, "no handshake: {line:?}");
    let channel: Channel = dial(Path::new(fields[3])).await?;
    let mut client = PluginServiceClient::new(channel);
    client.capabilities(()).await?;
    Ok(PluginProcess { calls: BareCaller::of(client), _child: child, _stdout: stdout })
}

impl Caller for SpawnedPlugins {
    async fn call(&mut self, content_bytes: usize) -> Result<()> {
        let whom = self.whom.next();
        self.held[whom].calls.clone().call(content_bytes).await
    }
}
