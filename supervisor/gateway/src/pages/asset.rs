//! The files of the pages, as the build script found them in `assets/`.

/// A file, as it is and compressed.
#[derive(Debug)]
pub(super) struct Asset {
    /// Its path below `assets/`.
    pub(super) name: &'static str,
    /// With the charset, where it is text.
    pub(super) media_type: &'static str,
    /// Hexadecimal.
    pub(super) digest: &'static str,
    pub(super) plain: &'static [u8],
    pub(super) gzip: &'static [u8],
    pub(super) brotli: &'static [u8],
}

// `PREFIX`, the path that all of them have in common, with a digest of their contents; `ASSETS`, sorted by name.
include!(concat!(env!("OUT_DIR"), "/assets.rs"));
