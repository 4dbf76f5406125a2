//! File systems whose changes the kernel does not tell of: other machines make them.

use std::path::Path;

/// The name of a file system that is on another machine; none for a local one.
pub(super) fn remote_name(path: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(path).ok()?.f_type;
    name_of(u32::try_from(kind & 0xffff_ffff).ok()?)
}

/// Numbers from linux/magic.h.
fn name_of(kind: u32) -> Option<&'static str> {
    Some(match kind {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x5346_414f => "AFS",
        0x00c3_6400 => "Ceph",
        0x0102_1997 => "9p",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-43
    #[test]
    fn file_systems_of_other_machines_are_told_from_local_ones() {
        assert_eq!(name_of(0x6969), Some("NFS"));
        assert_eq!(name_of(0xfe53_4d42), Some("SMB"));
        // ext4, tmpfs, btrfs, overlayfs.
        for local in [0xef53, 0x0102_1994, 0x9123_683e, 0x794c_7630] {
            assert_eq!(name_of(local), None);
        }
        assert_eq!(remote_name(Path::new("/proc")), None);
        assert_eq!(remote_name(Path::new("/nonexistent")), None);
    }
}
