//! Access to stored state: through the running supervisor, or through a private `talon-state` process.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use talon_plugin::service::Home;
use talon_plugin_config::PluginName;
use talon_proto::host::GetStatusRequest;
use talon_proto::state::Open;
use talon_supervisor::config::{Engine, State};
use talon_supervisor::state;

use super::operator::{Backend, Operator};
use super::part::StatePart;
use super::private_service::{OpenRequest, PrivateStateService};
use super::scratch;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::host_socket::HostSocket;
use crate::local::configuration;

/// What a verb will do with the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Use existing state: nothing is created.
    Use,
    /// Dry run of adding: if there is no state, an empty database in a scratch directory is used.
    DryRun,
    /// Add records, creating the state if necessary.
    Add,
    /// Replace everything, even if the current state is damaged.
    Restore,
}

/// Locates the state according to the command line, the configuration and the supervisor.
pub(crate) struct StateAccess<'g> {
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
    pub(crate) async fn find(global: &'g Global) -> Result<Self, Failure> {
        Ok(Self { global, supervisor: Client::connect_if_there(&HostSocket::new(global)).await? })
    }

    /// Opens the plugins' state, which has to exist.
    pub(crate) async fn plugins(&mut self, purpose: Purpose) -> Result<Operator, Failure> {
        match self.open(StatePart::Plugins, purpose).await? {
            Some(operator) => Ok(operator),
            None => Err(self.no_state_failure()),
        }
    }

    /// Opens one part; `None` if it was never stored and the purpose needs existing state.
    pub(crate) async fn open(
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
        if let (StatePart::Plugins, Some(backend)) = (part, state.storage_backend()) {
            let text = format!(
                "the plugins' state is kept by {}: start talon serve first, which runs that plugin, or leave it out with --only agent",
                backend.action
            );
            return Err(Failure::new(exit::CONFIG, text));
        }
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
            let state = State { engine: Engine::Sqlite, plugins: None, data_dir, ..state };
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
    pub(crate) async fn data_dir(&mut self) -> Result<PathBuf, Failure> {
        let Some(supervisor) = &mut self.supervisor else { return Ok(self.configured()?.state.data_dir) };
        let status = supervisor.host.get_status(GetStatusRequest {}).await;
        Ok(status.map_err(|status| supervisor.failure(&status))?.into_inner().data_dir.into())
    }

    /// The error if nothing was ever stored: usually the wrong data directory.
    pub(crate) fn no_state_failure(&self) -> Failure {
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
        let config = configuration::load(&configuration::load_options(self.global))?.config;
        let uid_range = config.talon_plugin_settings().uid_range;
        let mode = config.sandbox.mode.into();
        Ok(Configured { state: config.state, uid_range, mode })
    }

    /// Fails unless the supervisor and the configuration use the same data directory: an export, for example,
    /// must not combine halves of two states.
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
    let engine = if below == state::STATE_DIR {
        state.plugins_database().unwrap_or(Engine::Off)
    } else {
        state.engine
    };
    if engine != Engine::Sqlite {
        return Ok(true);
    }
    exists(&state.data_dir.join(below))
}

/// Whether the part has a database. For a database server this is decided by a local directory that the first
/// use creates, because connecting to the server would create tables there.
fn has_database(state: &State, part: StatePart) -> Result<bool, Failure> {
    let dir = state.data_dir.join(part.location().0);
    let engine = match part {
        StatePart::Plugins => state.plugins_database().unwrap_or(Engine::Off),
        StatePart::Agent => state.engine,
    };
    exists(&if engine == Engine::Sqlite { dir.join(part.file()) } else { dir })
}

fn exists(path: &Path) -> Result<bool, Failure> {
    path.try_exists().map_err(|error| {
        Failure::new(exit::DENIED, format!("cannot look at {}: {error}; ask root", path.display()))
    })
}
