//! Lua.
fn main() {}
