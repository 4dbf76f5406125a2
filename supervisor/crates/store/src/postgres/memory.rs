//! Memories in PostgreSQL.

use async_trait::async_trait;
use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::integers::{signed, unsigned};
use super::{PostgresStore, text_search};
use crate::error::Error;
use crate::id::MemoryId;
use crate::limits::MAX_RECALL_CANDIDATES;
use crate::memory::{
    ForgetSelector, Memory, MemoryColumns, MemoryQuery, NewMemory, OWNER_TAG, RecalledWorkflow, StoredMemory,
    UpsertedMemory, check_query, check_recall, rank_by_shared_words, rank_by_similarity,
};
use crate::page::{Page, PageBuilder, PageRequest};
use crate::search::{Query, stems};
use crate::time::Timestamp;

/// The columns that [`memory`] reads.
macro_rules! columns {
    () => {
        "id, content, source, workflow, count, created_at, last_used, tags"
    };
}
pub(super) use columns;

/// Recalls the memories that fulfil a condition. With an owner, which is the third parameter, only those of
/// that owner and those without one; the fourth parameter is the prefix of owners' tags.
macro_rules! recall_sql {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM talon.memories WHERE words @@ $1::text::tsquery AND ",
            $condition,
            " AND ($3::text IS NULL OR tags @> ARRAY[$3::text]
                OR NOT EXISTS (SELECT 1 FROM unnest(tags) tag WHERE starts_with(tag, $4::text)))
            ORDER BY ts_rank(words, $1::text::tsquery, 1) DESC LIMIT $2"
        )
    };
}

#[async_trait]
impl Memory for PostgresStore {
    async fn remember(&self, new: NewMemory) -> Result<UpsertedMemory, Error> {
        let memory = new.checked(Timestamp::now())?;
        let mut client = self.client().await?;
        let remembered = async {
            let transaction = client.transaction().await?;
            let again = "ON CONFLICT (fingerprint) DO UPDATE SET count = memories.count + 1,
                last_used = excluded.last_used, workflow = excluded.workflow";
            refresh_fingerprint(&transaction, &memory).await?;
            let rows = insert(&transaction, &memory, again).await?;
            let row = rows.ok_or_else(|| Error::unreadable("memory", "it is gone"))?;
            self.commit(transaction, 1).await?;
            let stored = self::memory(&row)?;
            Ok(UpsertedMemory { new: stored.id == memory.id, memory: stored })
        };
        self.inspect_result(remembered.await)
    }

    async fn get(&self, id: MemoryId) -> Result<Option<StoredMemory>, Error> {
        let client = self.client().await?;
        let found = async {
            let sql = concat!("SELECT ", columns!(), " FROM talon.memories WHERE id = $1");
            let sql = client.prepare_cached(sql).await?;
            client.query_opt(&sql, &[&id.to_string()]).await?.map(|row| memory(&row)).transpose()
        };
        self.inspect_result(found.await)
    }

    async fn search(&self, query: &MemoryQuery, page: &PageRequest) -> Result<Page<StoredMemory>, Error> {
        let tags: Vec<String> = check_query(query)?.into_iter().collect();
        let Some(text) = query.text.as_deref().map(Query::parse).transpose()? else {
            return self.newest(query, &tags, page).await;
        };
        let (text, skipped) = (text_search::match_all(&text), page.offset()?);
        let client = self.client().await?;
        let found = async {
            let sql = concat!(
                "SELECT ",
                columns!(),
                " FROM talon.memories WHERE words @@ $1::text::tsquery AND ($2::text IS NULL OR source = $2)
                    AND tags @> $3 ORDER BY ts_rank(words, $1::text::tsquery, 1) DESC, id DESC LIMIT $4 OFFSET $5"
            );
            let sql = client.prepare_cached(sql).await?;
            let mut filling = PageBuilder::new(page);
            for row in
                client.query(&sql, &[&text, &query.source, &tags, &page.fetch_limit(), &skipped]).await?
            {
                let memory = memory(&row)?;
                let weight = memory.weight();
                filling.push(memory, weight);
            }
            filling.finish_ranked(page)
        };
        self.inspect_result(found.await)
    }

