//! A running `talon mcp --http`.

use std::process::Stdio;

use talon_harness::{Supervisor, program};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// `talon mcp --http` on a free port, with a token file of its own. It ends when this is dropped.
#[derive(Debug)]
pub struct McpOverHttp {
    _child: Child,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    /// What a client has to show.
    pub token: String,
}

impl McpOverHttp {
    /// Starts it, and waits until it listens. The token is in the file `token` beside the supervisor's configuration.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(supervisor: &Supervisor) -> Self {
        let file = supervisor.config().with_file_name("token");
        let mut child = Command::new(program("talon"))
            .arg("--socket")
            .arg(supervisor.socket())
            .args(["mcp", "--http", "127.0.0.1:0", "--token-file"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("talon starts");
        let mut log = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let port = loop {
            let line = log.next_line().await.expect("text").expect("it says where it serves");
            if let Some((_, rest)) = line.split_once("http://127.0.0.1:") {
                break rest.trim_end_matches("/mcp").parse().expect("a port");
            }
        };
        // Read on, so that it is not blocked.
        tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
        let token = std::fs::read_to_string(file).expect("it was made").trim().to_owned();
        Self { _child: child, port, token }
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}
