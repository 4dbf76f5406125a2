//! What depends on this machine or on another crate's syntax: users and groups, uids, patterns, log directives.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;

use talon_plugin::document::origin::KeyPath;
use talon_sanitize::{MAX_PATTERNS, PatternProblem, Sanitizer, Settings};

use super::Check;
use crate::config::peers::{gid_of, uid_of};
use crate::config::types::Host;

impl Check<'_> {
    /// Patterns that the sanitizer cannot use.
    pub(super) fn patterns(&mut self, patterns: &[String], path: &KeyPath) {
        let settings = Settings { forbidden_patterns: patterns.to_vec() };
        let Err(error) = Sanitizer::new(&settings) else { return };
        if let Some(count) = error.too_many {
            let message = format!("{count} patterns are set, and {MAX_PATTERNS} are allowed");
            self.problem(path, message, "join some with |");
        }
        for bad in &error.patterns {
            let text = bad.problem.to_string();
            // The sanitizer's own messages end with what to do, which here has a place of its own.
            let (what, help) = text.split_once("; ").unwrap_or((text.as_str(), "correct it"));
            let message = match &bad.problem {
                PatternProblem::Invalid(source) => format!("{what}: {}", innermost(source.as_ref())),
                _ => what.to_owned(),
            };
            self.problem(&path.index(bad.index), message, help);
        }
    }

    pub(super) fn host(&mut self, host: &Host, path: &KeyPath) {
        if let Some(group) = &host.group
            && gid_of(group).is_none()
        {
            let help = "create it with groupadd --system, or name another";
            self.problem(&path.key("group"), format!("there is no group {group:?}"), help);
        }
        for (index, peer) in host.peers.iter().enumerate() {
            let path = path.key("peers").index(index);
            let who = [peer.user.is_some(), peer.uid.is_some(), peer.group.is_some(), peer.gid.is_some()];
            match who.iter().filter(|given| **given).count() {
                1 => {}
                0 => self.problem(&path, "says nobody", "add one of user, uid, group and gid"),
                _ => self.problem(&path, "says who in several ways", "keep one of user, uid, group and gid"),
            }
            if let Some(user) = &peer.user
                && uid_of(user).is_none()
            {
                self.problem(
                    &path.key("user"),
                    format!("there is no user {user:?}"),
                    "create it, or name another",
                );
            }
            if let Some(group) = &peer.group
                && gid_of(group).is_none()
            {
                let help = "create it, or name another";
                self.problem(&path.key("group"), format!("there is no group {group:?}"), help);
            }
        }
    }

    /// A plugin must not share its uid with an account: it could then touch that account's files and processes.
    pub(super) fn uid_range(&mut self, range: RangeInclusive<u32>, passwd: &Path, path: &KeyPath) {
        let taken = accounts_within(&range, passwd);
        if !taken.is_empty() {
            /// Enough to see which range is meant.
            const NAMED: usize = 3;
            let named: Vec<&str> = taken.iter().take(NAMED).map(String::as_str).collect();
            let more = if taken.len() > NAMED { ", …" } else { "" };
            let message = format!("accounts of this machine lie in it: {}{more}", named.join(", "));
            self.problem(path, message, "choose a range that no account uses");
        }
    }

    pub(super) fn log_level(&mut self, level: &str, path: &KeyPath) {
        if let Err(error) = tracing_subscriber::EnvFilter::builder().parse(level) {
            let help = "write error, warn, info, debug or trace, or directives like info,plugin=warn";
            self.problem(path, format!("{level:?} cannot be understood: {error}"), help);
        }
    }
}

/// Names of accounts whose uid lies in a range. A file that cannot be read names none.
fn accounts_within(range: &RangeInclusive<u32>, passwd: &Path) -> BTreeSet<String> {
    /// A passwd file of 4 MiB has some 50,000 lines; accounts beyond it live in a directory service anyway.
    const MAX_PASSWD_BYTES: u64 = 4 << 20;
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(passwd) {
        // What was read before an error still counts.
        drop(file.take(MAX_PASSWD_BYTES).read_to_end(&mut bytes));
    }
    let text = String::from_utf8_lossy(&bytes);
    let account = |line: &str| {
        let mut fields = line.split(':');
        let (name, uid) = (fields.next()?, fields.nth(1)?);
        let uid: u32 = uid.parse().ok()?;
        range.contains(&uid).then(|| format!("{name} ({uid})"))
    };
    text.lines().filter_map(account).collect()
}

/// The last line of the innermost message, which is the one that says what is wrong with a pattern.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    let message = error.to_string();
    message.lines().last().unwrap_or_default().trim_start_matches("error: ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_in_the_range_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let passwd = dir.path().join("passwd");
        let lines =
            b"root:x:0:0::/:/bin/sh\nann:x:70001:1::/:/x\nbob:x:80000:1::/:/x\n\xff\nbroken\nc:x:no:1\n";
        std::fs::write(&passwd, lines).unwrap();
        let found = accounts_within(&(70_000..=79_999), &passwd);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["ann (70001)"]);
        assert!(accounts_within(&(1..=2), &dir.path().join("missing")).is_empty());
    }
}
