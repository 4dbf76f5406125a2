//! The schema `talon` of a database, and its version.

use deadpool_postgres::Object;

use super::migrations::MIGRATIONS;
use crate::error::Error;
use crate::migrate::{latest, missing};
use crate::open_error::OpenError;
use talon_error_chain::error_chain;

/// `TALN`: the number of the advisory lock for migrations, which makes a second machine wait.
const LOCK: i64 = 0x5441_4c4e;

/// Checks the server, and migrates the schema to the latest version.
pub(super) async fn prepare(client: &mut Object) -> Result<(), OpenError> {
    let failed = |error: tokio_postgres::Error| match Error::from(error) {
        Error::Engine(source) => OpenError::Server(error_chain(&*source)),
        other => OpenError::Store(other),
    };
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
    let row = transaction
        .query_one(
            "SELECT current_setting('server_encoding'), current_setting('fsync'), current_database()",
            &[],
        )
        .await
        .map_err(failed)?;
    let (encoding, fsync, place): (String, String, String) = (row.get(0), row.get(1), row.get(2));
    if encoding != "UTF8" {
        let why = format!(
            "database {place} has the encoding {encoding}; create it with:  createdb --encoding UTF8"
        );
        return Err(OpenError::Server(why));
    }
    if fsync != "on" {
        tracing::warn!("the server has fsync = {fsync}: what it acknowledges does not survive a power cut");
    }
    transaction
        .batch_execute(
            "CREATE SCHEMA IF NOT EXISTS talon;
            CREATE TABLE IF NOT EXISTS talon.schema_version (version INT NOT NULL)",
        )
        .await
        .map_err(failed)?;
    let row = transaction
        .query_one("SELECT coalesce(max(version), 0) FROM talon.schema_version", &[])
        .await
        .map_err(failed)?;
    let found = u32::try_from(row.get::<_, i32>(0)).unwrap_or(u32::MAX);
    let Some(missing) = missing(MIGRATIONS, found) else {
        return Err(OpenError::Newer {
            place: format!("the database {place}"),
            found,
            known: latest(MIGRATIONS),
        });
    };
    for migration in missing {
        transaction.batch_execute(migration.sql).await.map_err(failed)?;
        let version = i32::try_from(migration.version).unwrap_or(i32::MAX);
        transaction
            .execute("INSERT INTO talon.schema_version VALUES ($1)", &[&version])
            .await
            .map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}
