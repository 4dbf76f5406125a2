//! What the gateway is told: its settings, with the certificate that they name.

use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use talon_extensions::{Activation, Extensions};
use talon_proto::gateway::{Configure, Limits, Tls};

use crate::blocking::blocking;
use crate::config::{Config, GatewayTls, Role, regular_file};

/// The largest file of a certificate or key: a chain has some kilobytes.
const MAX_FILE_BYTES: u64 = 512 << 10;

/// Why a certificate is not handed over. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
pub(super) enum CertificateError {
    #[error("gateway.tls: {} cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("gateway.tls: {} has more than {MAX_FILE_BYTES} bytes, which no certificate has", path.display())]
    TooLarge { path: PathBuf },
    #[error("gateway.tls.key: others may read {}: chmod 600 it", path.display())]
    Exposed { path: PathBuf },
}

/// Everything for a `Configure`: the message, and the certificate with its key and what the gateway needs of the extensions, if there are any.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct GatewayConfiguration {
    pub(super) message: Configure,
    pub(super) file: Vec<u8>,
}

/// Reads what the gateway is told.
///
/// # Errors
/// [`CertificateError`]
pub(super) async fn read_configuration(
    config: &Arc<Config>,
) -> Result<GatewayConfiguration, CertificateError> {
    let config = Arc::clone(config);
    blocking(move || collect(&config)).await
}

/// Blocking: it reads files.
fn collect(config: &Config) -> Result<GatewayConfiguration, CertificateError> {
    let gateway = &config.gateway;
    let (tls, bytes) = match &gateway.tls {
        Some(GatewayTls { certificate, key }) => {
            let mut bytes = read(certificate, false)?;
            let certificate_bytes = length(bytes.len());
            let key = read(key, true)?;
            let key_bytes = length(key.len());
            bytes.extend(key);
            (Some(Tls { certificate_bytes, key_bytes }), bytes)
        }
        None => (None, Vec::new()),
    };
    let Extensions { routes, auth, .. } = config.extensions.clone();
    let extensions = Extensions { routes, auth, ..Extensions::default() }.to_bytes();
    let extensions_bytes = length(extensions.len());
    let bytes = [bytes, extensions].concat();
    let limits = &gateway.limits;
    let milliseconds = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let message = Configure {
        address: gateway.address.to_string(),
        // Known when it is sent.
        listener_follows: false,
        tls,
        hosts: gateway.hosts.clone(),
        origins: gateway.origins.clone(),
        proxies: gateway.behind_proxy.as_ref().map(|proxy| proxy.addresses.clone()).unwrap_or_default(),
        max_role: role_name(gateway.max_role).to_owned(),
        tokens: gateway.tokens,
        extensions_bytes,
        activation: match gateway.routing.activation {
            Activation::Mention => "mention",
            Activation::Always => "always",
        }
        .to_owned(),
        names: gateway.routing.names.clone(),
        limits: Some(Limits {
            connections: limits.connections,
            connections_per_address: limits.connections_per_address,
            header_timeout_ms: milliseconds(limits.header_timeout.get()),
            body_timeout_ms: milliseconds(limits.body_timeout.get()),
            body_bytes: length(limits.body.as_usize()),
            requests_per_minute: limits.requests_per_minute,
            requests_per_minute_per_address: limits.requests_per_minute_per_address,
            websockets: limits.websockets,
            websockets_per_caller: limits.websockets_per_caller,
            messages_per_websocket: limits.messages_per_websocket,
            background_turns: limits.background_turns,
            unread_timeout_ms: milliseconds(limits.unread_timeout.get()),
        }),
    };
    Ok(GatewayConfiguration { message, file: bytes })
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Call => "call",
        Role::Operate => "operate",
        Role::Admin => "admin",
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn read(path: &Path, is_secret: bool) -> Result<Vec<u8>, CertificateError> {
    let failed = |source| CertificateError::Read { path: path.to_owned(), source };
    let file = regular_file::open(path).map_err(|error| failed(io::Error::other(error)))?;
    let metadata = file.metadata().map_err(failed)?;
    if is_secret && metadata.mode() & 0o077 != 0 {
        return Err(CertificateError::Exposed { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if length(bytes.len()) > MAX_FILE_BYTES {
        return Err(CertificateError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    // Promises: GW-8
    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        std::fs::write(&path, "secret").unwrap();
        for (mode, fits) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path, true).is_ok(), fits, "{mode:o}");
        }
        assert_eq!(read(&path, false).unwrap(), b"secret");
        std::fs::write(dir.path().join("large"), vec![0; 600 << 10]).unwrap();
        assert!(matches!(read(&dir.path().join("large"), false), Err(CertificateError::TooLarge { .. })));
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for none in [dir.path(), &fifo] {
            assert!(matches!(read(none, true), Err(CertificateError::Read { .. })), "{}", none.display());
        }
    }
}
