//! What is wrong with the configuration.

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is refused.
    Problem,
    /// It is probably a mistake.
    Warning,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The list below `extensions`.
    pub list: &'static str,
    /// The entry, from 0; `None` for the list as a whole.
    pub index: Option<usize>,
    /// The key of the entry; `None` for the entry as a whole.
    pub key: Option<&'static str>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}
