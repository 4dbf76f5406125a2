//! Why a plugin did not start, in texts for the person who has to fix it.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use talon_jail::{ExitStatus, GroupError, SpawnError, descriptor_help};
use talon_plugin_client::InitError;
use talon_plugin_client::capability::CapabilityError;
use talon_plugin_client::connect::{ConnectError, TlsError};
use talon_plugin_client::handshake::HandshakeError;
use talon_plugin_config::allow_list::AllowListError;
use talon_plugin_config::discover::CheckError;
use talon_plugin_config::name::PluginName;
use talon_sanitize::{Raw, Sanitized, sanitized};
use talon_wire::frames::FrameFloodError;

use super::last_good_unavailable::LastGoodUnavailable;
use super::process::Exit;
use crate::identity::IdentityError;
use crate::lifecycle::event::FailureKind;
use crate::view::ViewError;

/// The steps of a start, for the message about one that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum LaunchStep {
    /// Checking the program.
    Check,
    /// Building the jail.
    Spawn,
    /// Waiting for the handshake line.
    Handshake,
    /// Connecting to the socket.
    Connect,
    /// Sending its settings.
    Init,
    /// Reading its capabilities.
    Capabilities,
    /// Waiting until it serves.
    Health,
}

impl fmt::Display for LaunchStep {
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

/// A plugin's last output, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastOutput(pub(crate) Option<Sanitized>);

impl fmt::Display for LastOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(words) => write!(f, "; its last words: {words}"),
            None => f.write_str("; it said nothing"),
        }
    }
}

