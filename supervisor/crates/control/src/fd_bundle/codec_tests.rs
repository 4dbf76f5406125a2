use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use rustix::pipe::pipe;

use super::*;
use crate::fd_bundle::FdIndex;

/// A pipe that holds its number, to distinguish it from the others.
fn marked(number: u32) -> OwnedFd {
    let (reads, writes) = pipe().unwrap();
    File::from(writes).write_all(&number.to_le_bytes()).unwrap();
    reads
}

fn mark(descriptor: OwnedFd) -> u32 {
    let mut bytes = [0; 4];
    File::from(descriptor).read_exact(&mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

fn packed(count: u32) -> (Packer, Vec<FdIndex>) {
    let mut packer = Packer::default();
    let tickets = (0..count).map(|number| packer.add(marked(number))).collect();
    (packer, tickets)
}

// Promises: HANDOVER-34
#[test]
fn what_was_sealed_can_be_opened_again_and_again() {
    let (packer, tickets) = packed(2 * 250 + 1);
    let parcel = seal(b"{}", packer).unwrap();
    // Opened and not used, as by a supervisor that fails to start.
    drop(open(parcel.as_fd()).unwrap());
    let (document, mut unpacker) = open(parcel.as_fd()).unwrap();
    assert_eq!(document, b"{}");
    for (number, ticket) in (0..).zip(tickets) {
        assert_eq!(mark(unpacker.take(ticket).unwrap()), number);
        assert!(unpacker.take(ticket).is_err(), "it was taken");
    }
}

#[test]
fn it_keeps_what_is_in_it_and_lets_go_of_it() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut packer = Packer::default();
    packer.add(theirs.into());
    let parcel = seal(b"", packer).unwrap();
    ours.set_nonblocking(true).unwrap();
    let before = (&ours).read(&mut [0]).unwrap_err();
    assert_eq!(before.kind(), io::ErrorKind::WouldBlock, "the other end is kept in the parcel");
    drop(parcel);
    assert_eq!((&ours).read(&mut [0]).unwrap(), 0, "it went with the parcel");
}

#[test]
fn it_can_travel_in_a_parcel() {
    let (packer, tickets) = packed(3);
    let mut outer = Packer::default();
    let ticket = outer.add(seal(b"inner", packer).unwrap());
    let parcel = seal(b"outer", outer).unwrap();
    let (_, mut unpacker) = open(parcel.as_fd()).unwrap();
    let inner = unpacker.take(ticket).unwrap();
    drop(parcel);
    let (document, mut unpacker) = open(inner.as_fd()).unwrap();
    assert_eq!(document, b"inner");
    assert_eq!(mark(unpacker.take(tickets[2]).unwrap()), 2);
}

#[test]
fn what_is_empty_foreign_or_unsealed_is_refused() {
    let (keeps, sends) = crate::pair().unwrap();
    assert!(matches!(open(keeps.as_fd()), Err(OpenError::Empty)), "nobody has sent anything yet");
    drop(sends);
    assert!(matches!(open(keeps.as_fd()), Err(OpenError::Empty)), "nobody will");
    let strange = with_packet(b"TALONPC0\0\0\0\0", &[]).unwrap();
    assert!(matches!(open(strange.as_fd()), Err(OpenError::NotABundle)));
    let file = tempfile::tempfile().unwrap();
    assert!(matches!(open(file.as_fd()), Err(OpenError::Io { .. })));
    let unsealed = with_packet(b"TALONPC1\0\0\0\0", &[file.into()]).unwrap();
    assert!(matches!(open(unsealed.as_fd()), Err(OpenError::Unsealed)));
}

// Promises: HANDOVER-34
#[test]
fn what_is_cut_is_refused_whole() {
    let document = || memfd::seal("test", b"{}").unwrap();
    let chunk = |number: u32, marks: u32| {
        with_packet(&number.to_le_bytes(), &(0..marks).map(marked).collect::<Vec<_>>()).unwrap()
    };
    let parcel = |count: u32, parts: Vec<OwnedFd>| {
        with_packet(&[&MAGIC[..], &count.to_le_bytes()].concat(), &parts).unwrap()
    };
    let refused = |parcel: OwnedFd| open(parcel.as_fd()).unwrap_err();
    assert!(matches!(refused(parcel(0, Vec::new())), OpenError::Truncated(_)));
    assert!(matches!(refused(parcel(2, vec![document(), chunk(0, 1)])), OpenError::Truncated(_)));
    assert!(matches!(refused(parcel(1, vec![document(), chunk(1, 1)])), OpenError::Truncated(_)));
    assert!(matches!(refused(parcel(1, vec![document(), chunk(0, 2)])), OpenError::TooLarge));
    assert!(matches!(refused(parcel(u32::MAX, vec![document()])), OpenError::TooLarge));
}

// Promises: HANDOVER-34
#[test]
fn what_is_too_large_is_not_sealed() {
    let document = vec![0; usize::try_from(MAX_DOCUMENT_BYTES).unwrap() + 1];
    assert!(matches!(seal(&document, Packer::default()), Err(SealError::Document(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a first packet contains, opening it terminates, with an error unless it is a bundle.
    // Promises: HANDOVER-34
    #[test]
    fn no_packet_is_trusted(bytes in prop::collection::vec(any::<u8>(), 1..40), descriptors in 0_u32..4) {
        let packet = with_packet(&bytes, &(0..descriptors).map(marked).collect::<Vec<_>>()).unwrap();
        prop_assert!(open(packet.as_fd()).is_err());
    }

    #[test]
    fn any_document_and_number_of_descriptors_come_through(
        document in prop::collection::vec(any::<u8>(), 0..4096), count in 0_u32..600,
    ) {
        let (packer, tickets) = packed(count);
        let parcel = seal(&document, packer).unwrap();
        let (read, mut unpacker) = open(parcel.as_fd()).unwrap();
        prop_assert_eq!(read, document);
        for (number, ticket) in (0..).zip(tickets) {
            prop_assert_eq!(mark(unpacker.take(ticket).unwrap()), number);
        }
    }
}
