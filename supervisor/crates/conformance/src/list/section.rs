//! Anchors of `docs/protocol.md`.

pub(super) const START: &str = "1-the-start";
pub(super) const HANDSHAKE: &str = "2-the-handshake";
pub(super) const SERVICE: &str = "3-the-service";
pub(super) const INIT: &str = "init";
pub(super) const CAPABILITIES: &str = "capabilities";
pub(super) const EXECUTE: &str = "execute";
pub(super) const HEALTH: &str = "health";
pub(super) const NOTICES: &str = "notices";
pub(super) const EVENTS: &str = "events";
pub(super) const END: &str = "5-the-end";
