//! What became of a notification, by what the server said.

use std::fmt::Write as _;

use talon_sink::delivery::Delivery;
use talon_sink::peer_text::one_line;

use crate::smtp::{Sent, SmtpError};

/// By why a message was not sent. What the server may take later, or what somebody mends, is tried again.
pub(crate) fn of_error(error: &SmtpError) -> Delivery {
    let reason = one_line(&error.to_string());
    let refused = match error {
        SmtpError::NoStartTls => true,
        SmtpError::Dialogue { source, .. } => source.is_permanent() || source.is_client(),
        SmtpError::Connect(_) | SmtpError::Tls(_) | SmtpError::Handshake(_) => false,
    };
    if refused { Delivery::Refused(reason) } else { Delivery::Retry(reason, None) }
}

/// By who got it: now, or `before`.
pub(crate) fn of_sent(sent: &Sent, before: usize) -> Delivery {
    let got = sent.receivers.len() + before;
    let all = got + sent.refusals.len();
    if sent.refusals.is_empty() {
        return Delivery::Delivered(None);
    }
    let mut reason = format!("{got} of {all} receivers got it");
    for refusal in &sent.refusals {
        let _ = write!(reason, "; {}: {}", refusal.receiver, refusal.reason);
    }
    let reason = one_line(&reason);
    if sent.refusals.iter().any(|refusal| refusal.transient) {
        Delivery::Retry(reason, None)
    } else if got > 0 {
        Delivery::Delivered(Some(reason))
    } else {
        Delivery::Refused(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smtp::Refusal;

    fn sent(got: usize, refused: &[bool]) -> Sent {
        let address = |number: usize| format!("r{number}@example.org").parse().expect("an address");
        let refusal = |(number, transient): (usize, &bool)| Refusal {
            receiver: address(number),
            reason: "no".to_owned(),
            transient: *transient,
        };
        Sent {
            receivers: (0..got).map(address).collect(),
            refusals: refused.iter().enumerate().map(refusal).collect(),
        }
    }

    // Promises: EXT-82
    #[test]
    fn whoever_did_not_get_it_is_named() {
        assert_eq!(of_sent(&sent(2, &[]), 0), Delivery::Delivered(None));
        assert_eq!(
            of_sent(&sent(1, &[false]), 1),
            Delivery::Delivered(Some("2 of 3 receivers got it; r0@example.org: no".to_owned()))
        );
        assert!(matches!(of_sent(&sent(0, &[false, false]), 0), Delivery::Refused(_)));
        assert!(matches!(of_sent(&sent(0, &[false]), 1), Delivery::Delivered(Some(_))));
        for deferred in [&[true][..], &[true, false]] {
            assert!(matches!(of_sent(&sent(1, deferred), 0), Delivery::Retry(_, None)));
        }
    }
}
