//! Vectors of memories in PostgreSQL: compared by the server where it has pgvector, and otherwise here.

use async_trait::async_trait;
use deadpool_postgres::GenericClient as _;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::integers::unsigned;
use super::memory::{columns, memory};
use crate::error::Error;
use crate::id::MemoryId;
use crate::limits::{MAX_COMPARED_VECTORS, MAX_RECALLED, MAX_STORED_VECTORS, MAX_VECTOR_NUMBERS, count};
use crate::memory::{
    MemoryVectors, NearMemory, NearestMemories, NearestQuery, OWNER_TAG, Spread, StoredMemory, VectorCounts,
    VectorEngine, check_model, nearest_first,
};
use crate::vector::Vector;

/// The vectors that a search compares: the model is the first parameter, the length the second, whether workflows
/// count the third, the owner the fourth, and the prefix of owners' tags the fifth.
const COMPARED: &str = "talon.memory_vectors v JOIN talon.memories ON memories.id = v.memory
    WHERE v.model = $1 AND length(v.vector) = $2 AND ($3 OR workflow IS NULL)
        AND ($4::text IS NULL OR tags @> ARRAY[$4::text]
            OR NOT EXISTS (SELECT 1 FROM unnest(tags) tag WHERE starts_with(tag, $5::text)))";

#[async_trait]
impl MemoryVectors for PostgresStore {
    async fn without_vector(
        &self,
        model: &str,
        except: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredMemory>, Error> {
        check_model(model)?;
        let client = self.client().await?;
        let found = async {
            // Vectors that were stored before the extension came are made again.
            let whole = self.pgvector(&client).await?.map_or("", |_| "AND v.embedding IS NOT NULL");
            let sql = format!(
                "SELECT {} FROM talon.memories WHERE NOT EXISTS (
                    SELECT 1 FROM talon.memory_vectors v WHERE v.memory = memories.id AND v.model = $1 {whole})
                AND ($2::text IS NULL OR NOT tags @> ARRAY[$2::text]) ORDER BY id DESC LIMIT $3",
                columns!()
            );
            let sql = client.prepare_cached(&sql).await?;
            let rows = client.query(&sql, &[&model, &except, &i64::from(limit)]).await?;
            rows.iter().map(memory).collect()
        };
        self.inspect_result(found.await)
    }

    async fn put(&self, model: &str, vectors: Vec<(MemoryId, Vector)>) -> Result<u64, Error> {
        check_model(model)?;
        count("the vectors", vectors.len(), MAX_STORED_VECTORS)?;
        vectors
            .iter()
            .try_for_each(|(_, vector)| count("the numbers of a vector", vector.len(), MAX_VECTOR_NUMBERS))?;
        let mut client = self.client().await?;
        let stored = async {
            let extension = self.pgvector(&client).await?;
            let (column, value, change) = match extension {
                Some(extension) => (
                    ", embedding",
                    format!(", $4::text::{}", extension.kind()),
                    ", embedding = excluded.embedding",
                ),
                None => ("", String::new(), ""),
            };
            // FOR SHARE: a memory that is being forgotten is waited for, and then it is gone.
            let sql = format!(
                "INSERT INTO talon.memory_vectors (memory, model, vector{column})
                SELECT id, $2, $3{value} FROM talon.memories WHERE id = $1 FOR SHARE
                ON CONFLICT (memory) DO UPDATE SET model = excluded.model, vector = excluded.vector{change}"
            );
            let has_extension = extension.is_some();
            let transaction = client.transaction().await?;
            let sql = transaction.prepare_cached(&sql).await?;
            let mut stored = 0;
            for (id, vector) in &vectors {
                let (id, bytes, text) = (id.to_string(), vector.to_bytes(), vector.to_text());
                let mut values: Vec<&(dyn ToSql + Sync)> = vec![&id, &model, &bytes];
                if has_extension {
                    values.push(&text);
                }
                stored += transaction.execute(&sql, &values).await?;
            }
            self.commit(transaction, stored).await?;
            Ok(stored)
        };
        self.inspect_result(stored.await)
    }

    async fn keep_only(&self, model: &str, numbers: Option<usize>) -> Result<u64, Error> {
        check_model(model)?;
        let mut client = self.client().await?;
        let gone = async {
            let transaction = client.transaction().await?;
            let sql = "DELETE FROM talon.memory_vectors
                WHERE model <> $1 OR ($2::int IS NOT NULL AND length(vector) <> $2)";
            let gone = transaction.execute(sql, &[&model, &numbers.map(length)]).await?;
            self.commit(transaction, gone).await?;
            Ok(gone)
        };
        self.inspect_result(gone.await)
    }

