//! How often tests kill processes.

/// As often as `TALON_TEST_KILLS` says, where it is set (`make long`: 100 or 200), or else this often.
///
/// # Panics
/// If the variable is no number.
#[must_use]
pub fn kills(usually: usize) -> usize {
    std::env::var("TALON_TEST_KILLS")
        .map_or(usually, |kills| kills.parse().expect("TALON_TEST_KILLS is a number"))
}
