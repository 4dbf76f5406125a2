//! Access to stored state: through the running supervisor, or through a private `talon-state` process.

use std::error::Error as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use talon_plugin::service::Home;
use talon_plugin_config::PluginName;
use talon_proto::host::GetStatusRequest;
use talon_proto::state::operator_client::OperatorClient;
use talon_proto::state::{Layers, Open};
use tempfile::TempDir;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::super::client::Client;
use super::super::failure::Failure;
use super::super::{Global, serve};
use super::private_service::{OpenRequest, PrivateStateService};
use super::scratch;
use crate::config::{Engine, State};
use crate::{exit, state};

/// The largest message: a value of 1 MiB or a page of keys, with overhead.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// A part of the stored state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(in crate::cli) enum StatePart {
    /// The plugins' key-values.
    Plugins,
    /// Sessions and memory.
    Agent,
}

impl StatePart {
    /// All parts.
    pub(in crate::cli) const ALL: [Self; 2] = [Self::Plugins, Self::Agent];

    /// The value on the wire.
    pub(in crate::cli) fn layers(self) -> Layers {
        match self {
            Self::Plugins => Layers::KeyValues,
            Self::Agent => Layers::Conversations,
        }
    }

    /// The name for people.
    pub(in crate::cli) fn label(self) -> &'static str {
        match self {
            Self::Plugins => "the plugins' state",
            Self::Agent => "sessions and memory",
        }
    }

    /// The value on the command line.
    pub(in crate::cli) fn as_str(self) -> &'static str {
        match self {
            Self::Plugins => "plugins",
            Self::Agent => "agent",
        }
    }

    /// The request to open it; `None` if no state is stored.
    fn open(self, state: &State) -> Option<Open> {
        match self {
            Self::Plugins => state::plugins(state),
            Self::Agent => state::agents(state),
        }
    }

    /// The file name of its database.
    fn file(self) -> &'static str {
        match self {
            Self::Plugins => state::STATE_FILE,
            Self::Agent => state::AGENT_FILE,
        }
    }

    /// Its path below the data directory, and its owner.
    fn location(self) -> (&'static str, &'static str) {
        match self {
            Self::Plugins => (state::STATE_DIR, "talon-state"),
            Self::Agent => (state::AGENT_DIR, "talon-agent"),
        }
    }
}

/// What a verb will do with the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Purpose {
    /// Use existing state: nothing is created.
    Use,
    /// Dry run of adding: if there is no state, an empty database in a scratch directory is used.
    DryRun,
    /// Add records, creating the state if necessary.
    Add,
    /// Replace everything, even if the current state is damaged.
    Restore,
}

/// A connection to the operators' API of one part.
pub(in crate::cli) struct Operator {
    // Dropped before the backend, because a private service waits until its connections are closed.
    pub(in crate::cli) client: OperatorClient<Channel>,
    backend: Backend,
}

enum Backend {
    Supervisor(PathBuf),
    /// With its scratch directory, which is deleted after the process has exited.
    Private(Box<PrivateStateService>, Option<TempDir>),
}

impl Operator {
    fn new(channel: Channel, backend: Backend) -> Self {
        let client = OperatorClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Self { client, backend }
    }

    /// Converts a gRPC error.
    pub(in crate::cli) fn failure(&mut self, status: &Status) -> Failure {
        match &mut self.backend {
            Backend::Supervisor(path) => {
                service_failure(status).unwrap_or_else(|| connection_lost(path, status))
            }
            Backend::Private(private, _) => {
                service_failure(status).unwrap_or_else(|| private.ended(status.message()))
            }
        }
    }

    /// Whether it works on an empty scratch database, because there is no state yet.
    pub(in crate::cli) fn is_scratch(&self) -> bool {
        matches!(self.backend, Backend::Private(_, Some(_)))
    }

    /// Why only a restore is possible; empty if everything is.
    pub(in crate::cli) fn problem(&self) -> &str {
        match &self.backend {
            Backend::Supervisor(_) => "",
            Backend::Private(private, _) => private.problem(),
        }
    }
}

