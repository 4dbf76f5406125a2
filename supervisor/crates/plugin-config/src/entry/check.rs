//! Checks of one plugin's settings that a schema cannot express: how values fit together.

use std::time::Duration as Time;

use super::{CallLimits, PluginEntry, PluginSettings, SandboxMode};
use crate::document::Findings;
use crate::document::origin::KeyPath;
use crate::spec::LifecycleSettings;
use crate::spec::{MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES};
use crate::units::Duration;

/// The longest time limit for one call. What takes longer is a job and should not occupy a call slot.
pub const MAX_CALL_TIMEOUT: Time = Time::from_secs(24 * 60 * 60);

/// Requires a duration greater than zero and at most [`MAX_CALL_TIMEOUT`].
pub fn check_call_timeout(duration: Duration, key: &KeyPath, found: &mut Findings<'_>) {
    found.check_nonzero_duration(duration, key);
    if duration.get() > MAX_CALL_TIMEOUT {
        found.problem(key, "is longer than a day", "write at most \"1d\"");
    }
}

/// Requires a valid name for an environment variable.
pub fn check_variable(name: &str, key: &KeyPath, found: &mut Findings<'_>) {
    if name.is_empty() || name.contains(['=', '\0']) {
        found.problem(key, "is no name of an environment variable", "write a name without \"=\"");
    }
}

/// Requires that a health check ends before the next one begins.
pub fn check_health(timeout: Duration, interval: Duration, path: &KeyPath, found: &mut Findings<'_>) {
    if timeout > interval {
        let message = format!("{timeout} is longer than health_check_interval ({interval})");
        found.problem(&path.key("health_check_timeout"), message, "a check must end before the next begins");
    }
}

/// Requires that the first wait is the shortest.
pub fn check_backoff(initial: Duration, max: Duration, path: &KeyPath, found: &mut Findings<'_>) {
    if initial > max {
        let message = format!("{initial} is longer than backoff_max ({max})");
        found.problem(&path.key("backoff_initial"), message, "the first wait is the shortest");
    }
}

impl CallLimits {
    /// Checks that these limits can work.
    pub fn check(&self, path: &KeyPath, found: &mut Findings<'_>) {
        if let Some(timeout) = self.timeout {
            check_call_timeout(timeout, &path.key("timeout"), found);
        }
        let sizes = [
            ("max_response_bytes", self.max_response_bytes),
            ("max_structured_bytes", self.max_structured_bytes),
            ("max_argument_bytes", self.max_argument_bytes),
        ];
        for (name, size) in sizes {
            if let Some(size) = size {
                found.check_nonzero_size(size, &path.key(name));
            }
        }
        if let Some(size) = self.max_message_bytes
            && !(MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES).contains(&size.as_usize())
        {
            let message = format!("{size} is not between 64KiB and 2GiB");
            found.problem(&path.key("max_message_bytes"), message, "8MiB is the default");
        }
    }
}

impl SandboxMode {
    /// Warns if the jail is off.
    pub fn check(self, path: &KeyPath, found: &mut Findings<'_>) {
        if self == Self::Off {
            let help = "use enforce or best-effort outside of debugging";
            found.warning(&path.key("mode"), "plugins run without a jail", help);
        }
    }
}

impl PluginSettings {
    /// Checks the settings of one plugin. `wider` holds the lifecycle defaults.
    pub fn check(&self, wider: &LifecycleSettings, path: &KeyPath, found: &mut Findings<'_>) {
        self.calls.check(path, found);
        self.check_lifecycle(wider, path, found);
        for (name, value) in &self.env {
            let path = path.key("env").key(name);
            check_variable(name, &path, found);
            if value.contains('\0') {
                found.problem(&path, "holds a NUL character", "no program can be given one; remove it");
            }
        }
        for (action, over) in &self.actions {
            if let Some(timeout) = over.timeout {
                check_call_timeout(timeout, &path.key("actions").key(action).key("timeout"), found);
            }
        }
        self.sandbox.check(&path.key("sandbox"), found);
        self.limits.check(&path.key("limits"), found);
    }

    fn check_lifecycle(&self, wider: &LifecycleSettings, path: &KeyPath, found: &mut Findings<'_>) {
        let own = &self.lifecycle;
        let times = [
            ("health_check_interval", own.health_check_interval),
            ("health_check_timeout", own.health_check_timeout),
            ("restart_window", own.restart_window),
            ("backoff_max", own.backoff_max),
            ("start_timeout", own.start_timeout),
        ];
        for (name, time) in times {
            if let Some(time) = time {
                found.check_nonzero_duration(time, &path.key(name));
            }
        }
        if let Some(after) = own.kill_overdue_after
            && after.get() > MAX_CALL_TIMEOUT
        {
            found.problem(&path.key("kill_overdue_after"), "is longer than a day", "write at most \"1d\"");
        }
        // Inherited values were checked where they are set.
        if own.health_check_interval.is_some() || own.health_check_timeout.is_some() {
            let timeout = own.health_check_timeout.unwrap_or(wider.health_check_timeout.into());
            let interval = own.health_check_interval.unwrap_or(wider.health_check_interval.into());
            check_health(timeout, interval, path, found);
        }
        if own.backoff_initial.is_some() || own.backoff_max.is_some() {
            let initial = own.backoff_initial.unwrap_or(wider.backoff_initial.into());
            check_backoff(initial, own.backoff_max.unwrap_or(wider.backoff_max.into()), path, found);
        }
    }
}

impl PluginEntry {
    /// Checks the entry of one plugin, with its program.
    pub fn check(&self, wider: &LifecycleSettings, path: &KeyPath, found: &mut Findings<'_>) {
        self.settings.check(wider, path, found);
        for (index, arg) in self.args.iter().flatten().enumerate() {
            if arg.contains('\0') {
                let help = "no program can be given one; remove it";
                found.problem(&path.key("args").index(index), "holds a NUL character", help);
            }
        }
        if let Some(sha256) = &self.sha256
            && !(sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit()))
        {
            let help = "write the 64 hexadecimal digits that sha256sum prints";
            found.problem(&path.key("sha256"), "is no SHA-256 digest", help);
        }
        match (&self.command, &self.url) {
            (None, None) => {
                found.problem(path, "has no command", "name the program, or the url of an MCP server")
            }
            (Some(_), Some(_)) => {
                found.problem(&path.key("url"), "stands beside a command", "leave one of them out");
            }
            _ => {}
        }
        if let Some(url) = &self.url
            && let Err(problem) = super::place_of_url(url)
        {
            found.problem(&path.key("url"), problem.what, problem.help);
        }
        if self.descriptor.is_some() {
            if self.service.is_none() {
                let help = "name the service that the descriptor describes, such as proto.KV";
                found.problem(&path.key("service"), "is missing beside a descriptor", help);
            }
            if self.url.is_some() {
                found.problem(&path.key("descriptor"), "stands beside a url", "leave one of them out");
            }
        }
        if let Some(cookie) = &self.cookie {
            check_variable(&cookie.key, &path.key("cookie").key("key"), found);
        }
        if self.app_versions.as_ref().is_some_and(Vec::is_empty) {
            let help = "list at least one, or leave the key out";
            found.problem(&path.key("app_versions"), "no version is offered", help);
        }
    }
}
