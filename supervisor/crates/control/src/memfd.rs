//! Sealed memory files (memfd), for data that is too long for a packet; sealing makes them immutable.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::io::Errno;

/// These seals forbid all changes of the content and of the seals.
const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not sealed, or not a memory file.
    #[error("it is no sealed memory file")]
    Unsealed,
    /// It is longer than the given limit.
    #[error("it has {0} bytes, which is more than is read")]
    TooLarge(u64),
    /// A system call failed.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Creates a memory file with these bytes, closed on exec. `/proc` shows `name`.
///
/// # Errors
/// When there are too many open files, or too little memory.
pub fn seal(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know the flag that forbids execution, and do not need it.
    let made = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, flags),
        made => made,
    };
    let mut file = File::from(made?);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

/// The bytes of a file from [`seal`], if they are at most `most`. It can be read again.
///
/// # Errors
/// [`ReadError`]
pub fn read(file: OwnedFd, most: u64) -> Result<Vec<u8>, ReadError> {
    // Other files have no seals.
    if !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS)) {
        return Err(ReadError::Unsealed);
    }
    // A length is never negative.
    let size = u64::try_from(fstat(&file).map_err(io::Error::from)?.st_size).unwrap_or(u64::MAX);
    if size > most {
        return Err(ReadError::TooLarge(size));
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| ReadError::TooLarge(size))?];
    // Reads at an explicit offset: the file offset is shared by all processes that have this file.
    File::from(file).read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_can_be_read_again_and_not_changed() {
        let file = seal("test", b"settings").unwrap();
        assert_eq!(read(file.try_clone().unwrap(), 8).unwrap(), b"settings");
        assert_eq!(read(file.try_clone().unwrap(), 8).unwrap(), b"settings");
        assert!(matches!(read(file.try_clone().unwrap(), 7), Err(ReadError::TooLarge(8))));
        let file = File::from(file);
        assert!(file.write_at(b"x", 0).is_err());
        assert!(file.set_len(0).is_err());
    }

    #[test]
    fn a_file_that_could_be_changed_is_not_read() {
        let unsealed = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        assert!(matches!(read(unsealed, 8), Err(ReadError::Unsealed)));
        let plain = File::open("/dev/null").unwrap();
        assert!(matches!(read(plain.into(), 8), Err(ReadError::Unsealed)));
    }
}
