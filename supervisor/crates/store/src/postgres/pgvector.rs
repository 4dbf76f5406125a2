//! The extension pgvector, if the database has it: then the server compares vectors, and sends what is near alone.
//! It is no trusted extension, so the store's role cannot create it.

use deadpool_postgres::GenericClient;

use crate::error::Error;
use talon_error_chain::error_chain;

/// The extension's place.
#[derive(Debug)]
pub(crate) struct Pgvector {
    /// The schema of its type and operators, as SQL writes it.
    schema: String,
}

impl Pgvector {
    /// The type of its vectors.
    pub(super) fn kind(&self) -> String {
        format!("{}.vector", self.schema)
    }

    /// The operator for 1 less the cosine.
    pub(super) fn distance(&self) -> String {
        format!("OPERATOR({}.<=>)", self.schema)
    }

    /// Finds the extension, and adds the column for it. Without the right to do so the store goes without.
    pub(super) async fn find(db: &impl GenericClient) -> Result<Option<Self>, Error> {
        let sql =
            "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
            WHERE e.extname = 'vector'";
        let Some(row) = db.query_opt(sql, &[]).await? else { return Ok(None) };
        let found = Self { schema: row.try_get(0)? };
        let column =
            format!("ALTER TABLE talon.memory_vectors ADD COLUMN IF NOT EXISTS embedding {}", found.kind());
        if let Err(error) = db.batch_execute(&column).await {
            let error = error_chain(&error);
            tracing::warn!(
                error,
                "pgvector is there and cannot be used: the role has to own talon.memory_vectors; vectors are compared here"
            );
            return Ok(None);
        }
        Ok(Some(found))
    }
}
