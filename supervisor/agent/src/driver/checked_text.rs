//! The text of an answer that response hooks have seen.

/// What people get once the journal has it.
pub(super) struct CheckedText {
    pub(super) text: String,
    /// Whether it takes the place of one that people saw.
    pub(super) takes_place: bool,
}
