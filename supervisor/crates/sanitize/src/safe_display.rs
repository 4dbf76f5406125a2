//! Values that are safe to show.

use std::fmt;

/// A value whose text is a literal of the program or was sanitized: a number, a literal,
/// [`Sanitized`](crate::Sanitized), a type with a fixed set of words.
///
/// Implement it for a type only if none of its values can hold text from outside: an enum of states, a name
/// that was checked against a set of harmless characters, an error all of whose parts are `SafeDisplay`.
///
/// ```compile_fail
/// fn show(_: impl talon_sanitize::SafeDisplay) {}
/// // The source of a plain string is unknown.
/// show(String::from("text"));
/// ```
///
/// ```compile_fail
/// fn show(_: impl talon_sanitize::SafeDisplay) {}
/// // So is that of a borrowed one; a literal is fine.
/// show(String::from("text").as_str());
/// ```
#[diagnostic::on_unimplemented(
    message = "the source of the text in `{Self}` is unknown, so it cannot be shown",
    note = "sanitize it: `Raw::from(text).line()`, or `Raw::of(value).line()` for what has a Display"
)]
pub trait SafeDisplay: fmt::Display {}

impl SafeDisplay for &'static str {}
impl<T: SafeDisplay> SafeDisplay for &T {}

macro_rules! numbers {
    ($($number:ty)*) => { $(impl SafeDisplay for $number {})* };
}

numbers!(bool u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);
impl SafeDisplay for std::net::IpAddr {}
impl SafeDisplay for std::net::SocketAddr {}
