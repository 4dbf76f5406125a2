use super::*;
use crate::network::LoopbackListeners;
use crate::profile::CompiledProfile;
use crate::view::View;

fn asks(network: Network, landlock_abi: u32) -> Isolation {
    let profile = CompiledProfile { name: "ports".into(), landlock_abi, ..CompiledProfile::default() };
    Isolation { view: View::default(), network, listeners: LoopbackListeners::default(), profile }
}

#[test]
fn a_kernel_that_has_too_little_is_told_with_what_to_do() {
    let refusal = |abi, isolation: &Isolation| check_abi(abi, isolation).unwrap_err().reason;
    let profile = asks(Network::Loopback, 4);
    assert_eq!(
        refusal(2, &profile),
        "kernel has ABI 2, profile `ports` asks 4 (use a newer kernel, or another profile)"
    );
    assert!(check_abi(4, &profile).is_ok());

    let listed = asks(Network::Host { connect: None, bind: Some(vec![80]) }, 0);
    assert!(refusal(3, &listed).contains("a list of ports asks 4"));
    assert!(check_abi(4, &listed).is_ok());

    let nothing = asks(Network::Host { connect: None, bind: None }, 0);
    assert!(refusal(1, &nothing).contains("every profile asks 2"));
    assert!(check_abi(2, &nothing).is_ok());
}

#[test]
fn what_an_older_kernel_does_not_cover_is_named() {
    let text = |abi, network: &Network| match status(abi, &asks(network.clone(), 0)) {
        Status::StandIn(text) => text,
        other => panic!("{other:?}"),
    };
    let two = text(2, &Network::None);
    for part in ["ABI 2", "truncating", "TCP ports", "device commands", "signals"] {
        assert!(two.contains(part), "{two}");
    }
    assert!(!text(2, &Network::Loopback).contains("TCP"));
    assert!(!text(5, &Network::None).contains("device"));
    for abi in [6, 7, 99] {
        assert_eq!(status(abi, &asks(Network::None, 0)), Status::Enforced);
    }
}

#[test]
fn that_sockets_can_be_connected_to_is_named_where_there_may_be_any() {
    let mut granted = asks(Network::None, 0);
    granted.view.may_hold_sockets = true;
    for abi in [6, 8] {
        let expected = format!(
            "kernel has ABI {abi}: sockets below what it may read can be connected to (Linux 7.1 covers that)"
        );
        assert_eq!(status(abi, &granted), Status::StandIn(expected));
    }
    let Status::StandIn(both) = status(5, &granted) else { panic!("ABI 5 covers all of it") };
    assert!(both.contains("signals are left") && both.contains("; sockets below"), "{both}");
    assert_eq!(status(9, &granted), Status::Enforced);
}

#[test]
fn a_kernel_newer_than_the_library_is_taken_for_the_newest_known() {
    assert_eq!(library_abi(u32::MAX), library_abi(99));
    assert_eq!(library_abi(0), ABI::Unsupported);
}
