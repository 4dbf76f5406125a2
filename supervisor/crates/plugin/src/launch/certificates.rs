//! Certificates of a private authority for a plugin: one file with those of the system and the operator's, in its
//! private directory.
//!
//! One file, because the variables that programs read replace the system's certificates instead of adding to
//! them. A copy, because what the plugin sees must not change while it runs, and the original may lie where it
//! sees nothing else.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use talon_plugin_config::discover::CheckError;

use super::error::LaunchError;

/// The largest file of certificates of the operator's: hundreds of them. A larger one is another kind of file.
const MAX_CA_BYTES: u64 = 1 << 20;

/// The largest bundle of the system's. Debian's has 220 KiB.
const MAX_BUNDLE_BYTES: u64 = 8 << 20;

/// Where distributions have all certificates of the system in one file: Debian and Arch, Fedora, Alpine, openSUSE.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// Why a file of certificates cannot be used. The messages end with what to do next.
#[derive(Debug, thiserror::Error)]
enum CaFileError {
    #[error("cannot read {path}: {source}; correct the path, or let the supervisor's user read it")]
    Unreadable { path: String, source: io::Error },
    #[error("{path} has no certificate in PEM form: name a file with `{CERTIFICATE}`")]
    NoCertificate { path: String },
    #[error("{path} has a private key in it, which plugins would read: name a file of certificates alone")]
    PrivateKey { path: String },
}

/// The text of the file for a plugin: the system's certificates, then the operator's. Blocking.
pub(super) fn bundle(ca_file: &Path) -> Result<String, LaunchError> {
    let own = read_own(ca_file).map_err(|error| {
        LaunchError::from(CheckError::Setting { setting: "sandbox.ca_file", problem: error.to_string() })
    })?;
    let mut text = SYSTEM_BUNDLES
        .iter()
        .find_map(|path| read(Path::new(path), MAX_BUNDLE_BYTES).ok())
        .unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&own);
    Ok(text)
}

fn read_own(path: &Path) -> Result<String, CaFileError> {
    let shown = || path.display().to_string();
    let text =
        read(path, MAX_CA_BYTES).map_err(|source| CaFileError::Unreadable { path: shown(), source })?;
    if text.contains(PRIVATE_KEY) {
        return Err(CaFileError::PrivateKey { path: shown() });
    }
    if !text.contains(CERTIFICATE) {
        return Err(CaFileError::NoCertificate { path: shown() });
    }
    Ok(text)
}

/// A regular file of at most this size.
fn read(path: &Path, limit: u64) -> io::Result<String> {
    // A pipe would make it wait; a regular file is read as usual.
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    if file.take(limit + 1).read_to_string(&mut text)? as u64 > limit {
        return Err(io::Error::other(format!("it is larger than {} KiB", limit >> 10)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        let refusal = |text: &[u8]| {
            std::fs::write(&file, text).unwrap();
            bundle(&file).unwrap_err().to_string()
        };
        for (text, part) in [
            (&b"no certificate"[..], "name a file with"),
            (b"\xff\xfe", "cannot read"),
            (b"-----BEGIN CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----\n", "private key"),
            (&vec![b'x'; MAX_CA_BYTES as usize + 1], "larger than 1024 KiB"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.contains(part) && refusal.contains("sandbox.ca_file"), "{refusal}");
        }
        for path in [dir.path().join("absent"), dir.path().to_owned()] {
            assert!(bundle(&path).unwrap_err().to_string().contains("cannot read"));
        }
    }

    #[test]
    fn the_operators_certificates_follow_the_systems() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        let own = format!("{CERTIFICATE}\nours\n-----END CERTIFICATE-----\n");
        std::fs::write(&file, &own).unwrap();
        let text = bundle(&file).unwrap();
        assert!(text.ends_with(&own), "{text}");
        if let Ok(system) = std::fs::read_to_string(SYSTEM_BUNDLES[0]) {
            assert!(text.starts_with(&system));
        }
    }
}
