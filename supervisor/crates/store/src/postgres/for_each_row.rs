//! Reads rows one by one, for pages that end when they are large enough.

use std::pin::pin;

use deadpool_postgres::GenericClient;
use futures_util::TryStreamExt as _;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::error::Error;

/// Reads rows one by one until the page is full, since each may have a megabyte.
pub(super) async fn for_each_row(
    db: &impl GenericClient,
    sql: &Statement,
    params: &[&(dyn ToSql + Sync)],
    mut take: impl FnMut(&Row) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut rows = pin!(db.query_raw(sql, params.iter().copied()).await?);
    while let Some(row) = rows.try_next().await? {
        if !take(&row)? {
            break;
        }
    }
    Ok(())
}
