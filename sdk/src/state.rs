//! The plugin's own key-values, kept by the host: `talon.state.v1` on a socket that belongs to this plugin alone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use talon_proto::state::state_client::StateClient;
use talon_proto::state::{CompareAndSetRequest, DeleteRequest, GetRequest, KeysRequest, SetRequest};
use tonic::transport::{Channel, Endpoint};

/// Where the host says the socket is.
pub(crate) const SOCKET_ENV: &str = "TALON_STATE_SOCKET";
/// How long one operation may take. The socket is on this machine and the values are small: what takes longer is
/// stuck, and an error helps more than waiting.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How many keys [`State::keys`] gathers before it gives up, so that a listing cannot fill the memory.
const MAX_KEYS: usize = 100_000;

/// Why an operation on the state failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The host gives this plugin no state.
    #[error("this host serves no state: {SOCKET_ENV} is not set")]
    NotServed,
    /// The host refused, or could not be reached.
    #[error("the host's state answered {code:?}: {message}")]
    Refused {
        /// The gRPC status.
        code: tonic::Code,
        /// What the host said.
        message: String,
    },
    /// A value could not be read from or written as JSON.
    #[error("the value of `{key}` does not fit its type")]
    NotThatType {
        /// Which key.
        key: String,
        /// What did not fit.
        source: serde_json::Error,
    },
    /// A listing had no end in sight.
    #[error("more than {MAX_KEYS} keys start with `{prefix}`: ask for a longer prefix")]
    TooManyKeys {
        /// The prefix asked for.
        prefix: String,
    },
}

impl From<tonic::Status> for StateError {
    fn from(status: tonic::Status) -> Self {
        Self::Refused { code: status.code(), message: status.message().to_owned() }
    }
}

/// What [`State::compare_and_set`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// The value was as expected and is now the new one.
    Done,
    /// Somebody else was faster: this is what stands there, `None` if nothing.
    Lost(Option<Vec<u8>>),
}

/// The plugin's own key-values. They outlive the process; no other plugin sees them.
///
/// ```no_run
/// # async fn tool(cx: talon_sdk::Context) -> Result<(), talon_sdk::ToolError> {
/// let state = cx.state()?;
/// let visits: u64 = state.get_json("visits").await?.unwrap_or(0);
/// state.set_json("visits", &(visits + 1)).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct State(Backend);

#[derive(Debug, Clone)]
enum Backend {
    Host(StateClient<Channel>),
    Memory(Arc<Memory>),
}

impl State {
    /// The value of a key, `None` if there is none.
    ///
    /// # Errors
    /// [`StateError::Refused`].
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StateError> {
        match &self.0 {
            Backend::Host(client) => {
                Ok(client.clone().get(GetRequest { key: key.to_owned() }).await?.into_inner().value)
            }
            Backend::Memory(memory) => Ok(memory.with(|map| map.get(key).cloned())),
        }
    }

    /// Gives a key a value.
    ///
    /// # Errors
    /// [`StateError::Refused`], also when the host's limits on size or number are reached.
    pub async fn set(&self, key: &str, value: impl Into<Vec<u8>>) -> Result<(), StateError> {
        let (key, value) = (key.to_owned(), value.into());
        match &self.0 {
            Backend::Host(client) => {
                client.clone().set(SetRequest { key, value }).await?;
            }
            Backend::Memory(memory) => {
                memory.with(|map| map.insert(key, value));
            }
        }
        Ok(())
    }

    /// Removes a key; says whether it was there.
    ///
    /// # Errors
    /// [`StateError::Refused`].
    pub async fn delete(&self, key: &str) -> Result<bool, StateError> {
        match &self.0 {
            Backend::Host(client) => {
                Ok(client.clone().delete(DeleteRequest { key: key.to_owned() }).await?.into_inner().existed)
            }
            Backend::Memory(memory) => Ok(memory.with(|map| map.remove(key).is_some())),
        }
    }

