use std::os::fd::AsFd;

use super::*;

#[test]
fn an_exit_status_survives_a_monitor_that_left_with_an_order_unread() {
    let (supervisor, monitor) = socket_pair().unwrap();
    send(monitor.as_fd(), &StageNote::Ended(ExitStatus::Code(3)), &[]).unwrap();
    send(supervisor.as_fd(), &StageCommand::KillAll, &[]).unwrap();
    drop(monitor);
    let ReceiveOutcome::Packet(StageNote::Ended(status), _) = receive(&supervisor).unwrap() else {
        panic!("not the note")
    };
    assert_eq!(status, ExitStatus::Code(3));
    assert!(matches!(receive::<StageNote>(&supervisor).unwrap(), ReceiveOutcome::Closed));
}

#[test]
fn nothing_is_not_the_same_as_closed() {
    let (ours, theirs) = socket_pair().unwrap();
    assert!(matches!(receive::<StageNote>(&ours).unwrap(), ReceiveOutcome::Empty));
    drop(theirs);
    assert!(matches!(receive::<StageNote>(&ours).unwrap(), ReceiveOutcome::Closed));
}

#[test]
fn a_text_of_any_length_and_kind_fits_a_packet() {
    let (ours, theirs) = socket_pair().unwrap();
    for text in ["\u{1}".repeat(100_000), "é".repeat(100_000), "ascii".to_owned()] {
        send(theirs.as_fd(), &StageNote::failed("directory", &text), &[]).unwrap();
        let ReceiveOutcome::Packet(StageNote::Failed { reason, .. }, _) = receive(&ours).unwrap() else {
            panic!()
        };
        assert!(text.starts_with(&reason) && !reason.is_empty());
    }
}

#[test]
fn garbage_is_an_error() {
    let (ours, theirs) = socket_pair().unwrap();
    rustix::io::write(&theirs, b"{]").unwrap();
    assert!(receive::<StageNote>(&ours).is_err());
}

#[test]
fn more_descriptors_than_agreed_are_an_error_and_are_closed() {
    let (ours, theirs) = socket_pair().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let many = [writer.as_fd(); DESCRIPTORS_MAX + 1];
    assert!(send(theirs.as_fd(), &StageCommand::KillAll, &many).is_err());

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX + 1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    assert!(beside.push(SendAncillaryMessage::ScmRights(&many)));
    sendmsg(&theirs, &[IoSlice::new(b"\"KillAll\"")], &mut beside, SendFlags::empty()).unwrap();
    assert!(receive::<StageCommand>(&ours).is_err());
    drop(writer);
    assert_eq!(rustix::io::read(&reader, &mut [0_u8; 1]), Ok(0), "somebody still holds the pipe");
}
