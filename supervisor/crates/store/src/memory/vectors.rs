//! Vectors of memories, by which they are found by meaning.

use async_trait::async_trait;

use super::StoredMemory;
use crate::error::Error;
use crate::id::MemoryId;
use crate::limits::{MAX_RECALLED, name};
use crate::vector::Vector;

/// The vectors of memories. A vector goes with its memory. All of them are to be of one model: a caller names it by
/// a text that differs where vectors cannot be compared.
#[async_trait]
pub trait MemoryVectors: Send + Sync {
    /// Memories without a vector of this model, newest first, at most `limit`; none with the tag `except`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a model's name that no name can be.
    async fn without_vector(
        &self,
        model: &str,
        except: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredMemory>, Error>;

    /// Stores vectors of a model, in the place of earlier ones; returns how many. A memory that is gone gets none.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more than [`MAX_STORED_VECTORS`](crate::limits::MAX_STORED_VECTORS), or a vector of
    /// more than [`MAX_VECTOR_NUMBERS`](crate::limits::MAX_VECTOR_NUMBERS).
    async fn put(&self, model: &str, vectors: Vec<(MemoryId, Vector)>) -> Result<u64, Error>;

    /// Deletes the vectors of other models; with `numbers`, those of another length, too. Returns how many.
    ///
    /// # Errors
    /// When the database cannot be written.
    async fn keep_only(&self, model: &str, numbers: Option<usize>) -> Result<u64, Error>;

    /// The memories nearest to a vector, nearest first. Every vector of the newest
    /// [`MAX_COMPARED_VECTORS`](crate::limits::MAX_COMPARED_VECTORS) memories is compared, and none of another
    /// length.
    ///
    /// # Errors
    /// When the database cannot be read.
    async fn nearest(&self, query: &NearestQuery) -> Result<NearestMemories, Error>;

    /// How many memories and vectors there are. Memories with the tag `except` are counted apart.
    ///
    /// # Errors
    /// When the database cannot be read.
    async fn counts(&self, model: &str, except: Option<&str>) -> Result<VectorCounts, Error>;

    /// What compares vectors.
    ///
    /// # Errors
    /// When the database cannot be reached.
    async fn engine(&self) -> Result<VectorEngine, Error>;
}

/// What is searched for by meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestQuery {
    /// The model of the vectors.
    pub model: String,
    /// The vector of what is searched for.
    pub vector: Vector,
    /// Only memories of this owner and those without one, as in [`Memory::recall`](super::Memory::recall).
    pub owner: Option<String>,
    /// Whether workflows are searched, too.
    pub workflows: bool,
    /// At most so many, and at most [`MAX_RECALLED`].
    pub limit: usize,
}

/// A memory and how near it is.
#[derive(Debug, Clone, PartialEq)]
pub struct NearMemory {
    /// The memory.
    pub memory: StoredMemory,
    /// The cosine of the angle between both vectors: 1 is the same direction.
    pub similarity: f32,
}

/// The memories nearest to a vector, and how near all are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NearestMemories {
    /// The nearest, nearest first.
    pub memories: Vec<NearMemory>,
    /// Of all that were compared.
    pub all: Spread,
}

/// How near all compared vectors are. What is near in one model's numbers is far in another's, so only this says
/// which memories stand out.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spread {
    /// How many were compared.
    pub compared: u64,
    /// The mean of their similarities.
    pub mean: f32,
    /// Their standard deviation.
    pub deviation: f32,
}

impl Spread {
    fn of(similarities: impl Iterator<Item = f32> + Clone) -> Self {
        let count = similarities.clone().count();
        let number = count.max(1) as f64;
        let mean = similarities.clone().map(f64::from).sum::<f64>() / number;
        let variance = similarities.map(|one| (f64::from(one) - mean).powi(2)).sum::<f64>() / number;
        Self { compared: count as u64, mean: mean as f32, deviation: variance.sqrt() as f32 }
    }
}

/// How many memories have vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VectorCounts {
    /// Memories that are to have a vector.
    pub memories: u64,
    /// Those that have one of the model.
    pub vectors: u64,
    /// Memories that are to have none: they have the tag `except`.
    pub excepted: u64,
    /// Vectors of other models.
    pub others: u64,
    /// How many numbers the model's vectors have; `None` without vectors.
    pub numbers: Option<usize>,
}

/// What compares vectors. Each compares all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorEngine {
    /// This process, of a local file.
    Sqlite,
    /// The server, by its extension.
    Pgvector,
    /// This process, to which the server sends all vectors: it has no such extension.
    Bytea,
}

pub(crate) fn check_model(model: &str) -> Result<(), Error> {
    Ok(name("an embedding model", model)?)
}

/// The nearest of many vectors, nearest first: the key and the cosine of each. Vectors of another length are none.
pub(crate) fn nearest_first<K>(
    query: &Vector,
    limit: usize,
    vectors: impl Iterator<Item = (K, Vector)>,
) -> (Vec<(K, f32)>, Spread) {
    let mut near: Vec<(K, f32)> =
        vectors.filter_map(|(key, vector)| Some((key, query.cosine(&vector)?))).collect();
    let all = Spread::of(near.iter().map(|(_, similarity)| *similarity));
    near.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    near.truncate(limit.min(MAX_RECALLED));
    (near, all)
}
