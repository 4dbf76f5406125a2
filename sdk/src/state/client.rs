//! The handle of a tool on the state, over the host's socket or in memory.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use talon_proto::state::state_client::StateClient;
use talon_proto::state::{CompareAndSetRequest, DeleteRequest, GetRequest, KeysRequest, SetRequest};
use talon_wire::Connector;
use tonic::transport::{Channel, Endpoint};

use super::error::StateError;
use super::memory::Memory;
use super::{MAX_KEYS, MAX_UPDATES, SOCKET_ENV, Swap};

/// How long one operation may take. The socket is local and the values are small: an operation that takes
/// longer is stuck, and an error helps more than waiting.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The plugin's key-value state. It outlives the process, and an acknowledged write is on the disk. No other
/// plugin sees it, and all instances of this one share it.
///
/// Keys have 1 to 512 bytes, values at most 1 MiB, and the operator limits the total size. The next operation
/// reconnects after a lost connection.
///
/// ```no_run
/// # async fn tool(cx: talon_sdk::Context) -> Result<(), talon_sdk::ToolError> {
/// let state = cx.state()?;
/// let visits = state.update_json("visits", |visits: &mut u64| { *visits += 1; *visits }).await?;
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
    /// The state of this plugin outside of a call, such as in [`Plugin::init`](crate::Plugin::init). Connects
    /// on first use.
    ///
    /// # Errors
    /// [`StateError::NotServed`] on a host that serves none.
    pub fn from_env() -> Result<Self, StateError> {
        let path = std::env::var_os(SOCKET_ENV).filter(|path| !path.is_empty()).map(PathBuf::from);
        StateSource::from_env(path).open()
    }

    /// The value of a key, `None` if there is none.
    ///
    /// # Errors
    /// [`StateError::Invalid`] for a key that is empty or too long, [`StateError::Unavailable`],
    /// [`StateError::Refused`].
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StateError> {
        match &self.0 {
            Backend::Host(client) => {
                Ok(client.clone().get(GetRequest { key: key.to_owned() }).await?.into_inner().value)
            }
            Backend::Memory(memory) => memory.get(key),
        }
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// [`StateError::QuotaExceeded`], [`StateError::Invalid`] for a key that is empty or too long or a value
    /// that is too large, [`StateError::Unavailable`], [`StateError::Refused`].
    pub async fn set(&self, key: &str, value: impl Into<Vec<u8>>) -> Result<(), StateError> {
        let value = value.into();
        match &self.0 {
            Backend::Host(client) => {
                client.clone().set(SetRequest { key: key.to_owned(), value }).await?;
                Ok(())
            }
            Backend::Memory(memory) => memory.set(key, value),
        }
    }

    /// Removes a key; returns whether it existed.
    ///
    /// # Errors
    /// As [`State::get`].
    pub async fn delete(&self, key: &str) -> Result<bool, StateError> {
        match &self.0 {
            Backend::Host(client) => {
                Ok(client.clone().delete(DeleteRequest { key: key.to_owned() }).await?.into_inner().existed)
            }
            Backend::Memory(memory) => memory.delete(key),
        }
    }

    /// All keys that start with `prefix`, in order.
    ///
    /// # Errors
    /// [`StateError::TooManyKeys`] above 100,000, [`StateError::Unavailable`], [`StateError::Refused`].
    pub async fn keys(&self, prefix: &str) -> Result<Vec<String>, StateError> {
        let client = match &self.0 {
            Backend::Host(client) => client,
            Backend::Memory(memory) => return memory.keys(prefix),
        };
        let mut keys = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = KeysRequest { prefix: prefix.to_owned(), page_token, page_size: 0 };
            let page = client.clone().keys(request).await?.into_inner();
            // A page without keys that announces another page would loop for ever.
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

    /// Changes a key only if it still has the expected value; `None` means "no such key", in both arguments.
    ///
    /// # Errors
    /// [`StateError::QuotaExceeded`], [`StateError::Invalid`] for a key that is empty or too long or a value
    /// that is too large, [`StateError::Unavailable`], [`StateError::Refused`].
    pub async fn compare_and_set(
        &self,
        key: &str,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Result<Swap, StateError> {
        let client = match &self.0 {
            Backend::Host(client) => client,
            Backend::Memory(memory) => return memory.compare_and_set(key, expected.as_ref(), value),
        };
        let request = CompareAndSetRequest { key: key.to_owned(), expected, value };
        let answer = client.clone().compare_and_set(request).await?.into_inner();
        Ok(if answer.swapped { Swap::Done } else { Swap::Lost(answer.current) })
    }

    /// The value of a key, read as JSON.
    ///
    /// # Errors
    /// [`StateError::TypeMismatch`] when the stored value is not a `T`; otherwise as [`State::get`].
    pub async fn get_json<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StateError> {
        let Some(value) = self.get(key).await? else { return Ok(None) };
        serde_json::from_slice(&value)
            .map(Some)
            .map_err(|source| StateError::TypeMismatch { key: key.to_owned(), source })
    }

    /// Sets the value of a key, written as JSON.
    ///
    /// # Errors
    /// [`StateError::TypeMismatch`] when the value cannot be JSON; otherwise as [`State::set`].
    pub async fn set_json<T: Serialize>(&self, key: &str, value: &T) -> Result<(), StateError> {
        let value = serde_json::to_vec(value)
            .map_err(|source| StateError::TypeMismatch { key: key.to_owned(), source })?;
        self.set(key, value).await
    }

    /// Changes a key's value, read and written as JSON, without losing concurrent changes: when another
    /// writer was faster, `change` is called again with the value they wrote. A missing key counts as
    /// `T::default()`. Returns what `change` returned. If `change` leaves the value as it is, nothing is
    /// written, so it can refuse by returning an `Err`.
    ///
    /// ```no_run
    /// # use std::collections::BTreeSet;
    /// # use talon_sdk::{Context, ToolError};
    /// # async fn tool(cx: Context) -> Result<(), ToolError> {
    /// cx.state()?
    ///     .update_json("guests", |guests: &mut BTreeSet<String>| {
    ///         if guests.len() == 12 {
    ///             return Err(ToolError::new("the table is full"));
    ///         }
    ///         guests.insert("Ada".to_owned());
    ///         Ok(())
    ///     })
    ///     .await?
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StateError::Contended`] when other writers were faster 64 times in a row; otherwise as
    /// [`State::compare_and_set`] and [`State::get_json`].
    pub async fn update_json<T, R>(
        &self,
        key: &str,
        mut change: impl FnMut(&mut T) -> R,
    ) -> Result<R, StateError>
    where
        T: Serialize + DeserializeOwned + Default,
    {
        let unfit = |source| StateError::TypeMismatch { key: key.to_owned(), source };
        let mut stands = self.get(key).await?;
        for _ in 0..MAX_UPDATES {
            let mut value: T = match &stands {
                Some(bytes) => serde_json::from_slice(bytes).map_err(unfit)?,
                None => T::default(),
            };
            // Compared as this type serializes it: another writer may have formatted the JSON differently.
            let before = serde_json::to_vec(&value).map_err(unfit)?;
            let given = change(&mut value);
            let after = serde_json::to_vec(&value).map_err(unfit)?;
            if before == after {
                return Ok(given);
            }
            match self.compare_and_set(key, stands, Some(after)).await? {
                Swap::Done => return Ok(given),
                Swap::Lost(current) => stands = current,
            }
        }
        Err(StateError::Contended { key: key.to_owned() })
    }
}

/// Where contexts get their state from.
#[derive(Debug, Clone)]
pub(crate) enum StateSource {
    /// The host's socket, connected on first use and again when the connection is lost.
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
    // The URI only fills the :authority header; the connector decides where to connect.
    let endpoint = Endpoint::from_static("http://localhost").timeout(TIMEOUT).connect_timeout(TIMEOUT);
    let channel =
        Connector::new(move || tokio::net::UnixStream::connect(path.clone())).connect_lazy(&endpoint);
    State(Backend::Host(StateClient::new(channel)))
}
