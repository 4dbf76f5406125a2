//! The handle of a tool on the models, over the host's socket or in memory.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use talon_proto::model::ListRequest;
use talon_proto::model::model_client::ModelClient;
use talon_wire::Connector;
use tonic::transport::{Channel, Endpoint};

use super::SOCKET_ENV;
use super::canned::Canned;
use super::completion::{Completion, CompletionRequest, GrantedModels};
use super::error::ModelError;

/// How long a connection to the socket may take. It is local; an agent that restarts is waited for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The models that the operator grants this plugin, for one call ([`Context::model`](crate::Context::model)) or
/// outside of calls ([`Model::from_env`]). Cheap to clone. The next completion reconnects after a lost
/// connection.
///
/// Dropping the future of a completion cancels it.
#[derive(Debug, Clone)]
pub struct Model {
    backend: Backend,
    /// Empty outside of calls.
    call_id: String,
}

#[derive(Debug, Clone)]
enum Backend {
    Host(ModelClient<Channel>),
    Canned(Canned),
}

impl Model {
    /// The models outside of a call, such as in a task of the plugin's own. The operator has to grant the plugin
    /// a budget of its own for that. Connects on first use.
    ///
    /// # Errors
    /// [`ModelError::NotGranted`] when the plugin has no socket for it.
    pub fn from_env() -> Result<Self, ModelError> {
        ModelSource::from_env().open("")
    }

    /// The same models for a call with this id ([`Context::call_id`](crate::Context::call_id)), where no
    /// [`Context`](crate::Context) is at hand. The host checks that the call is in flight.
    #[must_use]
    pub fn for_call(mut self, call_id: impl Into<String>) -> Self {
        self.call_id = call_id.into();
        self
    }

    /// What the operator grants.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`], [`ModelError::Refused`].
    pub async fn granted(&self) -> Result<GrantedModels, ModelError> {
        match &self.backend {
            Backend::Host(client) => {
                Ok(GrantedModels::from_wire(client.clone().list(ListRequest {}).await?.into_inner()))
            }
            Backend::Canned(canned) => Ok(canned.granted()),
        }
    }

    /// Asks a model once. It takes as long as the operator allows; dropping the future cancels it.
    ///
    /// # Errors
    /// [`ModelError`]
    pub async fn complete(&self, request: CompletionRequest) -> Result<Completion, ModelError> {
        match &self.backend {
            Backend::Host(client) => {
                let request = request.into_wire(self.call_id.clone());
                Ok(Completion::from_wire(client.clone().complete(request).await?.into_inner()))
            }
            Backend::Canned(canned) => canned.complete(request).await,
        }
    }
}

/// Where contexts get their models from.
#[derive(Debug, Clone)]
pub(crate) enum ModelSource {
    /// The host's socket, connected on first use and again when the connection is lost.
    Socket {
        path: Option<PathBuf>,
        client: Arc<OnceLock<ModelClient<Channel>>>,
    },
    Canned(Canned),
}

impl ModelSource {
    pub(crate) fn from_env() -> Self {
        Self::at(std::env::var_os(SOCKET_ENV).filter(|path| !path.is_empty()).map(PathBuf::from))
    }

    pub(crate) fn at(path: Option<PathBuf>) -> Self {
        Self::Socket { path, client: Arc::default() }
    }

    pub(crate) fn open(&self, call_id: &str) -> Result<Model, ModelError> {
        let backend = match self {
            Self::Canned(canned) => Backend::Canned(canned.clone()),
            Self::Socket { path: None, .. } => return Err(ModelError::NotGranted),
            Self::Socket { path: Some(path), client } => {
                Backend::Host(client.get_or_init(|| connect(path.clone())).clone())
            }
        };
        Ok(Model { backend, call_id: call_id.to_owned() })
    }
}

fn connect(path: PathBuf) -> ModelClient<Channel> {
    // The URI only fills the :authority header; the connector decides where to connect. The host bounds the
    // time of a completion.
    let endpoint = Endpoint::from_static("http://localhost").connect_timeout(CONNECT_TIMEOUT);
    let channel =
        Connector::new(move || tokio::net::UnixStream::connect(path.clone())).connect_lazy(&endpoint);
    ModelClient::new(channel)
}
