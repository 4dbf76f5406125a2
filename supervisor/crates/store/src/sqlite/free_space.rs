//! Whether there is room for writes again.

use std::path::Path;

use rusqlite::Connection;

use super::SqliteStore;
use crate::error::Error;
use crate::limits::MAX_VALUE_BYTES;

/// The room that a database needs is that of the largest value, or this part of a disk or a limit, if that is
/// less: a small limit that has room for most values is not full.
const SMALL_PART: u64 = 16;

impl SqliteStore {
    pub(crate) async fn check_room(&self) -> Result<(), Error> {
        let path = self.path.clone();
        let disk = tokio::task::spawn_blocking(move || check_disk(&path)).await;
        disk.unwrap_or_else(|panic| Err(Error::Engine(panic.into())))?;
        self.write(|db| {
            check_limit(db)?;
            // It writes a page, as a plugin's write does: the log may not be able to grow.
            let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
            Ok(db.pragma_update(None, "user_version", version)?)
        })
        .await
    }
}

/// The room within the largest size of the file.
fn check_limit(db: &Connection) -> Result<(), Error> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let (pages, limit) = (number("page_count")?, number("max_page_count")?);
    let free = limit.saturating_sub(pages) + number("freelist_count")?;
    let page_bytes = number("page_size")?;
    check(free.saturating_mul(page_bytes), limit.saturating_mul(page_bytes), "below the limit of the file")
}

/// The room on the disk for a process without privileges.
fn check_disk(database: &Path) -> Result<(), Error> {
    let disk =
        rustix::fs::statvfs(database).map_err(|errno| Error::Engine(std::io::Error::from(errno).into()))?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    check(bytes(disk.f_bavail), bytes(disk.f_blocks), "on the disk")
}

fn check(free: u64, total: u64, whereabouts: &str) -> Result<(), Error> {
    let needed = (MAX_VALUE_BYTES as u64).min(total / SMALL_PART);
    if free < needed {
        return Err(Error::Full(format!("{free} bytes are free {whereabouts}").into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_limit_needs_less_room_than_the_largest_value() {
        const MIB: u64 = 1 << 20;
        assert!(check(MIB, 1 << 40, "").is_ok());
        assert!(matches!(check(MIB - 1, 1 << 40, ""), Err(Error::Full(_))));
        assert!(check(MIB / 16, MIB, "").is_ok());
        assert!(matches!(check(MIB / 16 - 1, MIB, ""), Err(Error::Full(_))));
    }
}
