//! Checks that depend on this machine or on another crate's syntax: users and groups, directories, patterns,
//! log directives.

use std::error::Error;
use std::path::Path;

use talon_plugin_config::ActionPattern;
use talon_plugin_config::document::origin::KeyPath;
use talon_sanitize::{MAX_PATTERNS, PatternProblem, Sanitizer, Settings};
use talon_telemetry::Endpoint;

use super::Check;
use crate::config::peers::{gid_of, uid_of};
use crate::config::types::{Admin, Host, Traces};

impl Check<'_> {
    /// Checks patterns with the sanitizer.
    pub(super) fn patterns(&mut self, patterns: &[String], path: &KeyPath) {
        let settings = Settings { forbidden_patterns: patterns.to_vec() };
        let Err(error) = Sanitizer::new(&settings) else { return };
        if let Some(count) = error.too_many {
            let message = format!("{count} patterns are set, and {MAX_PATTERNS} are allowed");
            self.problem(path, message, "join some with |");
        }
        for bad in &error.patterns {
            let text = bad.problem.to_string();
            // The sanitizer's messages end with advice, which has a separate field here.
            let (what, help) = text.split_once("; ").unwrap_or((text.as_str(), "correct it"));
            let message = match &bad.problem {
                PatternProblem::Invalid(source) => format!("{what}: {}", innermost(source.as_ref())),
                _ => what.to_owned(),
            };
            self.problem(&path.index(bad.index), message, help);
        }
    }

    pub(super) fn admin(&mut self, admin: &Admin, path: &KeyPath) {
        if let Some(group) = &admin.group
            && gid_of(group).is_none()
        {
            let help = "create it with groupadd --system, or name another";
            self.problem(&path.key("group"), format!("there is no group {group:?}"), help);
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
                0 => self.problem(&path, "names no user or group", "add one of user, uid, group and gid"),
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
            for (index, pattern) in peer.allow.iter().flatten().enumerate() {
                if let Err(error) = pattern.parse::<ActionPattern>() {
                    let text = error.to_string();
                    let (message, help) = text.rsplit_once(": ").unwrap_or((&text, ""));
                    self.problem(&path.key("allow").index(index), message, help);
                }
            }
        }
    }

    /// Checks that the directory can be read. Its permissions are checked when a profile is read.
    pub(super) fn profile_dir(&mut self, dir: Option<&Path>, path: &KeyPath) {
        if let Some(dir) = dir
            && !dir.is_dir()
        {
            let message = format!("{} is no directory", dir.display());
            self.found.warning(path, message, "create it, or correct the path");
        }
    }

    /// Rejects collectors on other machines, and invalid addresses.
    pub(super) fn traces(&mut self, traces: &Traces, path: &KeyPath) {
        if let Some(endpoint) = &traces.endpoint
            && let Err(error) = endpoint.parse::<Endpoint>()
        {
            let text = error.to_string();
            let (message, help) = text.split_once("; ").unwrap_or((&text, "correct it"));
            self.problem(&path.key("endpoint"), format!("{endpoint:?} {message}"), help);
        }
    }

    pub(super) fn log_level(&mut self, level: &str, path: &KeyPath) {
        if let Err(error) = tracing_subscriber::EnvFilter::builder().parse(level) {
            let help = "write error, warn, info, debug or trace, or directives like info,plugin=warn";
            self.problem(path, format!("{level:?} cannot be understood: {error}"), help);
        }
    }
}

/// The last line of the innermost message, which says what is wrong with a pattern.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let message = talon_error_chain::innermost(error).to_string();
    message.lines().last().unwrap_or_default().trim_start_matches("error: ").trim().to_owned()
}
