//! What an operator may put into a plugin's environment, and which variables are reserved.

use crate::spec::PluginSpec;

/// What plugins inherit from the supervisor's environment unless the operator configures otherwise: the
/// program search path, the language, the time zone. A name may end in `*`.
pub const DEFAULT_ENV_ALLOW_LIST: [&str; 4] = ["PATH", "LANG", "LC_*", "TZ"];

/// The environment variable with the path of the egress proxy's socket.
pub const PROXY_SOCKET_VARIABLE: &str = "TALON_PROXY_SOCKET";

/// The environment variable that tells a plugin where the socket of its key-value store is.
pub const STATE_SOCKET_VARIABLE: &str = "TALON_STATE_SOCKET";

/// The environment variable that tells a plugin where the socket for completions of language models is.
pub const MODEL_SOCKET_VARIABLE: &str = "TALON_MODEL_SOCKET";

/// The variables by which common programs find a file of certificates that they trust: OpenSSL with most languages,
/// Python's requests, curl, Node, git, AWS, Deno, pip and gRPC.
pub const CA_VARIABLES: [&str; 9] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
    "PIP_CERT",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
];

/// The most variables, and the most bytes of one, that the operator may add: enough for any configuration,
/// and far below the kernel's limit.
const MAX_VARIABLES: usize = 1024;
const MAX_VARIABLE_BYTES: usize = 128 << 10;

/// Reserved: names with these prefixes belong to the handshake.
const RESERVED_PREFIXES: [&str; 2] = ["PLUGIN_", "TALON_PLUGIN_"];
/// Reserved: the writable directory and the passed sockets are part of the handshake, too.
const RESERVED: [&str; 5] =
    ["TMPDIR", LISTEN_VARIABLE, PROXY_SOCKET_VARIABLE, STATE_SOCKET_VARIABLE, MODEL_SOCKET_VARIABLE];

/// Tells a program the number of the listening socket that was passed to it: 0, its standard input, because
/// that is the only descriptor that every language passes on by default. A program that ignores it creates
/// its own socket.
pub const LISTEN_VARIABLE: &str = "TALON_LISTEN_FD";

/// Names that the cookie's variable cannot have, because every program interprets them differently.
const FORBIDDEN_COOKIE_KEYS: [&str; 6] = ["PATH", "HOME", "TMPDIR", "LANG", "TZ", "LD_PRELOAD"];

/// Whether a variable of this name is part of the handshake.
#[must_use]
pub fn is_reserved(name: &str, cookie_key: &str) -> bool {
    name == cookie_key || RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|p| name.starts_with(p))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Why variables cannot be set. The messages end with what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// More than 1,024 variables.
    #[error("{count} variables, and at most {MAX_VARIABLES} are taken: remove some, or pass a file")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// A name or a value that the kernel does not take.
    #[error("{name:?} is no variable: a name holds no '=', and neither part a NUL")]
    NotAVariable {
        /// The name.
        name: String,
    },
    /// A name and a value of more than 128 KiB.
    #[error("{name} is longer than {MAX_VARIABLE_BYTES} bytes: pass a file instead")]
    TooLong {
        /// The name.
        name: String,
    },
    /// A name that belongs to the handshake.
    #[error("{name} belongs to the handshake, which Talon sets itself: remove it")]
    Reserved {
        /// The name.
        name: String,
    },
    /// A name or a value that cannot be the cookie's.
    #[error("{key:?} cannot be the cookie's variable: choose another cookie.key")]
    Cookie {
        /// The configured name.
        key: String,
    },
}

/// Checks what the operator adds.
///
/// # Errors
/// [`EnvironmentError`], for the first problem.
pub fn check(spec: &PluginSpec) -> Result<(), EnvironmentError> {
    if spec.env.len() > MAX_VARIABLES {
        return Err(EnvironmentError::TooMany { count: spec.env.len() });
    }
    for (name, value) in &spec.env {
        if !is_name(name) || value.contains('\0') {
            return Err(EnvironmentError::NotAVariable { name: name.clone() });
        }
        if name.len() + value.len() > MAX_VARIABLE_BYTES {
            return Err(EnvironmentError::TooLong { name: name.clone() });
        }
        if is_reserved(name, &spec.cookie.key) {
            return Err(EnvironmentError::Reserved { name: name.clone() });
        }
    }
    let cookie = &spec.cookie;
    let handshake = cookie.key.starts_with("PLUGIN_");
    if !is_name(&cookie.key)
        || cookie.value.contains('\0')
        || FORBIDDEN_COOKIE_KEYS.contains(&cookie.key.as_str())
        || handshake
    {
        return Err(EnvironmentError::Cookie { key: cookie.key.clone() });
    }
    Ok(())
}
