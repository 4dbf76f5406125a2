//! What this executable does when the crate has started it again.

use crate::image::STAGE_NAME;
use crate::probe::{FEATURE_PROBE_NAME, become_feature_probe};
use crate::stage;

/// To be the first line of `main()`: if this process was started as the stage (or as the feature probe), runs
/// that and never returns.
pub fn become_stage_if_asked() {
    match std::env::args_os().next() {
        Some(name) if name == STAGE_NAME => stage::run(),
        Some(name) if name == FEATURE_PROBE_NAME => become_feature_probe(),
        _ => {}
    }
}
