//! `store`: the action.

use talon_sdk::{Context, StorageCommand, StorageReply, StorageRequest, ToolError, tracing};
use talon_sink::peer_text::{one_line, without_secrets};
use talon_sink::trust::Trust;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::loading::{Loading, is_loading};
use crate::operations::{self, OperationError};
use crate::pool::Pool;
use crate::settings::{Server, Settings};

/// The credential with the password.
const PASSWORD: &str = "password";

/// What all calls share.
pub(crate) struct Valkey {
    server: Server,
    /// `None` where this machine trusts nothing.
    trust: Option<Trust>,
    pool: Pool,
}

impl Valkey {
    pub(crate) fn new(settings: Settings) -> Result<Self, ToolError> {
        let server = Server::new(settings)?;
        let trust = if server.tls {
            Some(Trust::load().map_err(|error| ToolError::new(error.to_string()))?)
        } else {
            None
        };
        if server.durability == crate::settings::Durability::Relaxed {
            tracing::warn!(
                "durability: relaxed: what {} acknowledged may be lost with a crash of the server",
                server.address
            );
        }
        Ok(Self { server, trust, pool: Pool::default() })
    }

    async fn run(&self, command: StorageCommand, password: Option<&str>) -> Result<StorageReply, ToolError> {
        let hidden = |text: String| without_secrets(&one_line(&text), password.as_slice());
        let opened =
            timeout(self.server.timeout, self.pool.take(&self.server, password, self.trust.as_ref()));
        let mut connection = match opened.await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Ok(StorageReply::unavailable(hidden(error.to_string()))),
            Err(_) => return Ok(StorageReply::unavailable(self.late("accept a connection"))),
        };
        let writes = matches!(command, StorageCommand::Set { .. } | StorageCommand::Delete { .. });
        match timeout(self.server.timeout, self.operate(&mut connection, command)).await {
            Ok(Ok(reply)) => {
                self.pool.put(connection, password);
                Ok(reply)
            }
            Ok(Err(OperationError::NotDone(error))) if is_loading(&error) => {
                self.pool.clear();
                Ok(StorageReply::unavailable(Loading.to_string()))
            }
            Ok(Err(OperationError::NotDone(error))) => {
                self.pool.clear();
                let full =
                    error.code() == Some("OOM") || error.to_string().contains("OOM command not allowed");
                let text = hidden(error.to_string());
                Ok(if full && writes { StorageReply::full(text) } else { StorageReply::unavailable(text) })
            }
            // Whether it was done is open, which an error says.
            Ok(Err(OperationError::Unknown(error))) => {
                self.pool.clear();
                Err(ToolError::new(format!(
                    "the transaction's answer did not come: {}",
                    hidden(error.to_string())
                )))
            }
            Err(_) => {
                self.pool.clear();
                Err(ToolError::new(self.late("answer")))
            }
        }
    }

    fn late(&self, what: &str) -> String {
        format!("{} did not {what} within {} ms", self.server.address, self.server.timeout.as_millis())
    }

    async fn operate(
        &self,
        connection: &mut Connection,
        command: StorageCommand,
    ) -> Result<StorageReply, OperationError> {
        let (redis, prefix) = (&mut connection.redis, self.server.prefix.as_str());
        match command {
            StorageCommand::Get { key } => operations::get(redis, prefix, &key).await,
            StorageCommand::Set { key, value, expected } => {
                operations::set(redis, prefix, &key, &value, expected.as_deref()).await
            }
            StorageCommand::Delete { key, expected } => {
                operations::delete(redis, prefix, &key, &expected).await
            }
            StorageCommand::Scan { prefix: begins, after, limit } => {
                operations::scan(redis, prefix, &begins, &after, limit).await
            }
        }
    }
}

/// Keeps the state of plugins.
#[talon_sdk::storage_backend]
pub(crate) async fn store(asked: StorageRequest, cx: Context) -> Result<StorageReply, ToolError> {
    let valkey = cx.shared::<Valkey>()?;
    let password = cx.credential(PASSWORD);
    valkey.run(asked.command()?, password.as_ref().map(|password| password.value)).await
}
