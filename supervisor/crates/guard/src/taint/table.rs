//! The fingerprints of one scope, in fixed space.
//!
//! A bucket is processed as a whole with vector instructions: positions in it are practically random, and a
//! branch for each entry would be mispredicted once for every fingerprint.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u64x8};

/// How many fingerprints share a bucket: 64 bytes, one cache line.
const WAYS: usize = 8;

/// How many entries of a full bucket one plugin may take from others. From there on it evicts its own.
const FAIR_WAYS: u32 = WAYS as u32 / 2;

/// How many plugins a scope distinguishes, as many as fit beside a fingerprint. Further ones count as the
/// last one, under [`OTHER_PLUGINS`].
const MAX_SOURCES: usize = 255;

/// The name for plugins beyond [`MAX_SOURCES`]. No plugin can have this name.
const OTHER_PLUGINS: &str = "(others)";

/// The number of a plugin in [`FingerprintTable`].
pub(super) type SourceId = u8;

/// Fingerprints, newest first: each in the upper 56 bits, its source in the lower 8. 0 is an empty entry.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket([u64; WAYS]);

/// The indexes of a bucket's entries.
const WAY_INDEXES: [u64; WAYS] = [0, 1, 2, 3, 4, 5, 6, 7];

/// A lossy hash table: each bucket holds its newest fingerprints.
pub(super) struct FingerprintTable {
    buckets: Box<[Bucket]>,
    sources: Vec<String>,
}

impl FingerprintTable {
    pub(super) fn new(fingerprints: usize) -> Self {
        // A power of two, so that a mask selects the bucket; never more than was asked for, and at least one.
        let buckets = (fingerprints / WAYS).max(1);
        let buckets = 1 << buckets.ilog2();
        Self { buckets: vec![Bucket::default(); buckets].into_boxed_slice(), sources: Vec::new() }
    }

    /// The number of a plugin.
    pub(super) fn source(&mut self, plugin: &str) -> SourceId {
        let known = self.sources.iter().position(|known| known == plugin);
        let index = known.unwrap_or_else(|| {
            if self.sources.len() + 1 < MAX_SOURCES {
                self.sources.push(plugin.to_owned());
            } else if self.sources.len() < MAX_SOURCES {
                self.sources.push(OTHER_PLUGINS.to_owned());
            }
            self.sources.len() - 1
        });
        SourceId::try_from(index).expect("there are fewer sources than that")
    }

    pub(super) fn name(&self, source: SourceId) -> &str {
        &self.sources[usize::from(source)]
    }

    /// Stores fingerprints of this plugin.
    pub(super) fn insert(&mut self, grams: &[u64], source: SourceId) {
        self.insert_at(Level::new(), grams, source);
    }

    /// The same with the instructions of this level.
    fn insert_at(&mut self, level: Level, grams: &[u64], source: SourceId) {
        dispatch!(level, simd => self.insert_each(simd, grams, source));
    }

    #[inline(always)]
    fn insert_each<S: Simd>(&mut self, simd: S, grams: &[u64], source: SourceId) {
        let mask = self.buckets.len() - 1;
        for &gram in grams {
            self.buckets[gram as usize & mask].insert(simd, entry(gram, source), source);
        }
    }

    /// Adds the plugins with these fingerprints to `found`, each once.
    pub(super) fn sources_of(&self, grams: &[u64], found: &mut Vec<SourceId>) {
        dispatch!(Level::new(), simd => self.sources_of_each(simd, grams, found));
    }

    #[inline(always)]
    fn sources_of_each<S: Simd>(&self, simd: S, grams: &[u64], found: &mut Vec<SourceId>) {
        let mask = self.buckets.len() - 1;
        for &gram in grams {
            let Bucket(kept) = &self.buckets[gram as usize & mask];
            let fingerprints = u64x8::from_slice(simd, kept) & u64x8::splat(simd, !0xff);
            let said = fingerprints.simd_eq(u64x8::splat(simd, entry(gram, 0)));
            if said.any_true() {
                add_sources(kept, said.to_bitmask(), found);
            }
        }
    }
}

/// Adds the sources of the entries whose bits are set, each once.
#[cold]
fn add_sources(kept: &[u64; WAYS], mut places: u64, found: &mut Vec<SourceId>) {
    while places != 0 {
        let source = kept[places.trailing_zeros() as usize] as SourceId;
        if !found.contains(&source) {
            found.push(source);
        }
        places &= places - 1;
    }
}

impl Bucket {
    /// Puts an entry of this source first, and shifts the ones in front of the evicted entry.
    #[inline(always)]
    fn insert<S: Simd>(&mut self, simd: S, entry: u64, source: SourceId) {
        // Repeated text is most often repeated at once.
        if self.0[0] == entry {
            return;
        }
        let all = |value| u64x8::splat(simd, value);
        let kept = u64x8::from_slice(simd, &self.0);
        // Behind an empty entry there are only empty ones.
        let known_or_empty = (kept.simd_eq(all(entry)) | kept.simd_eq(all(0))).to_bitmask();
        let own = (kept & all(0xff)).simd_eq(all(u64::from(source))).to_bitmask();
        let gives_way = if known_or_empty == 0 { way_to_evict(own) } else { known_or_empty.trailing_zeros() };
        let moved = all(entry).slide::<{ WAYS - 1 }>(kept);
        let stays = u64x8::from_slice(simd, &WAY_INDEXES).simd_gt(all(u64::from(gives_way)));
        self.0.copy_from_slice(stays.select(kept, moved).as_slice());
    }
}

