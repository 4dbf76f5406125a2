//! For tests: a transport that delivers given messages.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

/// Delivers the given messages, each not before its time, and then nothing.
#[derive(Clone)]
pub(crate) struct Scripted {
    begun: Instant,
    pub(crate) says: Arc<Mutex<VecDeque<(Duration, Value)>>>,
    pub(crate) sent: Arc<Mutex<Vec<Value>>>,
}

impl Scripted {
    /// `null` ends the connection.
    pub(crate) fn saying(messages: impl IntoIterator<Item = (Duration, Value)>) -> Self {
        let says = Arc::new(Mutex::new(messages.into_iter().collect()));
        Self { begun: Instant::now(), says, sent: Arc::default() }
    }
}

impl Transport<RoleClient> for Scripted {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.sent.lock().push(serde_json::to_value(&message).expect("JSON"));
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let due = self.says.lock().front().map(|(after, _)| self.begun + *after);
        match due {
            Some(due) => sleep_until(due).await,
            None => std::future::pending().await,
        }
        let (_, message) = self.says.lock().pop_front()?;
        if message.is_null() {
            return None;
        }
        Some(crate::server::stdio::message(message.to_string().as_bytes()).expect("a message"))
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
