//! What stands for TLS in a build without it: nothing of it can exist.

use super::{Plain, TlsError};
use crate::handover::HandedIdentity;

/// A connection that was encrypted.
pub(crate) type Secured = Plain;

/// Who we are to one process.
#[derive(Debug)]
pub(crate) enum ClientIdentity {}

/// TLS with one process.
#[derive(Debug, Clone)]
pub(crate) enum Tls {}

impl ClientIdentity {
    pub(crate) fn make() -> Result<(Self, String), TlsError> {
        Err(TlsError::NotBuilt)
    }

    pub(crate) fn hand_over(&self) -> HandedIdentity {
        match *self {}
    }

    pub(crate) fn take_over(_handed: &HandedIdentity) -> Result<Self, TlsError> {
        Err(TlsError::NotBuilt)
    }

    pub(crate) fn with_server(&self, _field: &str) -> Result<Tls, TlsError> {
        match *self {}
    }
}

impl Tls {
    pub(crate) async fn secure(&self, _io: Plain) -> Result<Secured, TlsError> {
        match *self {}
    }
}
