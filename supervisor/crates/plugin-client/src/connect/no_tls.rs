//! Replaces TLS in a build without it: its types cannot be constructed.

use super::error::TlsError;
use super::identity_record::IdentityRecord;
use super::stream::PlainStream;

/// An encrypted connection.
pub(crate) type EncryptedStream = PlainStream;

/// The client certificate for one process.
#[derive(Debug)]
pub enum ClientIdentity {}

/// TLS with one process.
#[derive(Debug, Clone)]
pub enum Tls {}

impl ClientIdentity {
    /// Refused: this build has no TLS.
    pub fn make() -> Result<(Self, String), TlsError> {
        Err(TlsError::NotBuilt)
    }

    /// Cannot be called: there is no identity without TLS.
    pub fn hand_over(&self) -> IdentityRecord {
        match *self {}
    }

    /// Refused: this build has no TLS.
    pub fn take_over(_handed: &IdentityRecord) -> Result<Self, TlsError> {
        Err(TlsError::NotBuilt)
    }

    /// Cannot be called: there is no identity without TLS.
    pub fn with_server(&self, _field: &str) -> Result<Tls, TlsError> {
        match *self {}
    }
}

impl Tls {
    /// Cannot be called: there is no TLS.
    pub async fn secure(&self, _io: PlainStream) -> Result<EncryptedStream, TlsError> {
        match *self {}
    }
}
