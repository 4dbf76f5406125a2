//! A document and the descriptors that it speaks of, for one supervisor to hand to the next.
//!
//! ```text
//! packing:    Packer::add(descriptor) ─► Ticket, which is written into the document ─► seal ─► one descriptor
//! unpacking:  open ─► the document's Ticket ─► Unpacker::take ─► the descriptor
//! ```
//!
//! What lies unread in a socket lives as long as that socket does. So a sealed parcel is one descriptor, a socket with one
//! packet in it, and whoever keeps that keeps all of it: a service manager, say, or a message on its way.
//!
//! ```text
//! parcel ── one packet: header · the document in a sealed memory file · a socket for every 250 descriptors
//!                                                                        └── one packet: number · descriptors
//! ```
//!
//! It is opened by looking, which takes nothing out: a supervisor that opens one and then cannot start leaves it whole for
//! the next that tries.

mod carry;

use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

pub use carry::{MAX_DESCRIPTORS, MAX_DOCUMENT_BYTES, OpenError, SealError, open, seal};

/// The place of a descriptor in a parcel, as the document writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticket(u32);

/// Collects descriptors.
#[derive(Debug, Default)]
pub struct Packer {
    descriptors: Vec<OwnedFd>,
}

/// Gives them out again; what nobody took is closed with it.
#[derive(Debug, Default)]
pub struct Unpacker {
    descriptors: Vec<Option<OwnedFd>>,
}

/// A document names a descriptor that is not in its parcel, or names one twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the parcel has no descriptor {}, or it was taken already", .0.0)]
pub struct NotThere(Ticket);

impl Packer {
    /// Puts a descriptor in.
    pub fn add(&mut self, descriptor: OwnedFd) -> Ticket {
        let place = u32::try_from(self.descriptors.len()).unwrap_or(u32::MAX);
        self.descriptors.push(descriptor);
        Ticket(place)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// All of them, in the order of their tickets.
    #[must_use]
    pub fn into_descriptors(self) -> Vec<OwnedFd> {
        self.descriptors
    }
}

impl Unpacker {
    /// Over the descriptors of a parcel, in their order.
    #[must_use]
    pub fn new(descriptors: Vec<OwnedFd>) -> Self {
        Self { descriptors: descriptors.into_iter().map(Some).collect() }
    }

    /// Takes one out.
    ///
    /// # Errors
    /// [`NotThere`]
    pub fn take(&mut self, ticket: Ticket) -> Result<OwnedFd, NotThere> {
        let place = usize::try_from(ticket.0).ok().and_then(|place| self.descriptors.get_mut(place));
        place.and_then(Option::take).ok_or(NotThere(ticket))
    }
}
