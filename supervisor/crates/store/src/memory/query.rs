//! Queries to find, recall and forget memories.

use std::collections::BTreeSet;

use super::StoredMemory;
use crate::error::Error;
use crate::id::MemoryId;
use crate::invalid::InvalidError;
use crate::limits::{MAX_QUERY_BYTES, MAX_RECALLED, MAX_TAGS, count, name, size};
use crate::search::{Features, stems, tokenize};
use crate::time::Timestamp;

/// A workflow that shares less than this with a request is not recalled: it would only distract the model.
/// Requests about one of the same tools share a tenth; about the same thing in other words, a quarter.
const MIN_SIMILARITY: f64 = 0.12;

/// A filter for memories. Every condition that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryQuery {
    /// All these words are in the memory, as in [`SessionQuery::text`](crate::SessionQuery::text).
    pub text: Option<String>,
    /// It has all these tags.
    pub tags: Vec<String>,
    /// It has this source.
    pub source: Option<String>,
}

/// A workflow that resembles a request.
#[derive(Debug, Clone, PartialEq)]
pub struct RecalledWorkflow {
    /// The workflow.
    pub memory: StoredMemory,
    /// How similar it is: 1 is the same, 0 has nothing in common.
    pub similarity: f64,
}

/// Which memories to forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForgetSelector {
    /// This memory.
    Id(MemoryId),
    /// All with this tag.
    Tag(String),
    /// All that were last recorded before this time.
    NotUsedSince(Timestamp),
}

/// The requested tags without duplicates, since they are counted.
pub(crate) fn check_query(query: &MemoryQuery) -> Result<BTreeSet<String>, Error> {
    count("the tags of a search", query.tags.len(), MAX_TAGS)?;
    query.tags.iter().try_for_each(|tag| name("a tag", tag))?;
    query.source.as_deref().map_or(Ok(()), |source| name("a memory's source", source))?;
    Ok(query.tags.iter().cloned().collect())
}

pub(crate) fn check_recall(request: &str) -> Result<(), InvalidError> {
    size("a request", request.len(), MAX_QUERY_BYTES)
}

/// Ranks workflow candidates by similarity. The engines only propose candidates, and only this function
/// decides, so that both engines recall the same.
pub(crate) fn rank_by_similarity(
    request: &str,
    candidates: Vec<StoredMemory>,
    limit: usize,
) -> Vec<RecalledWorkflow> {
    let requested = Features::of(request);
    let mut recalled: Vec<RecalledWorkflow> = candidates
        .into_iter()
        .filter_map(|memory| {
            let workflow = memory.workflow.as_ref()?;
            // A request need not name the tools; if it does, it names them instead of using the trigger's
            // words.
            let trigger = requested.similarity(&Features::of(&workflow.trigger));
            let whole = requested.similarity(&Features::of(&workflow.describe()));
            let similarity = trigger.max(whole);
            (similarity >= MIN_SIMILARITY).then_some(RecalledWorkflow { memory, similarity })
        })
        .collect();
    recalled.sort_by(|a, b| {
        let by_use = || (b.memory.count, b.memory.last_used).cmp(&(a.memory.count, a.memory.last_used));
        b.similarity.total_cmp(&a.similarity).then_with(by_use)
    });
    recalled.truncate(limit.min(MAX_RECALLED));
    recalled
}

/// The same for memories that share words with a text. Both engines propose memories with a common prefix of
/// a word.
pub(crate) fn rank_by_shared_words(
    text: &str,
    candidates: Vec<StoredMemory>,
    limit: usize,
) -> Vec<StoredMemory> {
    /// The score if one word is a prefix of the other: `tea` and `teas`. Pairs of characters are whole words.
    const WHOLE: usize = 3;
    /// The score of a common prefix of four letters: `analysis` and `analyze`, but `contract` and `control`,
    /// too.
    const BEGINNING: usize = 1;
    /// The minimum score: one word, or two prefixes.
    const ENOUGH: usize = 2;

    let words: Vec<(String, Vec<String>)> = {
        let all = tokenize(text);
        let of = |stem: &String| all.iter().filter(|word| word.starts_with(stem.as_str())).cloned().collect();
        stems(text).into_iter().map(|stem| (stem.clone(), of(&stem))).collect()
    };
    let mut found: Vec<(usize, StoredMemory)> = candidates
        .into_iter()
        .filter_map(|memory| {
            let has: BTreeSet<String> = tokenize(&memory.search_text()).into_iter().collect();
            let each = words.iter().map(|(stem, whole)| {
                let near = || has.range(stem.clone()..).take_while(|word| word.starts_with(stem.as_str()));
                let same = |one: &String, other: &String| one.starts_with(other) || other.starts_with(one);
                match near().next() {
                    None => 0,
                    Some(_) if near().any(|word| whole.iter().any(|other| same(word, other))) => WHOLE,
                    Some(_) => BEGINNING,
                }
            });
            let shared = each.sum();
            (shared >= ENOUGH).then_some((shared, memory))
        })
        .collect();
    found.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| other.id.cmp(&one.id)));
    found.into_iter().map(|(_, memory)| memory).take(limit.min(MAX_RECALLED)).collect()
}

impl ForgetSelector {
    pub(crate) fn check(&self) -> Result<(), InvalidError> {
        if let Self::Tag(tag) = self { name("a tag", tag) } else { Ok(()) }
    }
}
