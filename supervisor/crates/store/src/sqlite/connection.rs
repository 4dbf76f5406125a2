//! Connections, and the checks before the first of them writes.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::cancellation::Cancellation;
use super::migrations::MIGRATIONS;
use crate::error::Error;
use crate::migrate::{latest, missing};
use crate::open_error::OpenError;
use crate::options::StoreOptions;

/// `TALN`: marks a file as ours.
const APPLICATION_ID: i32 = 0x5441_4c4e;
/// The first release of SQLite that does not lose committed writes. Up to 3.51.2, two connections that write
/// and checkpoint at the same moment could reset the log under each other's commits.
pub(super) const MIN_SQLITE: (i32, &str) = (3_051_003, "3.51.3");
/// How long the database is checked at the start. This is enough for about a gigabyte; the rest of a larger
/// one is checked page by page as it is read.
const MAX_CHECK: Duration = Duration::from_secs(5);
/// How long a database is checked that was checked when it was opened before ([`StoreOptions::examined`]):
/// enough for some ten megabytes, and little beside the start of a process. Clients wait meanwhile.
const MAX_REPEATED_CHECK: Duration = Duration::from_millis(100);
/// How many steps of SQLite's virtual machine pass between two looks at the clock: about a millisecond.
const STEPS_PER_LOOK: std::ffi::c_int = 10_000;
/// How much of SQLite's message about a damaged file is repeated: enough for its first finding, too little to
/// fill a screen.
const MAX_DETAIL_CHARS: usize = 300;
/// The size to which the log is truncated after a checkpoint. It grows to this anyway.
const KEPT_LOG_BYTES: i64 = 16 * 1024 * 1024;
/// The size of the statement cache: every statement of this crate fits, so none is compiled twice on a
/// connection.
const KEPT_STATEMENTS: usize = 96;

/// Opens without SQLite's own mutex: the type system ensures that one thread at a time uses a connection.
fn open(path: &Path, flags: OpenFlags, busy: Duration) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(busy)?;
    connection.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
    // A damaged file must not make SQLite do more than fail.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Plans that depend on no parameter: otherwise some statements are compiled anew whenever one is bound.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Refuses a linked SQLite that can lose committed writes.
pub(super) fn refuse_old_sqlite() -> Result<(), OpenError> {
    let (number, needed) = MIN_SQLITE;
    if rusqlite::version_number() < number {
        return Err(OpenError::OldSqlite { found: rusqlite::version(), needed });
    }
    Ok(())
}

/// The connection that writes.
pub(super) fn writer(path: &Path, settings: &StoreOptions) -> Result<Connection, OpenError> {
    let failed = |error: rusqlite::Error| unusable(path, error);
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, settings.busy_timeout).map_err(failed)?;
    configure(&connection, settings).map_err(failed)?;
    Ok(connection)
}

/// With FULL, a commit returns after the log is on the disk; with the default a power cut may lose it.
fn configure(connection: &Connection, settings: &StoreOptions) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "journal_size_limit", KEPT_LOG_BYTES)?;
    if let Some(bytes) = settings.max_bytes {
        let page: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from((bytes / page.max(1)).max(1)).unwrap_or(i64::MAX);
        connection.pragma_update(None, "max_page_count", pages)?;
    }
    Ok(())
}

/// One of the connections that read.
pub(super) fn reader(path: &Path, settings: &StoreOptions) -> Result<Connection, OpenError> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, settings.busy_timeout).map_err(|error| unusable(path, error))
}

/// Fills the draft of a database.
pub(super) fn fill(draft: &Path, settings: &StoreOptions) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| unusable(draft, error);
    let mut connection =
        open(draft, OpenFlags::SQLITE_OPEN_READ_WRITE, settings.busy_timeout).map_err(failed)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    migrate(&mut connection, draft)?;
    // Stored in the file. A draft has one connection, so its log is removed when this is closed.
    connection.pragma_update(None, "journal_mode", "wal").map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))
}

/// Refuses a file that is not ours, too new or damaged. Uses a read-only connection: closing another one
/// would write the log into a damaged file.
pub(super) fn inspect(path: &Path, settings: &StoreOptions) -> Result<(), OpenError> {
    let mut connection = reader(path, settings)?;
    let number = |name| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, i32>(0))
            .map_err(|error| unusable(path, error))
    };
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application != APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let found = u32::try_from(version).unwrap_or(u32::MAX);
    if missing(MIGRATIONS, found).is_none() {
        let known = latest(MIGRATIONS);
        return Err(OpenError::Newer { place: path.display().to_string(), found, known });
    }
    let until = Instant::now() + if settings.examined { MAX_REPEATED_CHECK } else { MAX_CHECK };
    let late = move || Instant::now() > until;
    connection.progress_handler(STEPS_PER_LOOK, Some(late)).map_err(|error| unusable(path, error))?;
    match connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)) {
        Ok(answer) if answer == "ok" => Ok(()),
        Ok(detail) => Err(OpenError::Damaged { path: path.to_owned(), detail: one_line(&detail) }),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => {
            tracing::info!(path = %path.display(), "the database is too large to be examined whole at the start");
            Ok(())
        }
        Err(error) => Err(unusable(path, error)),
    }
}

