//! Memories in SQLite.

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use super::{SqliteStore, text_search};
use crate::error::Error;
use crate::id::MemoryId;
use crate::limits::MAX_RECALL_CANDIDATES;
use crate::memory::{
    ForgetSelector, Memory, MemoryColumns, MemoryQuery, NewMemory, OWNER_TAG, RecalledWorkflow, StoredMemory,
    UpsertedMemory, check_query, check_recall, rank_by_shared_words, rank_by_similarity, stored_id,
};
use crate::page::{Page, PageBuilder, PageRequest};
use crate::search::{Query, stems};
use crate::time::Timestamp;

/// The columns that [`memory`] reads.
macro_rules! columns {
    () => {
        "SELECT m.ulid, m.content, m.source, m.workflow, m.count, m.created_at, m.last_used,
            (SELECT json_group_array(tag) FROM memory_tags t WHERE t.memory = m.id), m.id"
    };
}
pub(super) use columns;

/// The filters of a search, from the second parameter on. All tags must match: the number found must be the
/// number requested.
macro_rules! filter {
    () => {
        "(?2 IS NULL OR m.source = ?2) AND (?3 = 0 OR ?3 = (
            SELECT count(*) FROM memory_tags t WHERE t.memory = m.id AND t.tag IN (SELECT value FROM json_each(?4))))"
    };
}

/// Recalls the memories that fulfil a condition. With an owner, which is the third parameter, only those of
/// that owner and those without one; the fourth parameter is the prefix of owners' tags.
macro_rules! recall_sql {
    ($condition:literal) => {
        concat!(
            columns!(),
            " FROM memory_words w JOIN memories m ON m.id = w.rowid WHERE w.words MATCH ?1 AND ",
            $condition,
            " AND (?3 IS NULL OR EXISTS (SELECT 1 FROM memory_tags t WHERE t.memory = m.id AND t.tag = ?3)
                OR NOT EXISTS (SELECT 1 FROM memory_tags t WHERE t.memory = m.id AND substr(t.tag, 1, length(?4)) = ?4))
            ORDER BY bm25(memory_words) LIMIT ?2"
        )
    };
}

#[async_trait]
impl Memory for SqliteStore {
    fn may_have_any(&self) -> bool {
        self.may_have_memories()
    }

    async fn remember(&self, new: NewMemory) -> Result<UpsertedMemory, Error> {
        let memory = new.checked(Timestamp::now())?;
        self.expect_memories();
        let words = text_search::to_fts5(&memory.search_text());
        self.write(move |db| {
            if let Some(known) = same_workflow(db, &memory)? {
                let workflow = memory.workflow_json();
                db.prepare_cached(
                    "UPDATE memories SET count = count + 1, last_used = ?2, workflow = ?3 WHERE ulid = ?1",
                )?
                .execute(params![
                    known.to_string(),
                    memory.last_used.as_millis(),
                    workflow
                ])?;
                let memory = find(db, known)?.ok_or(Error::unreadable("memory", "it is gone"))?;
                return Ok(UpsertedMemory { memory, new: false });
            }
            insert(db, &memory, &words)?;
            Ok(UpsertedMemory { memory: memory.clone(), new: true })
        })
        .await
    }

    async fn get(&self, id: MemoryId) -> Result<Option<StoredMemory>, Error> {
        self.read(move |db| find(db, id)).await
    }

    async fn search(&self, query: &MemoryQuery, page: &PageRequest) -> Result<Page<StoredMemory>, Error> {
        let tags = check_query(query)?;
        let (query, page) = (query.clone(), page.clone());
        let Some(text) = query.text.as_deref().map(Query::parse).transpose()? else {
            return self.read(move |db| newest(db, &query, &tags, &page)).await;
        };
        self.read(move |db| {
            let sql = concat!(
                columns!(),
                " FROM memory_words w JOIN memories m ON m.id = w.rowid WHERE w.words MATCH ?1 AND ",
                filter!(),
                " ORDER BY bm25(memory_words), m.ulid DESC LIMIT ?5 OFFSET ?6"
            );
            let (probe, skipped) = (page.fetch_limit(), page.offset()?);
            let text = text_search::match_all(&text);
            let mut filling = PageBuilder::new(&page);
            for memory in
                select(db, sql, params![text, query.source, tags.len(), json(&tags), probe, skipped])?
            {
                let weight = memory.weight();
                filling.push(memory, weight);
            }
            filling.finish_ranked(&page)
        })
        .await
    }

