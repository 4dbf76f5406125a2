//! LiteLLM's proxy before the same model, as `tests/scripts/deps.sh bench` installs it: a worker for each core, as its documentation
//! advises, a key, and no database.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_tests::http::send_tcp;
use talon_tests::{Scratch, target};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::stock::completions::MODEL;

const KEY: &str = "sk-bench";
/// Only a limit for hangs: its imports alone take half a minute of processor time.
const PATIENCE: Duration = Duration::from_secs(600);

/// Its processes; ended when dropped.
pub(super) struct LiteLlm {
    child: Child,
    pub(super) address: SocketAddr,
    _scratch: Scratch,
}

fn installed() -> PathBuf {
    target().join("litellm/bin/litellm")
}

impl LiteLlm {
    /// `None`: it is not installed.
    pub(super) async fn start(model: SocketAddr) -> Result<Option<Self>> {
        if !installed().exists() {
            return Ok(None);
        }
        let scratch = Scratch::new();
        let config = format!(
            "model_list:\n  - model_name: {MODEL}\n    litellm_params: {{ model: openai/test, api_base: 'http://{model}/v1', api_key: none }}\n\
             general_settings: {{ master_key: {KEY} }}\nlitellm_settings: {{ telemetry: false }}\n"
        );
        let config = scratch.write("litellm.yaml", &config);
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let log = std::fs::File::create(scratch.join("litellm.log"))?;
        let mut command = Command::new(installed());
        command.arg("--config").arg(config).args([
            "--host",
            "127.0.0.1",
            "--port",
            &address.port().to_string(),
        ]);
        // Uvicorn's own supervisor ends workers that are slow to start, so that on a busy machine none ever serves.
        command.args(["--run_gunicorn", "--num_workers", &workers.to_string()]);
        // It would ask the network for prices, and count its users.
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_TELEMETRY", "False");
        command.env("LITELLM_LOG", "ERROR").env("NO_PROXY", "127.0.0.1");
        command.env("HOME", scratch.path()).current_dir(scratch.path());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().context("LiteLLM")?;
        let mut rival = Self { child, address, _scratch: scratch };
        rival.wait_ready().await?;
        Ok(Some(rival))
    }

    pub(super) fn key(&self) -> &str {
        KEY
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// It tells nobody when it serves, so it is asked.
    async fn wait_ready(&mut self) -> Result<()> {
        let begin = Instant::now();
        let request =
            format!("GET /health/liveliness HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address);
        while begin.elapsed() < PATIENCE {
            if TcpStream::connect(self.address).await.is_ok()
                && send_tcp(self.address, &request).await.status == 200
            {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                let log = std::fs::read_to_string(self._scratch.join("litellm.log")).unwrap_or_default();
                bail!("LiteLLM ended ({status}): {log}");
            }
            sleep(Duration::from_millis(100)).await;
        }
        bail!("LiteLLM does not serve after {} s", PATIENCE.as_secs())
    }
}

impl Drop for LiteLlm {
    fn drop(&mut self) {
        let workers = talon_tests::descendants(self.child.id());
        // It is our child; an error cannot be handled here.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for worker in workers.into_iter().filter(|pid| talon_tests::alive(*pid)) {
            let Ok(worker) = i32::try_from(worker) else { continue };
            // One that has ended already is what is wanted.
            let _ = kill(Pid::from_raw(worker), Signal::SIGKILL);
        }
    }
}
