//! Receipts: the supervisor's statement that it made a call, with these arguments and this answer.
//!
//! The agent records what its model called. It has no privileges and may be taken over, so its record alone
//! proves nothing. With each answer on the agent's connection goes a receipt, an HMAC over what was called,
//! which the agent stores beside its record: `talon session verify` has every receipt checked by
//! `VerifyReceipts`. Nothing is stored here but the keys.

mod keys;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use talon_guard::{Call, Guarded};
use talon_proto::host::{Receipt, ReceiptVerdict};

use self::keys::Keys;
use crate::audit::arguments_json;
use crate::peer::Peer;
use crate::to_wire::unix_ms;

/// What a MAC is for, so that it is none of anything else.
const DOMAIN: &str = "talon.receipt.1";

/// Signs and verifies receipts. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Receipts(Option<Arc<Keys>>);

impl Receipts {
    /// Opens the keys in the directory for data, and makes a new one if the newest is old. Without keys calls
    /// have no receipt; that is reported in the supervisor's log, and stops nothing.
    #[must_use]
    pub fn open(data_dir: &Path) -> Self {
        match Keys::open(&data_dir.join(keys::DIRECTORY), SystemTime::now()) {
            Ok(keys) => Self(Some(Arc::new(keys))),
            Err(error) => {
                tracing::error!(
                    error = %talon_error_chain::error_chain(&error),
                    "calls of the agent get no receipts, so `talon session verify` will find them unverified: see whether the directory can be written to"
                );
                Self(None)
            }
        }
    }

    /// Begins a receipt for a call of the agent. Other callers have no use for one.
    pub(crate) fn draft(&self, peer: &Peer, session: &str, call: &Call) -> Option<ReceiptDraft> {
        let keys = self.0.as_ref().filter(|_| peer.is_agent())?;
        let receipt = Receipt {
            call_id: call.id.to_string(),
            session: session.to_owned(),
            plugin: call.plugin.to_string(),
            action: call.action.clone(),
            arguments_sha256: sha256(&arguments_json(call)),
            ..Receipt::default()
        };
        Some(ReceiptDraft { keys: Arc::clone(keys), receipt })
    }

    /// Whether a receipt is one of this supervisor's, unchanged.
    pub(crate) fn verify(&self, receipt: &Receipt) -> ReceiptVerdict {
        let Some(key) = self.0.as_ref().and_then(|keys| keys.get(&receipt.key_id)) else {
            return ReceiptVerdict::UnknownKey;
        };
        match mac(key, receipt).verify_slice(&receipt.mac) {
            Ok(()) => ReceiptVerdict::Valid,
            Err(_) => ReceiptVerdict::Invalid,
        }
    }
}

/// The receipt of a call that is being made.
pub(crate) struct ReceiptDraft {
    keys: Arc<Keys>,
    receipt: Receipt,
}

impl ReceiptDraft {
    /// Signs it for the answer.
    pub(crate) fn sign(self, answer: &Guarded) -> Receipt {
        let Self { keys, mut receipt } = self;
        let (key_id, key) = keys.newest();
        receipt.answer_sha256 = sha256(answer.block().as_str());
        answer.outcome().as_str().clone_into(&mut receipt.outcome);
        receipt.unix_ms = unix_ms(SystemTime::now());
        key_id.clone_into(&mut receipt.key_id);
        receipt.mac = mac(key, &receipt).finalize().into_bytes().to_vec();
        receipt
    }
}

/// Each piece is preceded by its length, so that pieces cannot be shifted into each other.
fn mac(key: &[u8; keys::KEY_BYTES], receipt: &Receipt) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    let Receipt {
        call_id, session, plugin, action, arguments_sha256, answer_sha256, outcome, key_id, ..
    } = receipt;
    let time = receipt.unix_ms.to_string();
    for piece in
        [DOMAIN, call_id, session, plugin, action, arguments_sha256, answer_sha256, outcome, &time, key_id]
    {
        mac.update(&(piece.len() as u64).to_le_bytes());
        mac.update(piece.as_bytes());
    }
    mac
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests;
