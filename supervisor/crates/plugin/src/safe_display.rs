//! Marks the types of this crate whose `Display` output is safe to show: fixed words, names of checked
//! characters, and errors that hold plugin text only as [`Sanitized`](talon_sanitize::Sanitized).

use talon_sanitize::SafeDisplay;

impl SafeDisplay for crate::lifecycle::Desired {}
impl SafeDisplay for crate::lifecycle::State {}
impl SafeDisplay for crate::logs::Level {}
impl SafeDisplay for crate::logs::Stream {}
impl SafeDisplay for crate::events::EventKind {}
impl SafeDisplay for crate::launch::Exit {}

#[cfg(test)]
#[path = "safe_display_tests.rs"]
mod tests;
