//! Why a plugin did not start, for whoever has to do something about it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use talon_jail::{GroupError, SpawnError};
use talon_sanitize::Sanitized;

use super::kept::Lost;
use super::process::Exit;
use crate::capability::CapabilityError;
use crate::connect::{ConnectError, TlsError};
use crate::discover::CheckError;
use crate::egress::EgressError;
use crate::handshake::HandshakeError;
use crate::identity::IdentityError;
use crate::name::PluginName;
use crate::view::ViewError;

/// What a start is doing, for the message about one that did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Step {
    /// Looking at the program.
    Check,
    /// Building the jail.
    Spawn,
    /// Waiting for the handshake line.
    Handshake,
    /// Connecting to the socket.
    Connect,
    /// Giving it its settings.
    Init,
    /// Reading what it offers.
    Capabilities,
    /// Waiting until it serves.
    Health,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Check => "its files were checked",
            Self::Spawn => "its jail was built",
            Self::Handshake => "its handshake was awaited",
            Self::Connect => "it was connected to",
            Self::Init => "it was given its settings (Init)",
            Self::Capabilities => "its Capabilities were read",
            Self::Health => "its health service did not say SERVING",
        })
    }
}

/// What a plugin said last, if anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words(pub(crate) Option<Sanitized>);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(words) => write!(f, "; its last words: {words}"),
            None => f.write_str("; it said nothing"),
        }
    }
}

/// Why a plugin did not start. The texts end with what to do next; texts of the plugin in them are bounded
/// and sanitized. Nothing of the start is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LaunchError {
    /// What is on the disk may not run.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The read-only copy could not be made.
    #[error(transparent)]
    View(ViewError),
    /// It gets no uid.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// It is to have a uid of its own and we may not give it one.
    #[error(
        "it is to run with a uid of its own, and the supervisor lacks CAP_CHOWN, CAP_SETUID or CAP_SETGID: grant them, or set sandbox.mode to best-effort"
    )]
    NoUid,
    /// Its private directory could not be made.
    #[error("its private directory cannot be made: {0}; check that the runtime directory has room")]
    Directory(#[source] io::Error),
    /// The group that bounds it could not be made.
    #[error("its cgroup cannot be made: {0}")]
    Group(#[from] GroupError),
    /// Its list of places cannot be understood.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// What it is to see cannot be put together.
    #[error("its view of the files cannot be built: {0}; correct its sandbox.fs")]
    Isolation(String),
    /// Its interpreter is not among what it sees.
    #[error(
        "its interpreter {} lies outside of what it sees: grant it with plugins.tools.overrides.{plugin}.sandbox.fs.execute: [{:?}]",
        interpreter.display(), grant
    )]
    Interpreter {
        /// The interpreter, where links lead.
        interpreter: PathBuf,
        /// The directory that has its libraries, too.
        grant: PathBuf,
        /// Its name.
        plugin: PluginName,
    },
    /// The jail refused, or could not be built.
    #[error("its jail cannot be built: {0}")]
    Spawn(#[from] SpawnError),
    /// We ran out of something ourselves.
    #[error("the supervisor cannot watch it: {0}; raise the supervisor's limit on open files")]
    Watch(#[source] io::Error),
    /// It ended before it was ready.
    #[error("ended with {exit} while {step}{words}{}", hint(*step, exit, words))]
    Exited {
        /// How.
        exit: Exit,
        /// When.
        step: Step,
        /// What it said.
        words: Words,
    },
    /// It closed its standard output without a handshake and lives on.
    #[error(
        "closed its standard output before its handshake{words}; a plugin prints one handshake line and keeps its output open"
    )]
    Closed {
        /// What it said.
        words: Words,
    },
    /// It talks too much before its handshake.
    #[error("printed more than {lines} lines or {} KiB before its handshake; let it print the handshake line first, and anything else to standard error", bytes >> 10)]
    Noise {
        /// The most lines.
        lines: usize,
        /// The most bytes.
        bytes: usize,
    },
    /// Its handshake line will not do.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// It wants TLS and was not asked to.
    #[error(
        "it wants TLS (its handshake holds a certificate), and its tls is off: set `tls: auto-mtls` for it, or turn TLS off in the plugin"
    )]
    UnwantedTls,
    /// It was asked for TLS, and there will be none.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// It multiplexes its listener.
    #[error(
        "it multiplexes its listener (yamux), which Talon does not speak: turn gRPC broker multiplexing off in the plugin"
    )]
    Mux,
    /// It listens in a network of its own.
    #[error(
        "it listens on the TCP address {addr} of a network of its own, which nobody else reaches: let it use a unix socket, or set sandbox.network to full for it"
    )]
    TcpInside {
        /// The address.
        addr: SocketAddr,
    },
    /// The place it named is not its own, or nobody is there.
    #[error("{0}")]
    Connect(Sanitized, #[source] Option<ConnectError>),
    /// It refused its settings.
    #[error("it refused its settings (Init): {0}; correct its config")]
    Init(Sanitized),
    /// Its capabilities could not be read.
    #[error(
        "its Capabilities cannot be read: {cause}; it has to serve {service}, or its `service` has to name the one that it serves"
    )]
    Capabilities {
        /// Why.
        cause: Sanitized,
        /// The service that was asked.
        service: String,
    },
    /// It declares what it may not.
    #[error(transparent)]
    Declaration(#[from] CapabilityError),
    /// Its health cannot be asked.
    #[error("its health cannot be read: {0}; it has to serve grpc.health.v1, or nothing of that name")]
    Health(Sanitized),
    /// It took too long.
    #[error("was not ready within {} s: time ran out while {step}{words}; raise its start_timeout if it needs longer", after.as_secs_f32())]
    TimedOut {
        /// Its start timeout.
        after: Duration,
        /// What was awaited.
        step: Step,
        /// What it said.
        words: Words,
    },
    /// It was to be started again from what came up last, which could not be had, and what lies on the disk did not come up.
    #[error(
        "the program that was last ready cannot be started again, because {why}; of what lies on the disk now: {error}"
    )]
    NotKept {
        /// Why it could not be had.
        why: Lost,
        /// What became of the other one.
        error: Box<LaunchError>,
    },
    /// Nobody wants it any more.
    #[error("its start was called off")]
    CalledOff,
    /// The supervisor ends.
    #[error("the supervisor is stopping")]
    Stopping,
}