    /// All keys that start with `prefix`, in order.
    ///
    /// # Errors
    /// [`StateError::Refused`]; [`StateError::TooManyKeys`] above 100,000.
    pub async fn keys(&self, prefix: &str) -> Result<Vec<String>, StateError> {
        let client = match &self.0 {
            Backend::Host(client) => client,
            Backend::Memory(memory) => return Ok(memory.with(|map| memory_keys(map, prefix))),
        };
        let mut keys = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = KeysRequest { prefix: prefix.to_owned(), page_token, page_size: 0 };
            let page = client.clone().keys(request).await?.into_inner();
            // A page that brings nothing but promises more would loop for ever.
            let stuck = page.keys.is_empty();
            keys.extend(page.keys);
            if keys.len() > MAX_KEYS {
                return Err(StateError::TooManyKeys { prefix: prefix.to_owned() });
            }
            if page.next_page_token.is_empty() || stuck {
                return Ok(keys);
            }
            page_token = page.next_page_token;
        }
    }

    /// Changes a key only if it still has the expected value; `None` stands for "no such key", on both sides.
    ///
    /// # Errors
    /// [`StateError::Refused`].
    pub async fn compare_and_set(
        &self,
        key: &str,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Result<Swap, StateError> {
        let client = match &self.0 {
            Backend::Host(client) => client,
            Backend::Memory(memory) => return Ok(memory.compare_and_set(key, expected.as_ref(), value)),
        };
        let request = CompareAndSetRequest { key: key.to_owned(), expected, value };
        let answer = client.clone().compare_and_set(request).await?.into_inner();
        Ok(if answer.swapped { Swap::Done } else { Swap::Lost(answer.current) })
    }

    /// The value of a key, read as JSON.
    ///
    /// # Errors
    /// [`StateError::NotThatType`] when what stands there is not a `T`; [`StateError::Refused`].
    pub async fn get_json<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StateError> {
        let Some(value) = self.get(key).await? else { return Ok(None) };
        serde_json::from_slice(&value)
            .map(Some)
            .map_err(|source| StateError::NotThatType { key: key.to_owned(), source })
    }

    /// Gives a key a value, written as JSON.
    ///
    /// # Errors
    /// [`StateError::NotThatType`] when the value cannot be JSON; [`StateError::Refused`].
    pub async fn set_json<T: Serialize>(&self, key: &str, value: &T) -> Result<(), StateError> {
        let value = serde_json::to_vec(value)
            .map_err(|source| StateError::NotThatType { key: key.to_owned(), source })?;
        self.set(key, value).await
    }
}

/// Where contexts get their state from.
#[derive(Debug, Clone)]
pub(crate) enum StateSource {
    /// The host's socket, connected at the first use and again when the connection is lost.
    Socket {
        path: Option<PathBuf>,
        client: Arc<OnceLock<State>>,
    },
    Memory(Arc<Memory>),
}

impl StateSource {
    pub(crate) fn from_env(path: Option<PathBuf>) -> Self {
        Self::Socket { path, client: Arc::default() }
    }

    pub(crate) fn open(&self) -> Result<State, StateError> {
        match self {
            Self::Memory(memory) => Ok(State(Backend::Memory(Arc::clone(memory)))),
            Self::Socket { path: None, .. } => Err(StateError::NotServed),
            Self::Socket { path: Some(path), client } => {
                Ok(client.get_or_init(|| connect(path.clone())).clone())
            }
        }
    }
}

fn connect(path: PathBuf) -> State {
    // The URI only fills the :authority header; the connector decides where to go.
    let endpoint = Endpoint::from_static("http://localhost").timeout(TIMEOUT).connect_timeout(TIMEOUT);
    let channel = endpoint.connect_with_connector_lazy(tower::service_fn(move |_| {
        let path = path.clone();
        async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
    }));
    State(Backend::Host(StateClient::new(channel)))
}

/// State in memory, for tests.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Memory {
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn compare_and_set(
        &self,
        key: &str,
        expected: Option<&Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Swap {
        self.with(|map| {
            if map.get(key) != expected {
                return Swap::Lost(map.get(key).cloned());
            }
            match value {
                Some(value) => map.insert(key.to_owned(), value),
                None => map.remove(key),
            };
            Swap::Done
        })
    }
}

pub(crate) fn memory_keys(map: &BTreeMap<String, Vec<u8>>, prefix: &str) -> Vec<String> {
    map.range(prefix.to_owned()..)
        .map(|(key, _)| key)
        .take_while(|key| key.starts_with(prefix))
        .cloned()
        .collect()
}
