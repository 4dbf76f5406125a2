//! The script that is measured.

/// The script that is measured: rules, of which none fits, so that all of them are looked at.
pub(super) const SCRIPT: &str = include_str!("../../../../../plugins-examples/lua/expert_classify.lua");
