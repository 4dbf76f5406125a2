//! Which check reports a start that failed at a step.

use talon_plugin::probe::Stage;

/// The id of the check that reports a start which failed at this step.
pub(crate) fn check_for_stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Files | Stage::Jail | Stage::Handshake => "start.handshake",
        Stage::StrayOutput => "start.stray-output",
        Stage::HandshakeLine => "handshake.line",
        Stage::Version => "handshake.version",
        Stage::Address => "handshake.address",
        Stage::Serving => "handshake.serves",
    }
}
