//! Marks the types of this crate whose `Display` output is safe to show: fixed words, names of checked
//! characters, and errors that hold plugin text only as [`Sanitized`](talon_sanitize::Sanitized).

use talon_sanitize::Shown;

impl Shown for crate::name::PluginName {}
impl Shown for crate::lifecycle::Desired {}
impl Shown for crate::lifecycle::State {}
impl Shown for crate::logs::Level {}
impl Shown for crate::logs::Stream {}
impl Shown for crate::events::EventKind {}
impl Shown for crate::launch::Exit {}
impl Shown for crate::handshake::Handshake {}
impl Shown for crate::handshake::HandshakeError {}
impl Shown for crate::capability::CapabilityError {}
impl Shown for crate::egress::Denied {}

#[cfg(test)]
#[path = "shown_tests.rs"]
mod tests;
