//! The units of a skeleton.

/// A character that folds to no ASCII character, or one that sanitizing replaces by a note.
pub(crate) const OTHER: u8 = 0x80;
/// The text ends here.
pub(crate) const END: u8 = 0x00;
/// The window ends here; no shape is this long.
pub(crate) const FAR: u8 = 0x01;

/// One folded character and the bytes of the original it stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    /// A lower-case ASCII character (every line break is `\n`, other white space a space) or [`OTHER`].
    pub(crate) byte: u8,
    pub(crate) start: usize,
    pub(crate) end: usize,
}