/// Why a plugin did not start. The texts end with what to do next; plugin text in them is bounded and
/// sanitized. Nothing of the start is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LaunchError {
    /// The program on the disk may not run.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The read-only copy could not be made.
    #[error(transparent)]
    View(ViewError),
    /// There is no uid for it.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// It needs its own uid, and the supervisor lacks the capabilities to set one.
    #[error(
        "it needs its own uid, and the supervisor lacks CAP_CHOWN, CAP_SETUID or CAP_SETGID: grant them, or set sandbox.mode to best-effort"
    )]
    NoUid,
    /// Its private directory could not be made.
    #[error("its private directory cannot be made: {}; {}", .0, descriptor_help(.0).unwrap_or("check that the runtime directory has room"))]
    Directory(#[source] io::Error),
    /// Its cgroup could not be created.
    #[error("its cgroup cannot be made: {0}")]
    Group(#[from] GroupError),
    /// Its list of allowed hosts cannot be parsed.
    #[error(transparent)]
    Egress(#[from] AllowListError),
    /// Its view of the files cannot be built.
    #[error("its view of the files cannot be built: {0}; correct its sandbox.fs")]
    Isolation(#[source] talon_jail::ViewError),
    /// Its interpreter is not in its view.
    #[error(
        "its interpreter {} lies outside of what it sees: grant it with plugins.tools.overrides.{plugin}.sandbox.fs.execute: [{:?}]",
        interpreter.display(), grant
    )]
    Interpreter {
        /// The interpreter, with links resolved.
        interpreter: PathBuf,
        /// The directory to grant, which also holds its libraries.
        grant: PathBuf,
        /// The plugin's name.
        plugin: PluginName,
    },
    /// The jail refused, or could not be built.
    #[error("its jail cannot be built: {0}")]
    Spawn(#[from] SpawnError),
    /// The supervisor is out of a resource such as descriptors.
    #[error("the supervisor cannot watch it: {}; {}", .0, descriptor_help(.0).unwrap_or("raise the supervisor's limit on open files"))]
    Watch(#[source] io::Error),
    /// It ended before it was ready.
    #[error("ended with {exit} while {step}{words}{}", hint(*step, exit, words))]
    Exited {
        /// Its exit status.
        exit: Exit,
        /// The step during which it ended.
        step: LaunchStep,
        /// Its last output.
        words: LastOutput,
    },
    /// It closed its standard output without a handshake and still runs.
    #[error(
        "closed its standard output before its handshake{words}; a plugin prints one handshake line and keeps its output open"
    )]
    Closed {
        /// Its last output.
        words: LastOutput,
    },
    /// It printed too much before its handshake.
    #[error("printed more than {lines} lines or {} KiB before its handshake; let it print the handshake line first, and anything else to standard error", bytes >> 10)]
    TooMuchOutput {
        /// The most lines.
        lines: usize,
        /// The most bytes.
        bytes: usize,
    },
    /// Its handshake line is not accepted.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// It wants TLS, which is not configured.
    #[error(
        "it wants TLS (its handshake holds a certificate), and its tls is off: set `tls: auto-mtls` for it, or turn TLS off in the plugin"
    )]
    UnwantedTls,
    /// TLS is configured, but cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// It multiplexes its listener.
    #[error(
        "it multiplexes its listener (yamux), which Talon does not speak: turn gRPC broker multiplexing off in the plugin"
    )]
    Multiplexed,
    /// It listens in a network namespace of its jail.
    #[error(
        "it listens on the TCP address {addr} inside its own network, which the supervisor cannot reach: let it use a unix socket, or set sandbox.network to full for it"
    )]
    TcpInside {
        /// The address.
        addr: SocketAddr,
    },
    /// The address is not the plugin's own, or does not answer.
    #[error("{0}")]
    Connect(Sanitized, #[source] Option<ConnectError>),
    /// It exceeded the budget of HTTP/2 frames of its connection, which was closed.
    #[error(
        "flooded its connection: {0}; report it to the plugin's author, or raise plugins.tools.frames if it needs that many"
    )]
    Flooded(FrameFloodError),
    /// It refused its settings.
    #[error("it refused its settings (Init): {0}; correct its config")]
    Init(InitError),
    /// It does not serve the service that its configuration names.
    #[error(
        "it does not serve PluginService as {service} ({cause}): set its `service` to the full name under which it serves the \
         methods of opentalon.plugin.v1.PluginService; for a program of another proto, set its `descriptor`, too (docs/go-plugin.md)"
    )]
    Service {
        /// What it answered.
        cause: Sanitized,
        /// The service that was asked.
        service: String,
    },
    /// Its capabilities could not be read.
    #[error("its Capabilities cannot be read: {0}; see its log")]
    Capabilities(Sanitized),
    /// It declares what it may not.
    #[error(transparent)]
    Declaration(#[from] CapabilityError),
    /// Its health check failed.
    #[error("its health cannot be read: {0}; it has to serve grpc.health.v1, or nothing of that name")]
    Health(Sanitized),
    /// It took too long.
    #[error("was not ready within {} s: time ran out while {step}{words}; raise its start_timeout if it needs longer", after.as_secs_f32())]
    TimedOut {
        /// Its start timeout.
        after: Duration,
        /// The step during which the time ran out.
        step: LaunchStep,
        /// Its last output.
        words: LastOutput,
    },
    /// The last good program was not available, and the one on the disk did not become ready.
    #[error(
        "the program that was last ready cannot be started again, because {why}; of what lies on the disk now: {error}"
    )]
    FallbackFailed {
        /// Why the last good program is not available.
        why: LastGoodUnavailable,
        /// The error of the program on the disk.
        error: Box<LaunchError>,
    },
    /// The start was cancelled.
    #[error("its start was cancelled")]
    Cancelled,
    /// The supervisor is stopping.
    #[error("the supervisor is stopping")]
    Stopping,
}

impl LaunchError {
    /// The whole cause in one bounded line that ends with what to do next.
    #[must_use]
    pub(crate) fn describe(&self) -> Sanitized {
        let cause = Raw::of(self).line();
        // Every step of a start opens files and sockets, so whatever failed, the limit is what has to be raised.
        match missing_descriptor(self) {
            Some(help) if !cause.contains(help) => sanitized!("{}; {}", cause, Sanitized::literal(help)),
            _ => cause,
        }
    }

    /// Whether an exit of the plugin can cause this error.
    pub(super) fn may_be_an_exit(&self) -> bool {
        matches!(self, Self::Connect(..) | Self::Init(_) | Self::Capabilities(_) | Self::Health(_))
    }

