//! Keys of the supervisor's session are out of the program's reach.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::process::Command;

use common::*;
use talon_jail::Status;

/// What Perl hands to the kernel must be in variables.
const NAMES: &str = "my ($type, $name, $secret) = ('user', 'talon-keyring-test', 'secret');";

/// Looks for a key as `request_key` does, and prints whether there is one.
fn look() -> String {
    let request = libc::SYS_request_key;
    format!("{NAMES} print syscall({request}, $type, $name, 0, 0) > 0 ? 'found' : 'none';")
}

/// Begins a session with a key in it, as a supervisor might be started in one, and executes the rest there.
fn in_a_session_with_a_key() -> Option<Command> {
    if !Path::new("/usr/bin/perl").exists() || !Path::new("/proc/keys").exists() {
        eprintln!("skipped: no perl, or no keyrings in this kernel");
        return None;
    }
    let (keyctl, add) = (libc::SYS_keyctl, libc::SYS_add_key);
    let mut command = Command::new("/usr/bin/perl");
    command.arg("-e").arg(format!(
        "{NAMES}
         syscall({keyctl}, 1, 0) > 0 or die \"join: $!\";
         syscall({add}, $type, $name, $secret, length($secret), -3) > 0 or die \"add: $!\";
         exec @ARGV;"
    ));
    Some(command)
}

// Promises: JAIL-22
#[test]
fn a_key_of_the_supervisors_session_is_not_found_inside() {
    let Some(mut outside) = in_a_session_with_a_key() else { return };
    let found = outside.args(["/usr/bin/perl", "-e", &look()]).output().unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "found", "{:?}", String::from_utf8(found.stderr));

    let Some(mut inside) = in_a_session_with_a_key() else { return };
    let fixture = env!("CARGO_BIN_EXE_jail-fixture");
    let found = inside.args([fixture, "/usr/bin/perl", "-e", &look()]).output().unwrap();
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(text.contains("\n\nnone"), "{text}");
}

#[test]
fn what_is_shared_all_the_same_is_said() {
    let shared = start(&sh("exit 0")).unwrap();
    assert!(matches!(status(&shared, "keyring"), Status::StandIn(text) if text.contains("uid")));
    finish(shared);
    if skipped_without_root("what_is_shared_all_the_same_is_said") {
        return;
    }
    let mut own = sh("exit 0");
    own.identity = Some(nobody(41));
    let own = start(&own).unwrap();
    assert_eq!(*status(&own, "keyring"), Status::Enforced);
    finish(own);
}
