//! The way to kept state: through the supervisor that keeps it, or by a `talon-state` of our own.

use std::error::Error as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use talon_plugin::PluginName;
use talon_plugin::service::Home;
use talon_proto::host::GetStatusRequest;
use talon_proto::state::operator_client::OperatorClient;
use talon_proto::state::{Layers, Open};
use tempfile::TempDir;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::super::client::Client;
use super::super::failure::Failure;
use super::super::{Global, serve};
use super::private::{Private, Wanted};
use super::scratch;
use crate::config::{Engine, State};
use crate::{exit, state};

/// The largest message of these: a value of 1 MiB or a page of keys, each with what is around it.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// What state a verb is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(in crate::cli) enum Part {
    /// The plugins' key-values.
    Plugins,
    /// Sessions and memory.
    Agent,
}

impl Part {
    /// Both.
    pub(in crate::cli) const ALL: [Self; 2] = [Self::Plugins, Self::Agent];

    /// On the wire.
    pub(in crate::cli) fn layers(self) -> Layers {
        match self {
            Self::Plugins => Layers::KeyValues,
            Self::Agent => Layers::Conversations,
        }
    }

    /// For people.
    pub(in crate::cli) fn what(self) -> &'static str {
        match self {
            Self::Plugins => "the plugins' state",
            Self::Agent => "sessions and memory",
        }
    }

    /// On the command line.
    pub(in crate::cli) fn word(self) -> &'static str {
        match self {
            Self::Plugins => "plugins",
            Self::Agent => "agent",
        }
    }

    /// What is opened for it; `None` where no state is kept.
    fn open(self, state: &State) -> Option<Open> {
        match self {
            Self::Plugins => state::plugins(state),
            Self::Agent => state::agents(state),
        }
    }

    /// Its database's name, in its directory.
    fn file(self) -> &'static str {
        match self {
            Self::Plugins => state::STATE_FILE,
            Self::Agent => state::AGENT_FILE,
        }
    }

    /// Where it lies below the data directory, and who owns it.
    fn home(self) -> (&'static str, &'static str) {
        match self {
            Self::Plugins => (state::STATE_DIR, "talon-state"),
            Self::Agent => (state::AGENT_DIR, "talon-agent"),
        }
    }
}

/// What a verb is going to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Purpose {
    /// Something that is there: where nothing is, nothing is made.
    Use,
    /// Say what adding would do: where nothing is, an empty database of a scratch directory stands for it.
    Try,
    /// Something that may be new.
    Add,
    /// All of it anew, also where the present one is damaged.
    Restore,
}

/// A connection to the operators' side of one part.
pub(in crate::cli) struct Operator {
    // Before the program it is connected to, which waits for its end.
    pub(in crate::cli) client: OperatorClient<Channel>,
    through: Through,
}

enum Through {
    Supervisor(PathBuf),
    /// With the scratch directory that it works on, which goes once it has ended.
    Private(Box<Private>, Option<TempDir>),
}

impl Operator {
    fn new(channel: Channel, through: Through) -> Self {
        let client = OperatorClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Self { client, through }
    }

    /// What a gRPC error means.
    pub(in crate::cli) fn failure(&mut self, status: &Status) -> Failure {
        match &mut self.through {
            Through::Supervisor(path) => refused(status).unwrap_or_else(|| lost(path, status)),
            Through::Private(private, _) => {
                refused(status).unwrap_or_else(|| private.ended(status.message()))
            }
        }
    }

    /// Whether it works on an empty database of its own, since there is none yet.
    pub(in crate::cli) fn is_scratch(&self) -> bool {
        matches!(self.through, Through::Private(_, Some(_)))
    }

    /// Why nothing but a restore is possible; empty where all is.
    pub(in crate::cli) fn problem(&self) -> &str {
        match &self.through {
            Through::Supervisor(_) => "",
            Through::Private(private, _) => private.problem(),
        }
    }
}