/// Converts an error of the state service; `None` if the connection was lost.
fn service_failure(status: &Status) -> Option<Failure> {
    let said = status.message();
    let code = match status.code() {
        // Only gRPC's own errors have a source; all others were returned by the service, or by a supervisor without
        // one.
        Code::Unavailable | Code::Unknown | Code::Cancelled if status.source().is_some() => return None,
        Code::Unknown => return None,
        Code::PermissionDenied | Code::Unauthenticated => exit::DENIED,
        Code::InvalidArgument => exit::USAGE,
        Code::NotFound | Code::ResourceExhausted | Code::AlreadyExists | Code::OutOfRange => exit::REFUSED,
        // No state is stored, or the engine does not support this.
        Code::FailedPrecondition => exit::CONFIG,
        Code::Unavailable | Code::Aborted | Code::DeadlineExceeded | Code::Cancelled => exit::HOST_FAULT,
        Code::Unimplemented => {
            let text = format!(
                "what keeps state does not know this request ({said}): it is another version; use the `talon` that it was \
                 installed with"
            );
            return Some(Failure::failed(text));
        }
        Code::Ok | Code::Internal | Code::DataLoss => exit::FAILED,
    };
    Some(Failure::new(code, said))
}

/// The connection through a supervisor was lost.
fn connection_lost(path: &Path, status: &Status) -> Failure {
    let (path, said) = (path.display(), status.message());
    Failure::new(exit::UNREACHABLE, format!("the supervisor at {path} went away ({said}); see its log"))
}

/// Locates the state according to the command line, the configuration and the supervisor.
pub(in crate::cli) struct StateAccess<'g> {
    global: &'g Global,
    supervisor: Option<Client>,
}

/// The configuration's settings for the state.
struct Configured {
    state: State,
    uid_range: Option<RangeInclusive<u32>>,
    mode: talon_jail::Mode,
}

impl<'g> StateAccess<'g> {
    /// Looks for a supervisor.
    pub(in crate::cli) async fn find(global: &'g Global) -> Result<Self, Failure> {
        Ok(Self { global, supervisor: Client::connect_if_there(global).await? })
    }

    /// Opens the plugins' state, which has to exist.
    pub(in crate::cli) async fn plugins(&mut self, purpose: Purpose) -> Result<Operator, Failure> {
        match self.open(StatePart::Plugins, purpose).await? {
            Some(operator) => Ok(operator),
            None => Err(self.no_state_failure()),
        }
    }

    /// Opens one part; `None` if it was never stored and the purpose needs existing state.
    pub(in crate::cli) async fn open(
        &mut self,
        part: StatePart,
        purpose: Purpose,
    ) -> Result<Option<Operator>, Failure> {
        if let (StatePart::Plugins, Some(supervisor)) = (part, &self.supervisor) {
            let through = Backend::Supervisor(supervisor.path().to_owned());
            return Ok(Some(Operator::new(supervisor.channel(), through)));
        }
        let Configured { state, uid_range, mode } = self.configured()?;
        self.ensure_same_data_dir(&state.data_dir).await?;
        let Some(open) = part.open(&state) else {
            return Err(Failure::new(
                exit::CONFIG,
                "no state is kept (state.engine: off): set another engine",
            ));
        };
        let (below, owner) = part.location();
        if purpose == Purpose::Use && !was_ever_stored(&state, below)? {
            return Ok(None);
        }
        let program = state::find_program(state.program.as_deref())
            .map_err(|error| Failure::new(exit::CONFIG, error.to_string()))?;
        let name = PluginName::reserved(owner);
        let home = |data_dir: &Path, uid_range| {
            Home::prepare(data_dir, &name, below, uid_range)
                .map_err(|error| Failure::new(exit::CONFIG, error.to_string()))
        };
        let (home, open, scratch) = if purpose == Purpose::DryRun && !has_database(&state, part)? {
            let scratch = scratch::dir()?;
            let data_dir = scratch.path().join("data");
            let home = home(&data_dir, uid_range.map(|range| scratch::uids(&range, std::process::id())))?;
            let state = State { engine: Engine::Sqlite, data_dir, ..state };
            (home, part.open(&state).unwrap_or(open), Some(scratch))
        } else {
            let open = Open { for_restore: purpose == Purpose::Restore, ..open };
            (home(&state.data_dir, uid_range)?, open, None)
        };
        let wanted = OpenRequest { name, program, home, mode, open };
        let (private, channel) = PrivateStateService::start(wanted).await?;
        Ok(Some(Operator::new(channel, Backend::Private(Box::new(private), scratch))))
    }