    async fn recall(
        &self,
        request: &str,
        owner: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecalledWorkflow>, Error> {
        let candidates = self.candidates(recall_sql!("workflow IS NOT NULL"), request, owner).await?;
        Ok(rank_by_similarity(request, candidates, limit))
    }

    async fn related(
        &self,
        text: &str,
        owner: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredMemory>, Error> {
        let candidates = self.candidates(recall_sql!("workflow IS NULL"), text, owner).await?;
        Ok(rank_by_shared_words(text, candidates, limit))
    }

    async fn forget(&self, what: &ForgetSelector) -> Result<u64, Error> {
        what.check()?;
        let mut client = self.client().await?;
        let forgotten = async {
            let transaction = client.transaction().await?;
            let gone = match what {
                ForgetSelector::Id(id) => {
                    transaction.execute("DELETE FROM talon.memories WHERE id = $1", &[&id.to_string()]).await
                }
                ForgetSelector::Tag(tag) => {
                    // In this form the query uses the index of tags.
                    let sql = "DELETE FROM talon.memories WHERE tags @> ARRAY[$1::text]";
                    transaction.execute(sql, &[tag]).await
                }
                ForgetSelector::NotUsedSince(time) => {
                    let sql = "DELETE FROM talon.memories WHERE last_used < $1";
                    transaction.execute(sql, &[&time.as_millis()]).await
                }
            }?;
            self.commit(transaction, 1).await?;
            Ok(gone)
        };
        self.inspect_result(forgotten.await)
    }

    async fn import(&self, memory: StoredMemory) -> Result<bool, Error> {
        memory.check()?;
        let mut client = self.client().await?;
        let imported = async {
            let transaction = client.transaction().await?;
            refresh_fingerprint(&transaction, &memory).await?;
            let new = insert(&transaction, &memory, "ON CONFLICT DO NOTHING").await?.is_some();
            self.commit(transaction, 1).await?;
            Ok(new)
        };
        self.inspect_result(imported.await)
    }
}

impl PostgresStore {
    /// The memories that share stems with a text; `sql` is of [`recall_sql`].
    async fn candidates(
        &self,
        sql: &'static str,
        text: &str,
        owner: Option<&str>,
    ) -> Result<Vec<StoredMemory>, Error> {
        check_recall(text)?;
        let stems = stems(text);
        if stems.is_empty() {
            return Ok(Vec::new());
        }
        let client = self.client().await?;
        let found = async {
            let sql = client.prepare_cached(sql).await?;
            let limit = i64::from(MAX_RECALL_CANDIDATES);
            let stems = text_search::match_any(&stems);
            let rows = client.query(&sql, &[&stems, &limit, &owner, &OWNER_TAG]).await?;
            rows.iter().map(memory).collect()
        };
        self.inspect_result(found.await)
    }

    async fn newest(
        &self,
        query: &MemoryQuery,
        tags: &[String],
        page: &PageRequest,
    ) -> Result<Page<StoredMemory>, Error> {
        let last = page.last_text()?;
        let client = self.client().await?;
        let found = async {
            let sql = concat!(
                "SELECT ",
                columns!(),
                " FROM talon.memories WHERE ($1::text IS NULL OR id < $1) AND ($2::text IS NULL OR source = $2)
                    AND tags @> $3 ORDER BY id DESC LIMIT $4"
            );
            let sql = client.prepare_cached(sql).await?;
            let mut filling = PageBuilder::new(page);
            for row in client.query(&sql, &[&last, &query.source, &tags, &page.fetch_limit()]).await? {
                let memory = memory(&row)?;
                let weight = memory.weight();
                filling.push(memory, weight);
            }
            Ok(filling.finish(|memory| memory.id.to_string().into_bytes()))
        };
        self.inspect_result(found.await)
    }
}

/// Earlier versions gave a workflow with an owner the fingerprint that now means that it belongs to everyone.
/// If such a workflow with these steps exists, updates its fingerprint.
async fn refresh_fingerprint(db: &impl GenericClient, memory: &StoredMemory) -> Result<(), Error> {
    let Some(ownerless) = memory.ownerless_fingerprint() else { return Ok(()) };
    let sql = concat!("SELECT ", columns!(), " FROM talon.memories WHERE fingerprint = $1");
    let sql = db.prepare_cached(sql).await?;
    let found = db.query_opt(&sql, &[&ownerless.as_slice()]).await?;
    let Some(known) = found.map(|row| self::memory(&row)).transpose()? else { return Ok(()) };
    if known.owners().next().is_some() {
        // Another transaction may be doing the same.
        let sql = "UPDATE talon.memories SET fingerprint = $2 WHERE id = $1 AND fingerprint = $3";
        let own = known.fingerprint();
        let own = own.as_ref().map(<[u8; 32]>::as_slice);
        db.execute(sql, &[&known.id.to_string(), &own, &ownerless.as_slice()]).await?;
    }
    Ok(())
}

/// Inserts, and returns the row; none if it conflicts with an existing one.
async fn insert(
    db: &impl GenericClient,
    memory: &StoredMemory,
    conflict: &str,
) -> Result<Option<Row>, Error> {
    let sql = format!(
        "INSERT INTO talon.memories AS memories
        (id, content, source, workflow, fingerprint, count, created_at, last_used, tags, words)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::tsvector) {conflict} RETURNING {}",
        concat!(
            "memories.",
            "id, memories.content, memories.source, memories.workflow, memories.count,
            memories.created_at, memories.last_used, memories.tags"
        )
    );
    let sql = db.prepare_cached(&sql).await?;
    let tags: Vec<&String> = memory.tags.iter().collect();
    let row = db
        .query_opt(
            &sql,
            &[
                &memory.id.to_string(),
                &memory.content.as_bytes(),
                &memory.source,
                &memory.workflow_json(),
                &memory.fingerprint().as_ref().map(<[u8; 32]>::as_slice),
                &signed(memory.count),
                &memory.created_at.as_millis(),
                &memory.last_used.as_millis(),
                &tags,
                &text_search::to_tsvector(&memory.search_text()),
            ],
        )
        .await?;
    Ok(row)
}

/// Reads [`columns`].
pub(super) fn memory(row: &Row) -> Result<StoredMemory, Error> {
    let content = String::from_utf8(row.try_get(1)?);
    let tags: Vec<String> = row.try_get(7)?;
    StoredMemory::try_from(MemoryColumns {
        id: row.try_get(0)?,
        content: content.map_err(|error| Error::unreadable("memory's content", error))?,
        tags: tags.into_iter().collect(),
        source: row.try_get(2)?,
        workflow: row.try_get(3)?,
        created_at_ms: row.try_get(5)?,
        count: unsigned(row.try_get(4)?),
        last_used_ms: row.try_get(6)?,
    })
}