/// What the state service means with an error of its own; `None` where the way to it ended.
fn refused(status: &Status) -> Option<Failure> {
    let said = status.message();
    let code = match status.code() {
        // gRPC's own errors have a cause. The others are what the service says, or the supervisor where it has none.
        Code::Unavailable | Code::Unknown | Code::Cancelled if status.source().is_some() => return None,
        Code::Unknown => return None,
        Code::PermissionDenied | Code::Unauthenticated => exit::DENIED,
        Code::InvalidArgument => exit::USAGE,
        Code::NotFound | Code::ResourceExhausted | Code::AlreadyExists | Code::OutOfRange => exit::REFUSED,
        // No state is kept, or by an engine that has no such thing.
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

/// The connection through a supervisor ended.
fn lost(path: &Path, status: &Status) -> Failure {
    let (path, said) = (path.display(), status.message());
    Failure::new(exit::UNREACHABLE, format!("the supervisor at {path} went away ({said}); see its log"))
}

/// Where state is, as the command line, the configuration and a supervisor say.
pub(in crate::cli) struct Reach<'g> {
    global: &'g Global,
    supervisor: Option<Client>,
}

/// What the configuration says of it.
struct Configured {
    state: State,
    uid_range: Option<RangeInclusive<u32>>,
    mode: talon_jail::Mode,
}

impl<'g> Reach<'g> {
    /// Looks for a supervisor.
    pub(in crate::cli) async fn find(global: &'g Global) -> Result<Self, Failure> {
        Ok(Self { global, supervisor: Client::connect_if_there(global).await? })
    }

    /// The plugins' key-values, which have to be there.
    pub(in crate::cli) async fn plugins(&mut self, purpose: Purpose) -> Result<Operator, Failure> {
        match self.open(Part::Plugins, purpose).await? {
            Some(operator) => Ok(operator),
            None => Err(self.nothing()),
        }
    }

    /// One part; `None` where nothing of it was ever kept and the purpose needs something.
    pub(in crate::cli) async fn open(
        &mut self,
        part: Part,
        purpose: Purpose,
    ) -> Result<Option<Operator>, Failure> {
        if let (Part::Plugins, Some(supervisor)) = (part, &self.supervisor) {
            let through = Through::Supervisor(supervisor.path().to_owned());
            return Ok(Some(Operator::new(supervisor.channel(), through)));
        }
        let Configured { state, uid_range, mode } = self.configured()?;
        self.same_place(&state.data_dir).await?;
        let Some(open) = part.open(&state) else {
            return Err(Failure::new(
                exit::CONFIG,
                "no state is kept (state.engine: off): set another engine",
            ));
        };
        let (below, owner) = part.home();
        if purpose == Purpose::Use && !is_there(&state, below)? {
            return Ok(None);
        }
        let program = state::find_program(state.program.as_deref())
            .map_err(|error| Failure::new(exit::CONFIG, error.to_string()))?;
        let name = PluginName::own(owner);
        let home = |data_dir: &Path, uid_range| {
            Home::prepare(data_dir, &name, below, uid_range)
                .map_err(|error| Failure::new(exit::CONFIG, error.to_string()))
        };
        let (home, open, scratch) = if purpose == Purpose::Try && !is_begun(&state, part)? {
            let scratch = scratch::dir()?;
            let data_dir = scratch.path().join("data");
            let home = home(&data_dir, uid_range.map(|range| scratch::uids(&range, std::process::id())))?;
            let state = State { engine: Engine::Sqlite, data_dir, ..state };
            (home, part.open(&state).unwrap_or(open), Some(scratch))
        } else {
            let open = Open { for_restore: purpose == Purpose::Restore, ..open };
            (home(&state.data_dir, uid_range)?, open, None)
        };
        let wanted = Wanted { name, program, home, mode, open };
        let (private, channel) = Private::start(wanted).await?;
        Ok(Some(Operator::new(channel, Through::Private(Box::new(private), scratch))))
    }

    /// The data directory of the state that is reached: the supervisor's, where it has a part.
    pub(in crate::cli) async fn data_dir(&mut self) -> Result<PathBuf, Failure> {
        let Some(supervisor) = &mut self.supervisor else { return Ok(self.configured()?.state.data_dir) };
        let status = supervisor.host.get_status(GetStatusRequest {}).await;
        Ok(status.map_err(|status| supervisor.failure(&status))?.into_inner().data_dir.into())
    }

    /// What is said where nothing was ever kept: more often than not it is the wrong place.
    pub(in crate::cli) fn nothing(&self) -> Failure {
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

    /// A supervisor and the configuration have to speak of the same state: who exports, say, means one machine's whole
    /// state and not the halves of two.
    async fn same_place(&mut self, configured: &Path) -> Result<(), Failure> {
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

/// Whether a part was ever kept.
fn is_there(state: &State, below: &str) -> Result<bool, Failure> {
    if state.engine != Engine::Sqlite {
        return Ok(true);
    }
    exists(&state.data_dir.join(below))
}

/// Whether there is a database to look into. A server's is known by the directory that whoever uses it first makes: to
/// ask the server would make tables there.
fn is_begun(state: &State, part: Part) -> Result<bool, Failure> {
    let dir = state.data_dir.join(part.home().0);
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
            let failure = refused(&Status::new(code, "why")).unwrap();
            assert_eq!((failure.code(), failure.to_string().as_str()), (exit, "why"), "{code:?}");
        }
        assert_eq!(refused(&Status::unimplemented("why")).unwrap().code(), exit::FAILED);
    }

    #[test]
    fn a_connection_that_ended_is_no_answer() {
        let broken = || Status::from_error(Box::new(std::io::Error::from(std::io::ErrorKind::BrokenPipe)));
        assert!(refused(&broken()).is_none(), "{:?}", broken());
        let failure = lost(Path::new("/run/talon/host.sock"), &broken());
        assert!(
            failure.code() == exit::UNREACHABLE && failure.to_string().contains("host.sock"),
            "{failure}"
        );
    }
}
