//! Vectors of memories in SQLite: a search reads and compares them one by one.

use async_trait::async_trait;
use rusqlite::params;

use super::SqliteStore;
use super::memory::{columns, select};
use crate::error::Error;
use crate::id::MemoryId;
use crate::limits::{MAX_COMPARED_VECTORS, MAX_STORED_VECTORS, MAX_VECTOR_NUMBERS, count};
use crate::memory::{
    MemoryVectors, NearMemory, NearestMemories, NearestQuery, OWNER_TAG, StoredMemory, VectorCounts,
    VectorEngine, check_model, nearest_first,
};
use crate::vector::Vector;

#[async_trait]
impl MemoryVectors for SqliteStore {
    async fn without_vector(
        &self,
        model: &str,
        except: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredMemory>, Error> {
        check_model(model)?;
        let (model, except) = (model.to_owned(), except.map(ToOwned::to_owned));
        self.read(move |db| {
            let sql = concat!(
                columns!(),
                " FROM memories m WHERE NOT EXISTS (SELECT 1 FROM memory_vectors v WHERE v.memory = m.id AND v.model = ?1)
                    AND (?2 IS NULL OR NOT EXISTS (SELECT 1 FROM memory_tags t WHERE t.memory = m.id AND t.tag = ?2))
                ORDER BY m.id DESC LIMIT ?3"
            );
            select(db, sql, params![model, except, limit])
        })
        .await
    }

    async fn put(&self, model: &str, vectors: Vec<(MemoryId, Vector)>) -> Result<u64, Error> {
        check_model(model)?;
        count("the vectors", vectors.len(), MAX_STORED_VECTORS)?;
        vectors
            .iter()
            .try_for_each(|(_, vector)| count("the numbers of a vector", vector.len(), MAX_VECTOR_NUMBERS))?;
        let model = model.to_owned();
        self.write(move |db| {
            let mut sql = db.prepare_cached(
                "INSERT INTO memory_vectors (memory, model, vector) SELECT id, ?2, ?3 FROM memories WHERE ulid = ?1
                ON CONFLICT (memory) DO UPDATE SET model = excluded.model, vector = excluded.vector",
            )?;
            let mut stored = 0;
            for (id, vector) in &vectors {
                stored += sql.execute(params![id.to_string(), model, vector.to_bytes()])? as u64;
            }
            Ok(stored)
        })
        .await
    }

    async fn keep_only(&self, model: &str, numbers: Option<usize>) -> Result<u64, Error> {
        check_model(model)?;
        let model = model.to_owned();
        self.write(move |db| {
            let gone = db
                .prepare_cached(
                    "DELETE FROM memory_vectors WHERE model <> ?1 OR (?2 IS NOT NULL AND length(vector) <> ?2)",
                )?
                .execute(params![model, numbers])?;
            Ok(gone as u64)
        })
        .await
    }

    async fn nearest(&self, query: &NearestQuery) -> Result<NearestMemories, Error> {
        check_model(&query.model)?;
        let query = query.clone();
        self.read(move |db| {
            // The transaction ends when it is dropped: what is near is still there when it is read.
            let moment = db.unchecked_transaction()?;
            let mut rows = moment.prepare_cached(
                "SELECT m.id, v.vector FROM memory_vectors v JOIN memories m ON m.id = v.memory
                WHERE v.model = ?1 AND length(v.vector) = ?2 AND (?3 OR m.workflow IS NULL)
                    AND (?4 IS NULL OR EXISTS (SELECT 1 FROM memory_tags t WHERE t.memory = m.id AND t.tag = ?4)
                        OR NOT EXISTS (SELECT 1 FROM memory_tags t WHERE t.memory = m.id AND substr(t.tag, 1, length(?5)) = ?5))
                ORDER BY m.id DESC LIMIT ?6",
            )?;
            let numbers = query.vector.len();
            let values = params![query.model, numbers, query.workflows, query.owner, OWNER_TAG, MAX_COMPARED_VECTORS];
            let mut rows = rows.query(values)?;
            let mut vectors: Vec<(i64, Vector)> = Vec::new();
            while let Some(row) = rows.next()? {
                vectors.push((row.get(0)?, Vector::from_bytes(&row.get::<_, Vec<u8>>(1)?)));
            }
            let (near, all) = nearest_first(&query.vector, query.limit, vectors.into_iter());
            let mut found = Vec::with_capacity(near.len());
            for (row, similarity) in near {
                let sql = concat!(columns!(), " FROM memories m WHERE m.id = ?1");
                let memory = select(&moment, sql, [row])?.pop();
                found.extend(memory.map(|memory| NearMemory { memory, similarity }));
            }
            Ok(NearestMemories { memories: found, all })
        })
        .await
    }

    async fn counts(&self, model: &str, except: Option<&str>) -> Result<VectorCounts, Error> {
        check_model(model)?;
        let (model, except) = (model.to_owned(), except.map(ToOwned::to_owned));
        self.read(move |db| {
            let mut sql = db.prepare_cached(
                "SELECT count(*), count(*) FILTER (WHERE e.memory IS NOT NULL),
                    count(*) FILTER (WHERE e.memory IS NULL AND v.model = ?1),
                    count(*) FILTER (WHERE v.model <> ?1), max(length(v.vector)) FILTER (WHERE v.model = ?1)
                FROM memories m LEFT JOIN memory_vectors v ON v.memory = m.id
                LEFT JOIN memory_tags e ON e.memory = m.id AND e.tag = ?2",
            )?;
            Ok(sql.query_row(params![model, except], |row| {
                let (all, excepted): (u64, u64) = (row.get(0)?, row.get(1)?);
                Ok(VectorCounts {
                    memories: all - excepted,
                    vectors: row.get(2)?,
                    excepted,
                    others: row.get(3)?,
                    numbers: row.get(4)?,
                })
            })?)
        })
        .await
    }

    async fn engine(&self) -> Result<VectorEngine, Error> {
        Ok(VectorEngine::Sqlite)
    }
}