    /// What it says about the next start.
    #[must_use]
    pub(crate) fn kind(&self) -> FailureKind {
        match self {
            Self::Exited { exit, .. } if exit.status == ExitStatus::Code(OUTAGE_EXIT) => FailureKind::Outage,
            Self::Flooded(_) => FailureKind::FrameFlood,
            Self::FallbackFailed { error, .. } => error.kind(),
            _ if self.is_permanent() => FailureKind::Permanent,
            _ => FailureKind::Passing,
        }
    }

    /// Whether the same start would fail again until something on the disk, in the configuration or on the
    /// machine is changed.
    #[must_use]
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Self::Check(error) => !matches!(
                error,
                CheckError::Program(talon_plugin_config::files::ProgramError::Io { .. })
                    | CheckError::Directory(talon_plugin_config::files::TreeError::Io { .. })
            ),
            Self::View(error) => !matches!(error, ViewError::Copy { .. }),
            Self::Identity(error) => !matches!(error, IdentityError::Io { .. }),
            Self::Spawn(error) => {
                matches!(
                    error,
                    SpawnError::Step { .. }
                        | SpawnError::Spec(_)
                        | SpawnError::Encode(_)
                        | SpawnError::SpecTooLarge { .. }
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
            Self::Exited { exit, step, words } => {
                exit.status == ExitStatus::Code(PERMANENT_EXIT) || needs_cookie(*step, exit, words)
            }
            Self::Init(error) => matches!(error, InitError::Refused(_)),
            Self::UnwantedTls
            | Self::Service { .. }
            | Self::Multiplexed
            | Self::NoUid
            | Self::TcpInside { .. }
            | Self::Isolation(_)
            | Self::Egress(_)
            | Self::Interpreter { .. } => true,
            Self::FallbackFailed { error, .. } => error.is_permanent(),
            Self::Connect(_, source) => matches!(source, Some(ConnectError::TcpNotAllowed { .. })),
            _ => false,
        }
    }
}

/// What to do, if an error was caused by a lack of descriptors.
fn missing_descriptor(error: &LaunchError) -> Option<&'static str> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .find_map(descriptor_help)
}

/// The exit code of a plugin that cannot start because something that it depends on is away: `EX_TEMPFAIL` of
/// sysexits.h, "the user is invited to retry later". Our bridges use it.
const OUTAGE_EXIT: i32 = 75;

/// The exit code of a plugin that cannot start until something is set up otherwise: `EX_CONFIG` of sysexits.h. Our bridges
/// use it for a server whose code cannot be loaded.
const PERMANENT_EXIT: i32 = 78;

/// What a go-plugin program prints before it ends with exit code 1, if its cookie is not in its environment.
const NO_COOKIE: &str = "not meant to be executed directly";

/// Whether a program ended because it expects another cookie, which it would do again.
fn needs_cookie(step: LaunchStep, exit: &Exit, words: &LastOutput) -> bool {
    step == LaunchStep::Handshake
        && exit.status == talon_jail::ExitStatus::Code(1)
        && words.0.as_ref().is_some_and(|words| words.contains(NO_COOKIE))
}

/// The usual cause of such an exit.
fn hint(step: LaunchStep, exit: &Exit, words: &LastOutput) -> &'static str {
    use ExitStatus::{Code, Signal};

    if step != LaunchStep::Handshake {
        return "; see its log";
    }
    match exit.status {
        Code(1) if needs_cookie(step, exit, words) => {
            "; it expects its own magic cookie: set `cookie` to the key and value that its host gives it"
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

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-52
    #[test]
    fn a_start_without_a_descriptor_names_the_limit() {
        let without = || io::Error::from(rustix::io::Errno::MFILE);
        let spawn = SpawnError::Resource { what: "pipe", source: without() };
        for error in
            [LaunchError::Directory(without()), LaunchError::Watch(without()), LaunchError::Spawn(spawn)]
        {
            let text = error.to_string();
            assert!(text.contains("no descriptor is left") && text.contains("LimitNOFILE="), "{text}");
        }
        let full = LaunchError::Directory(rustix::io::Errno::NOSPC.into()).to_string();
        assert!(full.ends_with("check that the runtime directory has room"), "{full}");
    }
}
