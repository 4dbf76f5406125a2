//! TLS connections. The server is always verified: encryption to an unknown server would keep nothing secret.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use talon_error_chain::error_chain;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::open_error::OpenError;

/// Trusts the certificates of a file, or those of the system.
pub(super) fn connector(root_cert: Option<&str>) -> Result<MakeRustlsConnect, OpenError> {
    let roots = match root_cert {
        None | Some("system") => system_roots()?,
        Some(file) => file_roots(Path::new(file))?,
    };
    // Set explicitly, since another crate of the same program may have installed another provider.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| OpenError::Server(error_chain(&error)))?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}

fn system_roots() -> Result<RootCertStore, OpenError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (trusted, _unreadable) = roots.add_parsable_certificates(found.certs);
    if trusted == 0 {
        let why = found.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(OpenError::Server(format!(
            "this system trusts no certificates{why}: install ca-certificates, or say `sslrootcert=FILE`"
        )));
    }
    Ok(roots)
}

fn file_roots(file: &Path) -> Result<RootCertStore, OpenError> {
    let bytes =
        std::fs::read(file).map_err(OpenError::file(file, "the trusted certificates cannot be read"))?;
    let refused = |why: String| OpenError::Server(format!("{}: {why}", file.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| refused(error.to_string()))?;
        roots.add(certificate).map_err(|error| refused(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(refused("there is no certificate in it (PEM is expected)".to_owned()));
    }
    Ok(roots)
}
