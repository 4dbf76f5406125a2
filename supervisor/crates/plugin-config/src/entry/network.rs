//! Checks where a plugin may connect to, as written in the configuration.

use crate::allow_list::{AllowList, AllowListError, MAX_ENTRIES};
use crate::document::Findings;
use crate::document::origin::KeyPath;

/// Checks the entries of an allow-list.
pub(super) fn check_allow_list(allow: &[String], path: &KeyPath, found: &mut Findings<'_>) {
    if allow.len() > MAX_ENTRIES {
        let message = format!("{} places, and at most {MAX_ENTRIES} are taken", allow.len());
        return found.problem(path, message, "name the hosts of one domain by *.DOMAIN:PORT");
    }
    for (index, entry) in allow.iter().enumerate() {
        if let Err(AllowListError::Entry { problem, .. }) = AllowList::parse(std::slice::from_ref(entry)) {
            let text = problem.to_string();
            // The problem's text ends with the help in parentheses; here the help is separate.
            let (what, help) = text.split_once(" (").unwrap_or((&text, "correct it"));
            found.problem(&path.index(index), what, help.trim_end_matches(')'));
        }
    }
}