    async fn nearest(&self, query: &NearestQuery) -> Result<NearestMemories, Error> {
        let NearestQuery { model, vector, owner, workflows, limit } = query;
        check_model(model)?;
        let client = self.client().await?;
        let found = async {
            let numbers = length(vector.len());
            let most = i64::try_from((*limit).min(MAX_RECALLED)).unwrap_or(i64::MAX);
            if let Some(extension) = self.pgvector(&client).await? {
                let sql = format!(
                    "WITH compared AS MATERIALIZED (
                        SELECT v.memory, (1 - (v.embedding {} $6::text::{})) AS similarity FROM {COMPARED}
                            AND v.embedding IS NOT NULL),
                    near AS (SELECT memory, similarity, count(*) OVER () AS compared, avg(similarity) OVER () AS mean,
                        stddev_pop(similarity) OVER () AS deviation FROM compared ORDER BY similarity DESC LIMIT $7)
                    SELECT {}, similarity::real, compared, mean::real, deviation::real
                    FROM near JOIN talon.memories ON memories.id = near.memory ORDER BY similarity DESC",
                    extension.distance(),
                    extension.kind(),
                    columns!()
                );
                let sql = client.prepare_cached(&sql).await?;
                let text = vector.to_text();
                let values: [&(dyn ToSql + Sync); 7] =
                    [model, &numbers, workflows, owner, &OWNER_TAG, &text, &most];
                let rows = client.query(&sql, &values).await?;
                let mut nearest = NearestMemories::default();
                for row in &rows {
                    nearest.memories.push(NearMemory { memory: memory(row)?, similarity: row.try_get(8)? });
                    nearest.all = Spread {
                        compared: unsigned(row.try_get(9)?),
                        mean: row.try_get(10)?,
                        deviation: row.try_get(11)?,
                    };
                }
                return Ok(nearest);
            }
            let sql = format!("SELECT v.memory, v.vector FROM {COMPARED} ORDER BY v.memory DESC LIMIT $6");
            let sql = client.prepare_cached(&sql).await?;
            let compared = i64::from(MAX_COMPARED_VECTORS);
            let values: [&(dyn ToSql + Sync); 6] = [model, &numbers, workflows, owner, &OWNER_TAG, &compared];
            let rows = client.query(&sql, &values).await?;
            let mut vectors: Vec<(String, Vector)> = Vec::with_capacity(rows.len());
            for row in &rows {
                vectors.push((row.try_get(0)?, Vector::from_bytes(row.try_get(1)?)));
            }
            let (near, all) = nearest_first(vector, *limit, vectors.into_iter());
            let ids: Vec<&String> = near.iter().map(|(id, _)| id).collect();
            let sql = concat!("SELECT ", columns!(), " FROM talon.memories WHERE id = ANY($1)");
            let sql = client.prepare_cached(sql).await?;
            let memories: Vec<StoredMemory> =
                client.query(&sql, &[&ids]).await?.iter().map(memory).collect::<Result<_, Error>>()?;
            // One may have been forgotten in between.
            let of = |(id, similarity): (String, f32)| {
                let memory = memories.iter().find(|memory| memory.id.to_string() == id)?.clone();
                Some(NearMemory { memory, similarity })
            };
            Ok(NearestMemories { memories: near.into_iter().filter_map(of).collect(), all })
        };
        self.inspect_result(found.await)
    }

    async fn counts(&self, model: &str, except: Option<&str>) -> Result<VectorCounts, Error> {
        check_model(model)?;
        let client = self.client().await?;
        let counted = async {
            let whole = self.pgvector(&client).await?.map_or("", |_| "AND v.embedding IS NOT NULL");
            let sql = format!(
                "SELECT count(*), count(*) FILTER (WHERE tags @> ARRAY[$2::text]),
                    count(*) FILTER (WHERE v.model = $1 {whole} AND ($2 IS NULL OR NOT tags @> ARRAY[$2::text])),
                    count(*) FILTER (WHERE v.model <> $1), max(length(v.vector)) FILTER (WHERE v.model = $1)
                FROM talon.memories LEFT JOIN talon.memory_vectors v ON v.memory = memories.id"
            );
            let sql = client.prepare_cached(&sql).await?;
            let row = client.query_one(&sql, &[&model, &except]).await?;
            let number = |column: usize| -> Result<u64, Error> { Ok(unsigned(row.try_get(column)?)) };
            let numbers: Option<i32> = row.try_get(4)?;
            Ok(VectorCounts {
                memories: number(0)? - number(1)?,
                vectors: number(2)?,
                excepted: number(1)?,
                others: number(3)?,
                numbers: numbers.and_then(|numbers| usize::try_from(numbers).ok()),
            })
        };
        self.inspect_result(counted.await)
    }

    async fn engine(&self) -> Result<VectorEngine, Error> {
        let client = self.client().await?;
        let found = self.pgvector(&client).await.map(|extension| extension.is_some());
        let found = self.inspect_result(found)?;
        Ok(if found { VectorEngine::Pgvector } else { VectorEngine::Bytea })
    }
}

fn length(numbers: usize) -> i32 {
    i32::try_from(numbers).unwrap_or(i32::MAX)
}
