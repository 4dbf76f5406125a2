use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use talon_guard::{Guard, GuardSettings, Origin};
use tempfile::TempDir;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn agent(agent: bool) -> Peer {
    Peer {
        uid: 1,
        gid: 1,
        pid: 1,
        rights: None,
        allowed: None,
        service: agent.then_some(crate::peer::OwnService::Agent),
        delegation: None,
    }
}

fn receipt(receipts: &Receipts) -> Receipt {
    let mut call = Call::new("c1.x", "files", "read", Origin::Model);
    call.args.insert("path".to_owned(), "a".to_owned());
    let guard = Guard::new(GuardSettings::default()).expect("no patterns");
    let answer = guard.answer("", "files", "c1.x", talon_guard::Answer::from_tool("text".to_owned()));
    receipts.draft(&agent(true), "s1", &call).expect("for the agent").sign(&answer)
}

// Promises: AUDIT-15
#[test]
fn a_receipt_holds_only_as_it_was_signed() {
    let directory = TempDir::new().expect("a directory");
    let receipts = Receipts::open(directory.path());
    let signed = receipt(&receipts);
    assert_eq!(receipts.verify(&signed), ReceiptVerdict::Valid);
    let changes: [fn(&mut Receipt); 9] = [
        |receipt| receipt.call_id.push('1'),
        |receipt| receipt.session.push('1'),
        |receipt| receipt.plugin = "mail".to_owned(),
        |receipt| receipt.action = "write".to_owned(),
        |receipt| receipt.arguments_sha256.insert(0, 'a'),
        |receipt| receipt.answer_sha256.clear(),
        |receipt| receipt.outcome = "refused".to_owned(),
        |receipt| receipt.unix_ms += 1,
        |receipt| receipt.mac.clear(),
    ];
    for change in changes {
        let mut forged = signed.clone();
        change(&mut forged);
        assert_eq!(receipts.verify(&forged), ReceiptVerdict::Invalid, "{forged:?}");
    }
    // Pieces cannot be shifted into each other.
    let mut shifted = signed.clone();
    (shifted.plugin, shifted.action) = ("file".to_owned(), "sread".to_owned());
    assert_eq!(receipts.verify(&shifted), ReceiptVerdict::Invalid);
    assert!(receipts.draft(&agent(false), "s1", &Call::new("c", "p", "a", Origin::Model)).is_none());
}

// Promises: AUDIT-15
#[test]
fn old_keys_verify_and_new_ones_sign() {
    let directory = TempDir::new().expect("a directory");
    let receipts = Receipts::open(directory.path());
    let signed = receipt(&receipts);
    let again = Receipts::open(directory.path());
    assert_eq!(again.verify(&signed), ReceiptVerdict::Valid);
    assert_eq!(receipt(&again).key_id, signed.key_id, "a young key is used again");
    let keys = directory.path().join(keys::DIRECTORY);
    let later = Keys::open(&keys, SystemTime::now() + 91 * DAY).expect("it can be read");
    assert_ne!(later.newest().0, signed.key_id);
    let later = Receipts(Some(Arc::new(later)));
    assert_eq!(later.verify(&signed), ReceiptVerdict::Valid);
    assert_eq!(again.verify(&receipt(&later)), ReceiptVerdict::UnknownKey);
    for file in keys.read_dir().expect("it is there") {
        let mode = file.and_then(|file| file.metadata()).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
    let other = TempDir::new().expect("a directory");
    assert_eq!(Receipts::open(other.path()).verify(&signed), ReceiptVerdict::UnknownKey);
}

#[test]
fn a_directory_that_cannot_be_used_leaves_calls_without_receipts() {
    let directory = TempDir::new().expect("a directory");
    std::fs::write(directory.path().join(keys::DIRECTORY), "in the way").expect("a file");
    let receipts = Receipts::open(directory.path());
    assert!(receipts.draft(&agent(true), "s", &Call::new("c", "p", "a", Origin::Model)).is_none());
}
