//! The exit codes of `talon`, which scripts may rely on.

/// Success; for a call: the tool answered.
pub(crate) const OK: u8 = 0;
/// The tool answered with an error, which is its answer; `talon doctor` found something missing; `talon
/// status --check` found something that needs attention; `talon guard check` neutralized something; `talon
/// import` refused a record; a check of `talon conformance` failed, or a script or test of `talon lua`; `talon audit verify` found the log
/// broken; `talon session verify` found an entry that its receipt contradicts; a turn of the agent ended at a
/// limit, or without a valid answer; a test of a notification was not delivered.
pub(crate) const TOOL_ERROR: u8 = 1;
/// The command line was wrong. clap also uses 2.
pub(crate) const USAGE: u8 = 2;
/// The guard refused: unknown plugin or action, bad arguments, an answer that was not accepted, too many
/// calls. For state: no such key, nothing to purge, no space, or an incomplete backup file. For the agent: no
/// such session or approval, a turn that is not allowed now, an exhausted budget, or a call that waits for an
/// approval, or `talon session verify` found an entry without a receipt that could be checked.
pub(crate) const REFUSED: u8 = 3;
/// The plugin died, timed out, is not there, or could not be started; the state service does not answer; no
/// model answered a turn of the agent, or not in time.
pub(crate) const HOST_FAULT: u8 = 4;
/// No supervisor answers on the socket, or no agent.
pub(crate) const UNREACHABLE: u8 = 5;
/// The configuration is wrong, or a model's provider refused its key or the request; or the verb needs state and the configuration turns it off; or the verb does
/// not work with state in a PostgreSQL server.
pub(crate) const CONFIG: u8 = 6;
/// The supervisor does not allow this user to do that.
pub(crate) const DENIED: u8 = 7;
/// Another supervisor holds the runtime directory, or another process the state.
pub(crate) const BUSY: u8 = 8;
/// A turn of the agent has no whole answer: the model's was cut at its limit, withheld by its provider, or
/// refused. What there is of it is shown.
pub(crate) const NO_WHOLE_ANSWER: u8 = 9;
/// Another local failure: a file could not be read or written, or Talon itself has a bug.
pub(crate) const FAILED: u8 = 70;

/// Ctrl-C cancelled a turn of the agent: 128 plus the number of the signal, as in shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// All codes with their descriptions in `talon --help`.
pub(crate) const TABLE: &[(u8, &str)] = &[
    (OK, "it worked; for a call: the tool answered"),
    (
        TOOL_ERROR,
        "the tool answered with an error; `doctor` found something missing, `status --check` something that needs attention; \
         `guard check` neutralized something; `import` refused a record; a check of `conformance` failed, or a script or test of `lua`; `audit verify` found the \
         log broken, `session verify` an entry that its receipt contradicts; a turn of the agent ended at a limit or without a fitting answer; \
         `notification test` was not delivered",
    ),
    (USAGE, "the command line is wrong"),
    (
        REFUSED,
        "refused by the guard: unknown plugin or action, bad arguments, bad answer, overload; no such key, no room, no whole \
         backup; no such session, a budget that is used up, an approval that is missing; an entry that `session verify` could not check",
    ),
    (
        HOST_FAULT,
        "the plugin died, timed out, is not available, or could not be started; what keeps state does not \
         answer; no model answered, or not in time",
    ),
    (UNREACHABLE, "no supervisor answers on the socket, or no agent"),
    (
        CONFIG,
        "the configuration is wrong, or its state.engine cannot do this; a model's provider refused its key or the request",
    ),
    (DENIED, "the supervisor does not let this user do that"),
    (BUSY, "another supervisor holds the runtime directory, or another process the state"),
    (
        NO_WHOLE_ANSWER,
        "a model's answer was cut at its limit, withheld or refused; what there is of it is shown",
    ),
    (FAILED, "something else went wrong here: a file that cannot be read or written, or Talon itself"),
    (INTERRUPTED, "a turn of the agent was cancelled by Ctrl-C"),
];

#[cfg(test)]
mod tests {
    use super::TABLE;

    // Promises: CLI-4
    #[test]
    fn codes_differ_and_ascend() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
