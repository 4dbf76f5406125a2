//! The instant model, and a supervisor with agent and gateway before it.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use talon_tests::{Builder, Supervisor, program};

use crate::stock::completions::MODEL;

/// In their default settings, but for the limits that would end a measurement: rates of one client, and what one client may have.
const LIMITS: &str = "agent:
  enabled: true
  limits: { turns_per_sender: 4096, requests_per_user: 4096 }
  sessions: { per_sender: 1000000 }
gateway:
  enabled: true
  address: '127.0.0.1:0'
  max_role: operate
  limits: { requests_per_minute: 1000000000, requests_per_minute_per_address: 1000000000, connections_per_address: 4096 }
";

/// The model's process; killed when dropped.
pub(in crate::suites) struct Model {
    child: Child,
    pub(in crate::suites) address: SocketAddr,
}

impl Model {
    pub(in crate::suites) fn start() -> Result<Self> {
        let mut command = Command::new(program("talon-bench-stock"));
        let mut child = command.arg("model").stdout(Stdio::piped()).spawn().context("the model")?;
        let mut line = String::new();
        let told = child.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
        told.context("stdout is piped")??;
        // A JSON text.
        let address =
            serde_json::from_str::<String>(&line).with_context(|| format!("the model: {line:?}"))?;
        Ok(Self { child, address: address.parse()? })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // It is our child and reaped below; an error cannot be handled here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The model, and what stands before it.
pub(in crate::suites) struct System {
    pub(in crate::suites) model: Arc<Model>,
    pub(in crate::suites) supervisor: Arc<Supervisor>,
    pub(in crate::suites) gateway: SocketAddr,
    pub(super) token: String,
}

impl System {
    pub(in crate::suites) async fn start() -> Result<Self> {
        let model = Arc::new(Model::start()?);
        let config = format!(
            "{LIMITS}models:\n  providers:\n    local: {{ kind: openai, base_url: \"http://{}/v1\" }}\n  catalog:\n    \
             {MODEL}: {{ tier: mid, context_window: 2000000, tools: true, free: true }}\n",
            model.address
        );
        let supervisor = Builder::new().config(&config).start().await;
        let status = supervisor.wait_gateway("the gateway serves", |status| status.state == "serving").await;
        let gateway = status.url.trim_start_matches("http://").parse()?;
        let made = supervisor.cli(&["token", "create", "--scope", "chat", "--output", "json"]).await;
        ensure!(made.status.success(), "no token: {}", String::from_utf8_lossy(&made.stderr));
        let made: Value = serde_json::from_slice(&made.stdout)?;
        let token = made["token"].as_str().context("a token")?.to_owned();
        Ok(Self { model, supervisor: Arc::new(supervisor), gateway, token })
    }

    /// The process of the gateway.
    pub(super) async fn gateway_pid(&self) -> u32 {
        self.supervisor.gateway_status().await.pid
    }
}