impl LaunchError {
    /// Whether a plugin that ended meanwhile would look like this.
    pub(super) fn may_be_an_exit(&self) -> bool {
        matches!(self, Self::Connect(..) | Self::Init(_) | Self::Capabilities { .. } | Self::Health(_))
    }

    /// Whether the same start would fail again: something on the disk, in the configuration or on the machine
    /// has to be changed first.
    #[must_use]
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Self::Check(error) => !matches!(
                error,
                CheckError::Program(crate::view::ProgramError::Io { .. })
                    | CheckError::Directory(crate::view::TreeError::Io { .. })
            ),
            Self::View(error) => !matches!(error, ViewError::Copy { .. }),
            Self::Identity(error) => !matches!(error, IdentityError::Io { .. }),
            Self::Spawn(error) => {
                matches!(
                    error,
                    SpawnError::Step { .. } | SpawnError::Spec(_) | SpawnError::SpecTooLarge { .. }
                )
            }
            Self::Handshake(error) => matches!(
                error,
                HandshakeError::CoreVersion { .. }
                    | HandshakeError::AppVersion { .. }
                    | HandshakeError::Protocol { .. }
                    | HandshakeError::WrongDialect { .. }
            ),
            Self::Tls(error) => matches!(error, TlsError::NotBuilt | TlsError::NoCertificate),
            Self::UnwantedTls
            | Self::Mux
            | Self::NoUid
            | Self::TcpInside { .. }
            | Self::Isolation(_)
            | Self::Egress(_)
            | Self::Interpreter { .. } => true,
            Self::NotKept { error, .. } => error.is_permanent(),
            Self::Connect(_, source) => matches!(source, Some(ConnectError::TcpNotAllowed { .. })),
            _ => false,
        }
    }
}

/// What a program of go-plugin says, and then ends with exit code 1, when its cookie is not in its environment.
const NO_COOKIE: &str = "not meant to be executed directly";

/// What ends of that kind usually mean.
fn hint(step: Step, exit: &Exit, words: &Words) -> &'static str {
    use talon_jail::ExitStatus::{Code, Signal};

    if step != Step::Handshake {
        return "; see its log";
    }
    match exit.status {
        Code(1) if words.0.as_ref().is_some_and(|words| words.contains(NO_COOKIE)) => {
            "; it waits for a magic cookie of its own: set `cookie` to the key and value that its host gives it"
        }
        Code(0) => {
            "; a program that ends well without a handshake is either no plugin, or could not make its socket \
             (go-plugin then ends with exit code 0)"
        }
        Code(126 | 127) => "; its interpreter, or a program that it starts, is missing",
        Signal { signal: 31, .. } => "; the jail forbids a system call that it makes",
        _ => "; see its log, and run it with `talon exec` to try again",
    }
}
