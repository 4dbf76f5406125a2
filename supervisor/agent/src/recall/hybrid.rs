//! One order of memories by words and by meaning.

use talon_store::StoredMemory;

use crate::fusion;

/// What the order by words counts beside the one by meaning. On the fixture of 500 memories, more moves what is right
/// from the first place, and less finds no more. Where a memory has no vector, or nothing stands out, words decide alone.
const WORDS_WEIGHT: f64 = 0.3;

/// Fuses two orders of memories; what both have comes first.
pub(super) fn fuse(by_words: Vec<StoredMemory>, by_meaning: Vec<StoredMemory>) -> Vec<StoredMemory> {
    if by_meaning.is_empty() {
        return by_words;
    }
    let mut all: Vec<StoredMemory> = Vec::with_capacity(by_words.len() + by_meaning.len());
    let mut places = |memories: Vec<StoredMemory>| -> Vec<usize> {
        let place = |memory: StoredMemory| {
            let known = all.iter().position(|one: &StoredMemory| one.id == memory.id);
            known.unwrap_or_else(|| {
                all.push(memory);
                all.len() - 1
            })
        };
        memories.into_iter().map(place).collect()
    };
    let orders = [(WORDS_WEIGHT, places(by_words)), (1.0, places(by_meaning))];
    let fused = fusion::fuse(all.len(), &orders);
    let mut all: Vec<Option<StoredMemory>> = all.into_iter().map(Some).collect();
    fusion::order(&fused).into_iter().filter_map(|place| all[place].take()).collect()
}