/// The connection that checks a copy. It stops when the work is cancelled.
pub(super) fn examiner(
    path: &Path,
    settings: &StoreOptions,
    halt: &Cancellation,
) -> Result<Connection, Error> {
    let failed = |error| copy_error(unusable(path, error));
    let mut connection =
        open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, settings.busy_timeout).map_err(failed)?;
    let halt = halt.clone();
    connection.progress_handler(STEPS_PER_LOOK, Some(move || halt.is_cancelled())).map_err(failed)?;
    Ok(connection)
}

/// Checks everything in a copy, however long that takes; returns its schema version.
pub(super) fn examine(connection: &Connection, path: &Path) -> Result<u32, Error> {
    let failed = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::OperationInterrupted) => Error::Closed,
        _ => copy_error(unusable(path, error)),
    };
    let bad = |why: &str| Err(Error::BadCopy { path: path.to_owned(), why: why.to_owned() });
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(failed);
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application != APPLICATION_ID {
        return Err(copy_error(OpenError::Foreign { path: path.to_owned() }));
    }
    let found = u32::try_from(version).unwrap_or(u32::MAX);
    if found == 0 {
        return bad("there is nothing in it");
    }
    if missing(MIGRATIONS, found).is_none() {
        let known = latest(MIGRATIONS);
        return Err(copy_error(OpenError::Newer { place: path.display().to_string(), found, known }));
    }
    // Databases with different page sizes cannot be copied into each other.
    let new = new_in_memory()?;
    for layout in ["page_size", "encoding", "auto_vacuum"] {
        let value = |connection: &Connection| {
            connection.pragma_query_value(None, layout, |row| row.get::<_, rusqlite::types::Value>(0))
        };
        if value(connection).map_err(failed)? != value(&new)? {
            return bad("another program has changed its layout");
        }
    }
    let answer: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if answer != "ok" {
        return bad(&format!("it is damaged: {}", one_line(&answer)));
    }
    let mut orphans = connection.prepare("PRAGMA foreign_key_check").map_err(failed)?;
    if orphans.exists([]).map_err(failed)? {
        return bad("it is damaged: rows are missing that others belong to");
    }
    Ok(found)
}

/// Describes what is wrong with a copy, without the advice to restore a backup.
pub(super) fn copy_error(error: OpenError) -> Error {
    match error {
        OpenError::Damaged { path, detail } => {
            Error::BadCopy { path, why: format!("it is damaged: {detail}") }
        }
        OpenError::Foreign { path } => {
            Error::BadCopy { path, why: "it is a database of another program".to_owned() }
        }
        OpenError::Newer { place, found, known } => Error::BadCopy {
            path: place.into(),
            why: format!(
                "it has schema version {found}, and this Talon knows {known}; use the newer Talon that wrote it"
            ),
        },
        other => other.into(),
    }
}

/// A database as it would be created now.
pub(super) fn new_in_memory() -> Result<Connection, Error> {
    let mut connection = Connection::open_in_memory()?;
    migrate(&mut connection, Path::new(":memory:"))?;
    Ok(connection)
}

/// Writes the log of an unused database into its file, and removes the log, so that the file alone can be
/// moved.
pub(super) fn drop_wal(path: &Path) -> Result<(), Error> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "journal_mode", "delete")?;
    connection.close().map_err(|(_, error)| error.into())
}

/// Migrates the schema to the latest version. Of two processes the second finds nothing to do.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| unusable(path, error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let found: u32 =
        transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let Some(missing) = missing(MIGRATIONS, found) else {
        let known = latest(MIGRATIONS);
        return Err(OpenError::Newer { place: path.display().to_string(), found, known });
    };
    for migration in missing {
        transaction.execute_batch(migration.sql).map_err(failed)?;
        transaction.pragma_update(None, "user_version", migration.version).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// Whether there is any memory.
pub(super) fn has_memories(connection: &Connection, path: &Path) -> Result<bool, OpenError> {
    let found = connection.query_row("SELECT EXISTS (SELECT 1 FROM memories)", [], |row| row.get(0));
    found.map_err(|error| unusable(path, error))
}

fn unusable(path: &Path, error: rusqlite::Error) -> OpenError {
    match super::error::failed(error) {
        crate::Error::Corrupt(source) => {
            OpenError::Damaged { path: path.to_owned(), detail: one_line(&source.to_string()) }
        }
        crate::Error::Engine(source) => OpenError::Engine(source),
        other => OpenError::Store(other),
    }
}

/// SQLite's findings begin with a headline. They may quote the file, whose content is untrusted.
fn one_line(detail: &str) -> String {
    let lines: Vec<&str> = detail.lines().filter(|line| !line.starts_with("***")).collect();
    let shown = lines.join("; ").chars().take(MAX_DETAIL_CHARS).collect::<String>();
    shown.replace(|character: char| character.is_control(), "?")
}
