//! The fingerprints of one scope, in fixed space.

/// How many fingerprints share a bucket: 64 bytes, one line of the cache.
const WAYS: usize = 8;

/// How much of a full bucket one plugin may take from others. At or above it, it pushes out its own.
const FAIR_WAYS: usize = WAYS / 2;

/// How many plugins a scope tells apart, as many as fit beside a fingerprint. What further ones say counts as the last
/// one's, under [`OTHERS`].
const MAX_SOURCES: usize = 255;

/// The name for plugins beyond [`MAX_SOURCES`]. No plugin can have it.
const OTHERS: &str = "(others)";

/// Which plugin said something.
pub(super) type Source = u8;

/// A hash table that forgets: each bucket holds its newest fingerprints, newest first.
pub(super) struct Table {
    /// Fingerprint in the upper 56 bits, source in the lower 8. 0 is an empty place.
    buckets: Box<[[u64; WAYS]]>,
    sources: Vec<String>,
}

impl Table {
    pub(super) fn new(fingerprints: usize) -> Self {
        // A power of two, so that a mask tells the bucket; never more than was asked for, and never none.
        let buckets = (fingerprints / WAYS).max(1);
        let buckets = 1 << buckets.ilog2();
        Self { buckets: vec![[0; WAYS]; buckets].into_boxed_slice(), sources: Vec::new() }
    }

    /// The number of a plugin.
    pub(super) fn source(&mut self, plugin: &str) -> Source {
        let known = self.sources.iter().position(|known| known == plugin);
        let index = known.unwrap_or_else(|| {
            if self.sources.len() + 1 < MAX_SOURCES {
                self.sources.push(plugin.to_owned());
            } else if self.sources.len() < MAX_SOURCES {
                self.sources.push(OTHERS.to_owned());
            }
            self.sources.len() - 1
        });
        Source::try_from(index).expect("there are fewer sources than that")
    }

    pub(super) fn name(&self, source: Source) -> &str {
        &self.sources[usize::from(source)]
    }

    #[inline]
    pub(super) fn insert(&mut self, gram: u64, source: Source) {
        let entry = entry(gram, source);
        let mask = self.buckets.len() - 1;
        let bucket = &mut self.buckets[gram as usize & mask];
        // What was said a moment ago is said again most of the time, if at all.
        if bucket[0] == entry {
            return;
        }
        let gives_way = bucket
            .iter()
            .position(|&kept| kept == entry || kept == 0)
            .unwrap_or_else(|| place_in_full(bucket, source));
        // By hand: for a handful of words a call of `memmove` costs more than the moving.
        let mut moved = entry;
        for place in &mut bucket[..=gives_way] {
            moved = std::mem::replace(place, moved);
        }
    }

    /// Adds to `found` who said this, each once.
    #[inline]
    pub(super) fn sources_of(&self, gram: u64, found: &mut Vec<Source>) {
        let fingerprint = entry(gram, 0);
        let bucket = &self.buckets[gram as usize & (self.buckets.len() - 1)];
        for &kept in bucket {
            let source = kept as u8;
            if kept & !0xff == fingerprint && !found.contains(&source) {
                found.push(source);
            }
        }
    }
}

fn entry(gram: u64, source: Source) -> u64 {
    // The lowest bit of the fingerprint is set, so that no entry looks like an empty place.
    (gram & !0xff) | 0x100 | u64::from(source)
}

/// The oldest of the same plugin if that has its share already, else the oldest of all.
fn place_in_full(bucket: &[u64; WAYS], source: Source) -> usize {
    let is_own = |kept: &u64| *kept as u8 == source;
    let own = bucket.iter().filter(|kept| is_own(kept)).count();
    let oldest = if own >= FAIR_WAYS { bucket.iter().rposition(is_own) } else { None };
    oldest.unwrap_or(WAYS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(table: &Table, gram: u64) -> Vec<&str> {
        let mut sources = Vec::new();
        table.sources_of(gram, &mut sources);
        sources.iter().map(|source| table.name(*source)).collect()
    }

    /// A table of one bucket, and grams that differ.
    fn gram(index: u64) -> u64 {
        index << 20
    }

    #[test]
    fn the_newest_of_a_plugin_are_there() {
        let mut table = Table::new(WAYS);
        let source = table.source("a");
        for index in 0..20 {
            table.insert(gram(index), source);
        }
        assert_eq!(found(&table, gram(19)), ["a"]);
        assert_eq!(found(&table, gram(12)), ["a"]);
        assert!(found(&table, gram(11)).is_empty());
    }

    #[test]
    fn a_flood_leaves_others_their_share() {
        let mut table = Table::new(WAYS);
        let (quiet, loud) = (table.source("quiet"), table.source("loud"));
        for index in 0..4 {
            table.insert(gram(index), quiet);
        }
        for index in 100..10_000 {
            table.insert(gram(index), loud);
        }
        assert!((0..4).all(|index| found(&table, gram(index)) == ["quiet"]));
        assert_eq!(found(&table, gram(9_999)), ["loud"]);
    }

    #[test]
    fn what_two_plugins_said_counts_for_both() {
        let mut table = Table::new(1000);
        let (a, b) = (table.source("a"), table.source("b"));
        table.insert(gram(1), a);
        table.insert(gram(1), b);
        table.insert(gram(1), a);
        assert_eq!(found(&table, gram(1)), ["a", "b"]);
    }

    #[test]
    fn no_fingerprint_is_lost_to_the_empty_place() {
        let mut table = Table::new(0);
        let source = table.source("a");
        table.insert(0, source);
        assert_eq!(found(&table, 0), ["a"]);
    }

    #[test]
    fn the_number_of_plugins_is_bounded() {
        let mut table = Table::new(1000);
        for index in 0..10_000 {
            table.source(&index.to_string());
        }
        assert_eq!(table.sources.len(), MAX_SOURCES);
        let source = table.source("one more");
        assert_eq!(table.name(source), OTHERS);
        let first = table.source("0");
        assert_eq!(table.name(first), "0");
    }
}
