//! All checks, in the order in which they are performed.

mod capabilities;
mod events;
mod execute;
mod handshake;
mod health;
mod init;
mod jail;
mod output;
mod section;
mod start;
mod stop;

use crate::check::Check;

/// All checks, in the order in which they are performed.
pub const CHECKS: &[Check] = &[
    start::HANDSHAKE,
    start::STRAY_OUTPUT,
    start::SINGLE_LINE,
    start::COOKIE,
    handshake::LINE,
    handshake::VERSION,
    handshake::UNOFFERED_VERSION,
    handshake::ADDRESS,
    handshake::SOCKET_MODE,
    handshake::SERVES,
    init::SETTINGS,
    init::EMPTY_CONFIG,
    init::UNKNOWN_KEYS,
    capabilities::ANSWERED,
    capabilities::NAMES,
    capabilities::DUPLICATES,
    capabilities::SCHEMAS,
    capabilities::SIZES,
    capabilities::STABLE,
    capabilities::ROLES,
    health::SERVING,
    health::UNKNOWN_SERVICE,
    execute::ECHO_ID,
    execute::DECODES,
    execute::ROLES,
    execute::STORAGE_REVISIONS,
    execute::STORAGE_SCANS,
    execute::STORAGE_BYTES,
    execute::STORAGE_REFUSALS,
    execute::STORAGE_DURABLE,
    execute::UNKNOWN_ACTION,
    execute::MISSING_ARGUMENTS,
    execute::UNKNOWN_ARGUMENT,
    execute::HOSTILE_ARGUMENTS,
    execute::CONCURRENT,
    execute::CANCELLED,
    execute::DEADLINE,
    execute::LARGE_ANSWER,
    health::AFTER_CALLS,
    events::RESENT,
    output::CALLS,
    output::FLOOD,
    stop::SHUTDOWN,
    stop::SIGTERM,
    stop::NOTHING_LEFT,
    jail::STRICT,
];

/// The check with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|check| check.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::check::anchor;

    #[test]
    fn ids_are_names_and_each_is_there_once() {
        let ids: BTreeSet<_> = CHECKS.iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), CHECKS.len());
        for id in ids {
            let parts: Vec<_> = id.split('.').collect();
            let good = |part: &&str| part.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            assert!(parts.len() == 2 && parts.iter().all(good), "{id}");
        }
    }

    #[test]
    fn every_test_belongs_to_one_check() {
        for check in CHECKS {
            assert_eq!(CHECKS.iter().filter(|other| other.test == check.test).count(), 1, "{}", check.id);
        }
    }

    #[test]
    fn every_check_leads_to_a_section_of_the_protocol() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/protocol.md");
        let page = std::fs::read_to_string(path).unwrap();
        let headings =
            page.lines().filter_map(|line| line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")));
        let anchors: BTreeSet<_> = headings.map(anchor).collect();
        for check in CHECKS {
            assert!(
                anchors.contains(check.section),
                "{}: {} is not among {anchors:?}",
                check.id,
                check.section
            );
        }
    }
}
