//! File systems whose changes the kernel does not tell of: other machines make them.

use std::path::Path;

/// The name of a file system that is on another machine; none for a local one. Numbers from linux/magic.h.
pub(super) fn remote_name(path: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(path).ok()?.f_type;
    let kind = u32::try_from(kind & 0xffff_ffff).ok()?;
    Some(match kind {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x5346_414f => "AFS",
        0x00c3_6400 => "Ceph",
        0x0102_1997 => "9p",
        _ => return None,
    })
}