    /// The data directory of the accessed state: the supervisor's, if it serves a part.
    pub(in crate::cli) async fn data_dir(&mut self) -> Result<PathBuf, Failure> {
        let Some(supervisor) = &mut self.supervisor else { return Ok(self.configured()?.state.data_dir) };
        let status = supervisor.host.get_status(GetStatusRequest {}).await;
        Ok(status.map_err(|status| supervisor.failure(&status))?.into_inner().data_dir.into())
    }

    /// The error if nothing was ever stored: usually the wrong data directory.
    pub(in crate::cli) fn no_state_failure(&self) -> Failure {
        let place = match self.configured() {
            Ok(configured) => configured.state.data_dir.display().to_string(),
            Err(failure) => return failure,
        };
        Failure::new(
            exit::REFUSED,
            format!(
                "no state is kept in {place} yet; --config names another configuration, and OPENTALON_DATA_DIR another place"
            ),
        )
    }

    fn configured(&self) -> Result<Configured, Failure> {
        let config = serve::load(&serve::load_options(self.global))?.config;
        let uid_range = config.talon_plugin_settings().uid_range;
        let mode = config.sandbox.mode.into();
        Ok(Configured { state: config.state, uid_range, mode })
    }

    /// Fails unless the supervisor and the configuration use the same data directory: an export, for example, must not
    /// combine halves of two states.
    async fn ensure_same_data_dir(&mut self, configured: &Path) -> Result<(), Failure> {
        if self.supervisor.is_none() {
            return Ok(());
        }
        let theirs = self.data_dir().await?;
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if whole(&theirs) == whole(configured) {
            return Ok(());
        }
        let socket = self.supervisor.as_ref().map(|supervisor| supervisor.path().display().to_string());
        Err(Failure::new(
            exit::CONFIG,
            format!(
                "the supervisor at {} keeps its data in {}, and the configuration names {}: name the supervisor's \
                 configuration with --config, or leave sessions and memory out with --only plugins",
                socket.unwrap_or_default(),
                theirs.display(),
                configured.display()
            ),
        ))
    }
}

/// Whether a part was ever stored.
fn was_ever_stored(state: &State, below: &str) -> Result<bool, Failure> {
    if state.engine != Engine::Sqlite {
        return Ok(true);
    }
    exists(&state.data_dir.join(below))
}

/// Whether the part has a database. For a database server this is decided by a local directory that the first use
/// creates, because connecting to the server would create tables there.
fn has_database(state: &State, part: StatePart) -> Result<bool, Failure> {
    let dir = state.data_dir.join(part.location().0);
    exists(&if state.engine == Engine::Sqlite { dir.join(part.file()) } else { dir })
}

fn exists(path: &Path) -> Result<bool, Failure> {
    path.try_exists().map_err(|error| {
        Failure::new(exit::DENIED, format!("cannot look at {}: {error}; ask root", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_service_says_has_an_exit_code_and_its_own_words() {
        for (code, exit) in [
            (Code::PermissionDenied, exit::DENIED),
            (Code::InvalidArgument, exit::USAGE),
            (Code::NotFound, exit::REFUSED),
            (Code::ResourceExhausted, exit::REFUSED),
            (Code::OutOfRange, exit::REFUSED),
            (Code::FailedPrecondition, exit::CONFIG),
            (Code::Unavailable, exit::HOST_FAULT),
            (Code::Aborted, exit::HOST_FAULT),
            (Code::DeadlineExceeded, exit::HOST_FAULT),
            (Code::Internal, exit::FAILED),
            (Code::DataLoss, exit::FAILED),
        ] {
            let failure = service_failure(&Status::new(code, "why")).unwrap();
            assert_eq!((failure.code(), failure.to_string().as_str()), (exit, "why"), "{code:?}");
        }
        assert_eq!(service_failure(&Status::unimplemented("why")).unwrap().code(), exit::FAILED);
    }

    #[test]
    fn a_connection_that_ended_is_no_answer() {
        let broken = || Status::from_error(Box::new(std::io::Error::from(std::io::ErrorKind::BrokenPipe)));
        assert!(service_failure(&broken()).is_none(), "{:?}", broken());
        let failure = connection_lost(Path::new("/run/talon/host.sock"), &broken());
        assert!(
            failure.code() == exit::UNREACHABLE && failure.to_string().contains("host.sock"),
            "{failure}"
        );
    }
}
