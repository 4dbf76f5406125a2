//! What the supervisor takes from itself, and gets for itself, before it has threads.
//!
//! What a service's unit closes is closed for plugins too, so some things must stay open there. They are closed here, for this
//! process alone.

/// Closes what no part of the supervisor needs, has it take no more memory than it uses, and has it see its plugins' processes. To be called before any thread is
/// started. Gives what did not come about, for the log, which is not there yet; none of it keeps a supervisor from its work.
#[must_use]
pub fn confine() -> Vec<String> {
    let mut notes = Vec::new();
    // Nothing that it starts ever needs more than it has itself.
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
