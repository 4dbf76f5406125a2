//! A document and its descriptors, for the handover from one supervisor to the next.
//!
//! ```text
//! packing:    Packer::add(descriptor) ─► FdIndex, which is written into the document ─► seal ─► one descriptor
//! unpacking:  open ─► the document's FdIndex ─► Unpacker::take ─► the descriptor
//! ```
//!
//! Unread data and descriptors in a socket live as long as the socket. So a sealed bundle is one descriptor:
//! a socket that holds one packet. Whoever has this descriptor has the whole bundle, such as a service
//! manager's store, or a message in flight.
//!
//! ```text
//! bundle ── one packet: header · the document in a sealed memory file · a socket for every 250 descriptors
//!                                                                        └── one packet: number · descriptors
//! ```
//!
//! Opening only peeks at the packets: if a supervisor opens a bundle and then fails to start, the bundle is
//! still complete for the next.

mod codec;

use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

pub use codec::{MAX_DESCRIPTORS, MAX_DOCUMENT_BYTES, OpenError, SealError, open, seal};

/// The index of a descriptor in a bundle, as the document writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FdIndex(u32);

/// Collects descriptors.
#[derive(Debug, Default)]
pub struct Packer {
    descriptors: Vec<OwnedFd>,
}

/// Returns the descriptors one by one; the remaining ones are closed on drop.
#[derive(Debug, Default)]
pub struct Unpacker {
    descriptors: Vec<Option<OwnedFd>>,
}

/// The document refers to a descriptor that is not in its bundle, or twice to the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the parcel has no descriptor {}, or it was taken already", .0.0)]
pub struct MissingFdError(FdIndex);

impl Packer {
    /// Adds a descriptor.
    pub fn add(&mut self, descriptor: OwnedFd) -> FdIndex {
        let place = u32::try_from(self.descriptors.len()).unwrap_or(u32::MAX);
        self.descriptors.push(descriptor);
        FdIndex(place)
    }

    /// The number of descriptors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// Whether there are no descriptors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// All descriptors, in the order of their indices.
    #[must_use]
    pub fn into_descriptors(self) -> Vec<OwnedFd> {
        self.descriptors
    }
}

impl Unpacker {
    /// The descriptors of a bundle, in their order.
    #[must_use]
    pub fn new(descriptors: Vec<OwnedFd>) -> Self {
        Self { descriptors: descriptors.into_iter().map(Some).collect() }
    }

    /// Takes the descriptor with this index.
    ///
    /// # Errors
    /// [`MissingFdError`]
    pub fn take(&mut self, ticket: FdIndex) -> Result<OwnedFd, MissingFdError> {
        let place = usize::try_from(ticket.0).ok().and_then(|place| self.descriptors.get_mut(place));
        place.and_then(Option::take).ok_or(MissingFdError(ticket))
    }
}
