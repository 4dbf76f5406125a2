//! Checks of auth providers.

use super::findings::Findings;
use crate::limits::{MAX_AUTH_PROVIDERS, MAX_FIELD_CHARS, MAX_SCOPES};
use crate::{AuthEntry, Role};

/// The issuers of our own subjects: users of this machine, tokens, and the gateway itself.
pub const OWN_ISSUERS: [&str; 3] = ["local", "token", "talon"];

pub(super) fn check(found: &mut Findings, entries: &[AuthEntry]) {
    let help = "remove some: each sees the credentials that those before it rejected";
    found.check_count(Role::AuthProvider, entries.len(), MAX_AUTH_PROVIDERS, help);
    for (index, entry) in entries.iter().enumerate() {
        let mut of = found.of(Role::AuthProvider, index);
        const MOST: usize = 32;
        let token = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if entry.scheme.is_empty() || entry.scheme.len() > MOST || !entry.scheme.chars().all(token) {
            of.problem("scheme", "is no scheme in lower case", "write bearer or basic");
        }
        if OWN_ISSUERS.contains(&entry.name()) {
            let message = "is the issuer of Talon's own subjects, and its subjects would be taken for those";
            of.problem("name", message, "give it another name");
        }
        of.check_deadline(entry.deadline);
        if entry.scopes.values().all(Vec::is_empty) {
            let help = "write what the provider's scopes grant: { \"talon:chat\": [chat] }";
            of.problem("scopes", "grants nothing to anybody", help);
        }
        if entry.scopes.len() > MAX_SCOPES {
            let message = format!("lists {} scopes, and {MAX_SCOPES} are the most", entry.scopes.len());
            of.problem("scopes", message, "remove some");
        }
        if entry.scopes.keys().any(|scope| scope.is_empty() || scope.chars().count() > MAX_FIELD_CHARS) {
            let message = format!("lists a scope that has not 1 to {MAX_FIELD_CHARS} characters");
            of.problem("scopes", message, "correct it");
        }
    }
}
