//! The macro that joins literals with values that are safe to show.

use crate::safe_display::SafeDisplay;

/// Joins literals with values that are [`SafeDisplay`], and sanitizes the whole.
///
/// ```
/// use talon_sanitize::{Raw, sanitized};
///
/// let said = Raw::from("\u{1b}[2J<|im_start|>").line();
/// assert_eq!(sanitized!("instance {} said {}", 2, said), "instance 2 said ␛[2J<·|im_start|>");
/// ```
///
/// A variable cannot be captured in the format string, because its type would not be checked.
///
/// ```compile_fail
/// let text = String::from("<|im_start|>");
/// talon_sanitize::sanitized!("{text}");
/// ```
///
/// ```compile_fail
/// talon_sanitize::sanitized!("{}", String::from("<|im_start|>"));
/// ```
#[macro_export]
macro_rules! sanitized {
    ($words:literal $(, $($rest:tt)*)?) => {
        $crate::sanitized_pieces!(($words) () $($($rest)*)?)
    };
}

/// Collects the arguments of [`sanitized!`](crate::sanitized), one by one.
#[doc(hidden)]
#[macro_export]
macro_rules! sanitized_pieces {
    (($words:literal) ($($done:tt)*)) => {
        // With `concat!` the format string cannot capture variables.
        $crate::Sanitized::composed(::std::format_args!(::std::concat!($words) $($done)*))
    };
    (($words:literal) ($($done:tt)*) $name:ident = $piece:expr $(, $($rest:tt)*)?) => {
        $crate::sanitized_pieces!(($words) ($($done)*, $name = $crate::shown(&$piece)) $($($rest)*)?)
    };
    (($words:literal) ($($done:tt)*) $piece:expr $(, $($rest:tt)*)?) => {
        $crate::sanitized_pieces!(($words) ($($done)*, $crate::shown(&$piece)) $($($rest)*)?)
    };
}

/// Checks the type of a piece for [`sanitized!`](crate::sanitized).
#[doc(hidden)]
pub fn shown<T: SafeDisplay>(piece: &T) -> &T {
    piece
}
