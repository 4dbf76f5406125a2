//! Hardening of the supervisor process itself, before it has threads.
//!
//! Restrictions in a service's unit also apply to plugins, so some things must stay allowed there. They are
//! forbidden here, for this process alone.

/// Drops privileges that no part of the supervisor needs, disables huge pages to save memory, and makes sure
/// that it sees its plugins' processes. Must be called before threads are started. Returns what failed,
/// because the log is not initialized yet; no failure stops the supervisor.
#[must_use]
pub fn confine() -> Vec<String> {
    let mut notes = Vec::new();
    // No process that it starts needs more privileges than it has.
    if let Err(error) = rustix::thread::set_no_new_privs(true) {
        notes.push(format!("the supervisor could still gain privileges by executing files: {error}"));
    }
    if let Err(error) = talon_jail::forbid_new_code() {
        notes.push(format!("the supervisor may make code as it runs ({error}; Linux 6.6 can forbid it)"));
    }
    if let Err(error) = talon_jail::forgo_huge_pages() {
        notes.push(format!("the supervisor takes more memory than it needs: {error}"));
    }
    if let Err(error) = talon_jail::see_all_processes() {
        notes.push(format!(
            "/proc hides the processes of plugins, and another one cannot be had: {error} (set ProtectProc=default and \
             ProcSubset=all in the service)"
        ));
    }
    notes
}
