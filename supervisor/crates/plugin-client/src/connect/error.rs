//! Why there is no connection to a plugin.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use talon_sanitize::Sanitized;

/// The timeout of the TLS handshake: the plugin's half of a key exchange takes less than ten seconds even on
/// a loaded machine. Then the connection is given up, because other calls wait for it.
pub(super) const TLS_HANDSHAKE: Duration = Duration::from_secs(10);

/// Why there is no connection. Texts of the plugin are bounded and without control characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Its handshake named an address outside its own directory.
    #[error("its handshake names {shown:?}, which is not in its own directory {}: it has to make its socket in PLUGIN_UNIX_SOCKET_DIR or TMPDIR", dir.display())]
    Outside {
        /// The address.
        shown: Sanitized,
        /// Its own directory.
        dir: PathBuf,
    },
    /// It listens on TCP, which is not allowed.
    #[error(
        "it listens on the TCP address {addr}, which other users of this machine can reach: let it use a unix socket, or set allow_tcp for it"
    )]
    TcpNotAllowed {
        /// The address.
        addr: SocketAddr,
    },
    /// The socket cannot be opened.
    #[error(
        "the socket {shown:?} that its handshake names cannot be opened: {source}; a plugin has to listen before it prints the line"
    )]
    Open {
        /// The path.
        shown: Sanitized,
        /// Why; a symlink shows as ELOOP.
        source: io::Error,
    },
    /// The path is not a socket.
    #[error("{shown:?}, which its handshake names, is no socket")]
    NoSocket {
        /// The path.
        shown: Sanitized,
    },
    /// The socket or its listener belongs to another user.
    #[error("{what} belongs to uid {found}, and the plugin runs as uid {expected}")]
    WrongUid {
        /// What belongs to the other user.
        what: &'static str,
        /// Its uid.
        found: u32,
        /// The plugin's uid.
        expected: u32,
    },
    /// The listener is not one of the plugin's processes.
    #[error("process {pid}, which listens on its socket, is none of the plugin's processes")]
    WrongProcess {
        /// The listener.
        pid: i32,
    },
    /// The process that made the listener is gone.
    #[error(
        "process {pid}, which made its socket, has ended: a plugin has to serve on it as long as it runs"
    )]
    ListenerEnded {
        /// The process.
        pid: i32,
    },
    /// The connection failed.
    #[error("cannot connect to {shown:?}: {source}")]
    Connect {
        /// The address.
        shown: Sanitized,
        /// Why.
        source: io::Error,
    },
    /// TLS could not be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Why there is no TLS with a plugin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// This build does not include TLS.
    #[error(
        "its tls is auto-mtls, and this program was built without TLS: build it with the feature `tls`, or set its tls to off"
    )]
    NotBuilt,
    /// The supervisor's certificate could not be created.
    #[error(
        "the certificate that it is to know its host by cannot be made: {0}; set its tls to off to run it without"
    )]
    Make(Sanitized),
    /// The plugin was asked for TLS, but its handshake holds no certificate.
    #[error(
        "its tls is auto-mtls, and its handshake holds no certificate: a program that serves with HashiCorp's go-plugin prints one when it is asked, others do not know of it; set its tls to off"
    )]
    NoCertificate,
    /// The certificate in the handshake is malformed.
    #[error(
        "the sixth field of its handshake {problem}: it has to be the server's certificate, DER in base64 without padding, as HashiCorp's go-plugin prints it"
    )]
    Certificate {
        /// What is wrong.
        problem: &'static str,
    },
    /// Its server presents another certificate.
    #[error(
        "the certificate that its server shows is not the one in its handshake: the process that answers on its socket did not print the line; let the plugin serve with the certificate that it prints"
    )]
    OtherCertificate,
    /// The TLS handshake failed.
    #[error(
        "TLS with it failed: {0}; it has to speak TLS 1.2 or later and to take the certificate in PLUGIN_CLIENT_CERT, or set its tls to off"
    )]
    Failed(Sanitized),
    /// The TLS handshake timed out.
    #[error("its TLS handshake was not over within {} s; see its log, or set its tls to off", TLS_HANDSHAKE.as_secs())]
    TimedOut,
}
