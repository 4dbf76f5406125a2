//! The composition of a question.

use serde::Serialize;
use talon_agent_settings::ContextProfile;

use super::{Window, WindowStatus};
use crate::tokens::Accuracy;

/// The composition of a question, in tokens unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    /// How tokens were counted.
    pub accuracy: Accuracy,
    /// The model's window.
    pub window: Window,
    /// How the question fits into it.
    pub fit: WindowStatus,
    /// Prompt, with the safety rules.
    pub system: usize,
    /// Running summary.
    pub summary: usize,
    /// Verbatim turns, without the latest results.
    pub recent: usize,
    /// Latest results of tools.
    pub tool_results: usize,
    /// Tools.
    pub tools: usize,
    /// The total.
    pub total: usize,
    /// Turns shown.
    pub turns: usize,
    /// Messages of the history that are left out and have to be summarized.
    pub messages_left_out: usize,
    /// Results of tools that were cut.
    pub results_cut: usize,
    /// What was left out of them.
    pub result_tokens_cut: usize,
    /// Images of earlier turns that are described instead of shown.
    pub images_left_out: usize,
    /// The profile by which the window was divided.
    pub profile: ContextProfile,
    /// Tools offered.
    pub tools_offered: usize,
    /// Tools for which there was no room.
    pub tools_left_out: usize,
    /// Tokens of the summary per token that it replaces: 0.05 means that 95 % were saved. `None` without a
    /// summary.
    pub compression_ratio: Option<f64>,
}