fn entry(gram: u64, source: SourceId) -> u64 {
    // The lowest bit of the fingerprint is set, so that no entry equals an empty one.
    (gram & !0xff) | 0x100 | u64::from(source)
}

/// The oldest entry of the same plugin, whose positions are `own`, if it has its share already, else the
/// oldest of all.
#[inline(always)]
fn way_to_evict(own: u64) -> u32 {
    if own.count_ones() >= FAIR_WAYS { own.ilog2() } else { WAYS as u32 - 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The levels of this machine.
    fn levels() -> Vec<Level> {
        let best = Level::new();
        let mut levels = vec![best, Level::baseline()];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(best.as_avx2().map(Level::Avx2));
            levels.extend(best.as_sse4_2().map(Level::Sse4_2));
        }
        levels
    }

    fn found(table: &FingerprintTable, gram: u64) -> Vec<&str> {
        let mut sources = Vec::new();
        table.sources_of(&[gram], &mut sources);
        sources.iter().map(|source| table.name(*source)).collect()
    }

    /// A table of one bucket, and grams that differ.
    fn gram(index: u64) -> u64 {
        index << 20
    }

    /// What a bucket holds after these entries were inserted one by one.
    fn slowly(entries: &[u64]) -> [u64; WAYS] {
        let mut bucket = [0; WAYS];
        for &entry in entries {
            let is_own = |kept: &u64| *kept as u8 == entry as u8;
            let own = bucket.iter().filter(|kept| is_own(kept)).count();
            let oldest = if own >= WAYS / 2 { bucket.iter().rposition(is_own) } else { None };
            let known_or_empty = bucket.iter().position(|&kept| kept == entry || kept == 0);
            let gives_way = known_or_empty.or(oldest).unwrap_or(WAYS - 1);
            bucket[..=gives_way].rotate_right(1);
            bucket[0] = entry;
        }
        bucket
    }

    proptest! {
        #[test]
        fn a_bucket_is_the_same_as_place_by_place_with_every_level_of_instructions(
            said in proptest::collection::vec((0..14_u64, 0..4_u8), 0..80),
        ) {
            let entries: Vec<u64> = said.iter().map(|&(index, source)| entry(gram(index), source)).collect();
            for level in levels() {
                let mut table = FingerprintTable::new(WAYS);
                for &(index, source) in &said {
                    table.insert_at(level, &[gram(index)], source);
                }
                prop_assert_eq!(table.buckets[0].0, slowly(&entries), "{:?}", level);
            }
        }
    }

    #[test]
    fn the_newest_of_a_plugin_are_there() {
        let mut table = FingerprintTable::new(WAYS);
        let source = table.source("a");
        for index in 0..20 {
            table.insert(&[gram(index)], source);
        }
        assert_eq!(found(&table, gram(19)), ["a"]);
        assert_eq!(found(&table, gram(12)), ["a"]);
        assert!(found(&table, gram(11)).is_empty());
    }

    #[test]
    fn a_flood_leaves_others_their_share() {
        let mut table = FingerprintTable::new(WAYS);
        let (quiet, loud) = (table.source("quiet"), table.source("loud"));
        for index in 0..4 {
            table.insert(&[gram(index)], quiet);
        }
        for index in 100..10_000 {
            table.insert(&[gram(index)], loud);
        }
        assert!((0..4).all(|index| found(&table, gram(index)) == ["quiet"]));
        assert_eq!(found(&table, gram(9_999)), ["loud"]);
    }

    #[test]
    fn what_two_plugins_said_counts_for_both() {
        let mut table = FingerprintTable::new(1000);
        let (a, b) = (table.source("a"), table.source("b"));
        table.insert(&[gram(1)], a);
        table.insert(&[gram(1)], b);
        table.insert(&[gram(1)], a);
        assert_eq!(found(&table, gram(1)), ["a", "b"]);
    }

    #[test]
    fn no_fingerprint_is_lost_to_the_empty_place() {
        let mut table = FingerprintTable::new(0);
        let source = table.source("a");
        table.insert(&[0], source);
        assert_eq!(found(&table, 0), ["a"]);
    }

    #[test]
    fn the_number_of_plugins_is_bounded() {
        let mut table = FingerprintTable::new(1000);
        for index in 0..10_000 {
            table.source(&index.to_string());
        }
        assert_eq!(table.sources.len(), MAX_SOURCES);
        let source = table.source("one more");
        assert_eq!(table.name(source), OTHER_PLUGINS);
        let first = table.source("0");
        assert_eq!(table.name(first), "0");
    }
}
