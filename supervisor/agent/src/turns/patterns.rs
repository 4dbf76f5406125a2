//! What may be called, as people write it.

pub(crate) use talon_agent_settings::is_pattern;

/// Patterns of one list. 64: more is a configuration, and belongs there (`agent.allow`).
pub(crate) const MAX_PATTERNS: usize = 64;