    async fn recall(
        &self,
        request: &str,
        owner: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecalledWorkflow>, Error> {
        let rank = move |request: &str, candidates| rank_by_similarity(request, candidates, limit);
        self.recall_by(recall_sql!("m.workflow IS NOT NULL"), request, owner, rank).await
    }

    async fn related(
        &self,
        text: &str,
        owner: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredMemory>, Error> {
        let rank = move |text: &str, candidates| rank_by_shared_words(text, candidates, limit);
        self.recall_by(recall_sql!("m.workflow IS NULL"), text, owner, rank).await
    }

    async fn forget(&self, what: &ForgetSelector) -> Result<u64, Error> {
        what.check()?;
        let what = what.clone();
        self.write(move |db| {
            let (condition, value): (_, Box<dyn ToSql>) = match &what {
                ForgetSelector::Id(id) => ("ulid = ?1", Box::new(id.to_string())),
                ForgetSelector::Tag(tag) => {
                    ("id IN (SELECT memory FROM memory_tags WHERE tag = ?1)", Box::new(tag.clone()))
                }
                ForgetSelector::NotUsedSince(time) => ("last_used < ?1", Box::new(time.as_millis())),
            };
            db.prepare_cached(&format!(
                "DELETE FROM memory_words WHERE rowid IN (SELECT id FROM memories WHERE {condition})"
            ))?
            .execute([&value])?;
            // Deleting a memory deletes its tags.
            let gone =
                db.prepare_cached(&format!("DELETE FROM memories WHERE {condition}"))?.execute([&value])?;
            Ok(gone as u64)
        })
        .await
    }

    async fn import(&self, memory: StoredMemory) -> Result<bool, Error> {
        memory.check()?;
        self.expect_memories();
        let words = text_search::to_fts5(&memory.search_text());
        self.write(move |db| {
            if find(db, memory.id)?.is_some() || same_workflow(db, &memory)?.is_some() {
                return Ok(false);
            }
            insert(db, &memory, &words)?;
            Ok(true)
        })
        .await
    }
}

impl SqliteStore {
    /// Ranks the memories that share stems with a text; `sql` is of [`recall_sql`].
    async fn recall_by<T: Send + 'static>(
        &self,
        sql: &'static str,
        text: &str,
        owner: Option<&str>,
        rank: impl FnOnce(&str, Vec<StoredMemory>) -> Vec<T> + Send + 'static,
    ) -> Result<Vec<T>, Error> {
        check_recall(text)?;
        let stems = stems(text);
        if stems.is_empty() || !self.may_have_memories() {
            return Ok(Vec::new());
        }
        let (text, owner) = (text.to_owned(), owner.map(ToOwned::to_owned));
        self.read(move |db| {
            let stems = text_search::match_any(&stems);
            let candidates = select(db, sql, params![stems, MAX_RECALL_CANDIDATES, owner, OWNER_TAG])?;
            Ok(rank(&text, candidates))
        })
        .await
    }
}

fn find(db: &Connection, id: MemoryId) -> Result<Option<StoredMemory>, Error> {
    Ok(select(db, concat!(columns!(), " FROM memories m WHERE ulid = ?1"), [id.to_string()])?.pop())
}

fn newest(
    db: &Connection,
    query: &MemoryQuery,
    tags: &BTreeSet<String>,
    page: &PageRequest,
) -> Result<Page<StoredMemory>, Error> {
    let sql = concat!(
        columns!(),
        " FROM memories m WHERE (?1 IS NULL OR m.ulid < ?1) AND ",
        filter!(),
        " ORDER BY m.ulid DESC LIMIT ?5"
    );
    let mut filling = PageBuilder::new(page);
    for memory in
        select(db, sql, params![page.last_text()?, query.source, tags.len(), json(tags), page.fetch_limit()])?
    {
        let weight = memory.weight();
        filling.push(memory, weight);
    }
    Ok(filling.finish(|memory| memory.id.to_string().into_bytes()))
}

fn same_workflow(db: &Connection, memory: &StoredMemory) -> Result<Option<MemoryId>, Error> {
    let Some(fingerprint) = memory.fingerprint() else { return Ok(None) };
    refresh_fingerprint(db, memory)?;
    let mut found = db.prepare_cached("SELECT ulid FROM memories WHERE fingerprint = ?1")?;
    let id: Option<String> = found.query_row([fingerprint], |row| row.get(0)).optional()?;
    id.map(|id| stored_id(&id)).transpose()
}

/// Earlier versions gave a workflow with an owner the fingerprint that now means that it belongs to everyone.
/// If such a workflow with these steps exists, updates its fingerprint.
fn refresh_fingerprint(db: &Connection, memory: &StoredMemory) -> Result<(), Error> {
    let sql = concat!(columns!(), " FROM memories m WHERE fingerprint = ?1");
    let Some(known) = select(db, sql, [memory.ownerless_fingerprint()])?.pop() else { return Ok(()) };
    if known.owners().next().is_some() {
        db.prepare_cached("UPDATE memories SET fingerprint = ?2 WHERE ulid = ?1")?
            .execute(params![known.id.to_string(), known.fingerprint()])?;
    }
    Ok(())
}

fn insert(db: &Connection, memory: &StoredMemory, words: &str) -> Result<(), Error> {
    db.prepare_cached(
        "INSERT INTO memories (ulid, content, source, workflow, fingerprint, count, created_at, last_used)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        memory.id.to_string(),
        memory.content,
        memory.source,
        memory.workflow_json(),
        memory.fingerprint(),
        memory.count,
        memory.created_at.as_millis(),
        memory.last_used.as_millis(),
    ])?;
    let row = db.last_insert_rowid();
    for tag in &memory.tags {
        db.prepare_cached("INSERT INTO memory_tags (tag, memory) VALUES (?1, ?2)")?
            .execute(params![tag, row])?;
    }
    db.prepare_cached("INSERT INTO memory_words (rowid, words) VALUES (?1, ?2)")?
        .execute(params![row, words])?;
    Ok(())
}

pub(super) fn select(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<StoredMemory>, Error> {
    let mut rows = db.prepare_cached(sql)?;
    let mut rows = rows.query(params)?;
    let mut memories = Vec::new();
    while let Some(row) = rows.next()? {
        memories.push(memory(row)?);
    }
    Ok(memories)
}

fn memory(row: &Row<'_>) -> Result<StoredMemory, Error> {
    let tags: String = row.get(7)?;
    StoredMemory::try_from(MemoryColumns {
        id: row.get(0)?,
        content: row.get(1)?,
        tags: serde_json::from_str(&tags).map_err(|error| Error::unreadable("memory's tags", error))?,
        source: row.get(2)?,
        workflow: row.get(3)?,
        created_at_ms: row.get(5)?,
        count: row.get(4)?,
        last_used_ms: row.get(6)?,
    })
}

fn json(tags: &BTreeSet<String>) -> String {
    serde_json::to_string(tags).expect("lists of texts are always JSON")
}
