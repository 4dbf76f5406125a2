//! A text that grows while it is made.

use mlua::{Lua, LuaString};

use super::Failure;

/// The capacity that the first byte makes.
const FIRST_BYTES: usize = 256;

/// A text under construction. The machine does not see it before it is whole, so it keeps to the machine's limit itself: it and what
/// the machine uses stay below that together.
pub(super) struct ResultText<'l> {
    lua: &'l Lua,
    /// The most that both may have, in bytes.
    limit: usize,
    bytes: Vec<u8>,
}

impl<'l> ResultText<'l> {
    pub(super) fn new(lua: &'l Lua, limit: usize) -> Self {
        Self { lua, limit, bytes: Vec::new() }
    }

    /// # Errors
    /// There is no memory left: as when the machine itself has none.
    pub(super) fn push(&mut self, more: &[u8]) -> Result<(), Failure> {
        let needed = self.bytes.len().saturating_add(more.len());
        if needed > self.bytes.capacity() {
            let room = self.limit.saturating_sub(self.lua.used_memory());
            if needed > room {
                return Err(Failure::no_memory());
            }
            let wanted = needed.max(self.bytes.capacity().saturating_mul(2)).max(FIRST_BYTES).min(room);
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// The text, as the machine's own: its limit counts.
    pub(super) fn finish(self) -> Result<LuaString, Failure> {
        Ok(self.lua.create_string(self.bytes)?)
    }
}
