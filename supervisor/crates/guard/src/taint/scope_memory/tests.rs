use proptest::prelude::*;

use super::*;

/// A table that has room for all that a test says.
const ROOM: usize = 16 * 1024;

/// How much may wait where a test is about what does not.
const MAX_BYTES: usize = 12_000;

struct Scope {
    grams: NGramHasher,
    memory: ScopeMemory,
}

impl Scope {
    fn new() -> Self {
        Self { grams: NGramHasher::new(), memory: ScopeMemory::new(ROOM) }
    }

    /// In which little may wait, but what is taken in stays.
    fn narrow() -> Self {
        let mut scope = Self::new();
        scope.memory.max_bytes = MAX_BYTES;
        scope
    }

    fn own(&self, text: &str) -> ArgumentGrams {
        let mut own = ArgumentGrams::default();
        self.grams.hash_every_position(text, |grams| own.add(grams));
        own.sort();
        own
    }

    fn says(&mut self, plugin: &str, text: &str) {
        self.repeats(plugin, text, "");
    }

    /// The plugin says something to a call that had brought something.
    fn repeats(&mut self, plugin: &str, text: &str, brought: &str) {
        let own = self.own(brought);
        let Self { grams, memory } = self;
        if let Some(source) = memory.defer(grams, plugin, text, &own) {
            grams.hash_every_stride(text, |some| memory.insert(own.filter().exclude(some), source));
        }
        assert!(memory.bytes <= memory.max_bytes);
        assert_eq!(memory.bytes, memory.deferred.iter().map(DeferredText::bytes).sum::<usize>());
    }

    /// Who said a piece of it.
    fn who(&mut self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let Self { grams, memory } = self;
        grams.hash_every_position(text, |some| memory.sources_of(grams, some, &mut found));
        let mut names: Vec<String> = found.iter().map(|source| memory.name(*source).to_owned()).collect();
        names.sort();
        names
    }

    fn waiting(&self) -> usize {
        self.memory.deferred.len()
    }
}

/// A text of so many letters and digits, and a tenth as many spaces, that shares no piece with one of another
/// number.
fn numbered(number: usize, letters: usize) -> String {
    let words = (0..letters / 10).map(|word| format!("{number:04}x{word:05} "));
    words.collect()
}

#[test]
fn a_text_waits_until_somebody_asks() {
    let mut scope = Scope::new();
    scope.says("web", &numbered(1, 500));
    scope.says("mail", &numbered(2, 500));
    assert_eq!((scope.waiting(), scope.memory.bytes), (2, 1000));
    // Too short to be a piece of anything.
    assert!(scope.who("/srv/notes.txt").is_empty());
    assert_eq!(scope.waiting(), 2);
    assert_eq!(scope.who(&numbered(2, 100)), ["mail"]);
    assert_eq!((scope.waiting(), scope.memory.bytes), (0, 0));
    assert_eq!(scope.who(&numbered(1, 100)), ["web"]);
}

// Promises: GUARD-57
#[test]
fn a_plugin_that_has_its_share_pushes_out_its_own() {
    let mut scope = Scope::narrow();
    scope.says("quiet", &numbered(0, 4000));
    for number in 1..50 {
        scope.says("loud", &numbered(number, 4000));
    }
    assert_eq!(scope.waiting(), 3);
    assert_eq!(scope.who(&numbered(0, 100)), ["quiet"]);
    assert_eq!(scope.who(&numbered(49, 100)), ["loud"]);
    assert!(scope.who(&numbered(47, 100)).is_empty());
}

// Promises: GUARD-57
#[test]
fn what_gives_way_to_others_is_remembered() {
    let mut scope = Scope::narrow();
    let plugins = ["a", "b", "c", "d", "e"];
    for (number, plugin) in plugins.into_iter().enumerate() {
        scope.says(plugin, &numbered(number, 3500));
    }
    assert_eq!(scope.waiting(), 3);
    for (number, plugin) in plugins.into_iter().enumerate() {
        assert_eq!(scope.who(&numbered(number, 100)), [plugin]);
    }
}

// Promises: GUARD-57
#[test]
fn what_is_said_again_and_what_says_nothing_push_out_nothing() {
    let mut scope = Scope::narrow();
    scope.says("web", &numbered(1, 5000));
    for _ in 0..10 {
        scope.says("web", &numbered(2, 5000));
        scope.says("web", &" \n─".repeat(MAX_BYTES / 6));
    }
    assert_eq!(scope.waiting(), 3);
    assert!(scope.memory.deferred.iter().all(|text| text.letters.capacity() <= 2 * text.letters.len()));
    assert_eq!(scope.who(&numbered(1, 100)), ["web"]);
}

#[test]
fn no_more_than_so_many_texts_wait() {
    let mut scope = Scope::new();
    for number in 0..3 * MAX_DEFERRED {
        scope.says("web", &numbered(number, 60));
        assert!(scope.waiting() <= MAX_DEFERRED);
    }
    for number in 0..3 * MAX_DEFERRED {
        assert_eq!(scope.who(&numbered(number, 60)), ["web"], "{number}");
    }
}

#[test]
fn what_is_too_long_to_wait_is_taken_in_at_once() {
    let mut scope = Scope::narrow();
    scope.says("mail", &numbered(1, 100));
    let long = numbered(2, 2 * MAX_BYTES);
    scope.says("web", &long);
    assert_eq!(scope.waiting(), 0);
    assert_eq!(scope.who(&long), ["web"]);
    assert_eq!(scope.who(&numbered(1, 100)), ["mail"]);
}

#[test]
fn what_the_call_brought_waits_beside_a_text_unless_it_is_much() {
    let mut scope = Scope::new();
    let (line, page) = (numbered(1, 60), numbered(2, 1000));
    scope.repeats("web", &format!("{line} {}", numbered(3, 2000)), &line);
    assert_eq!(scope.waiting(), 1);
    scope.repeats("web", &format!("{page} {}", numbered(4, 100)), &page);
    assert_eq!(scope.waiting(), 0);
    assert!(scope.who(&line).is_empty());
    assert!(scope.who(&page).is_empty());
    assert_eq!(scope.who(&numbered(3, 100)), ["web"]);
    assert_eq!(scope.who(&numbered(4, 100)), ["web"]);
}

#[test]
fn memory_of_a_long_text_is_given_back_once_it_is_taken_in() {
    let mut scope = Scope::new();
    for letters in [100_000, 1000] {
        scope.says("web", &numbered(1, letters));
        scope.who(&numbered(1, 100));
        assert!(scope.memory.spare.capacity() <= MAX_SPARE_BYTES);
    }
    assert!(scope.memory.spare.capacity() >= 1000);
}

proptest! {
    /// Compares with a table into which everything is inserted at once.
    // Promises: GUARD-59
    #[test]
    fn what_waits_is_found_as_what_does_not(
        said in proptest::collection::vec((0..4_usize, 0..30_usize, 4..30_usize, 0..8_usize, any::<bool>()), 1..40),
        // One bucket, in which the order shows; or room for everything.
        fingerprints in prop_oneof![Just(8), Just(ROOM)],
    ) {
        let mut scope = Scope { grams: NGramHasher::new(), memory: ScopeMemory::new(fingerprints) };
        // None is pushed out.
        scope.memory.max_bytes = usize::MAX;
        let mut table = FingerprintTable::new(fingerprints);
        for (step, (plugin, number, words, brought, asked)) in said.into_iter().enumerate() {
            // Repeated text is evicted later here than where it is inserted twice, which shows in a single
            // bucket.
            let number = if fingerprints == ROOM { number } else { step };
            let (plugin, text) = (["a", "b", "c", "d"][plugin], numbered(number, words * 10));
            let brought = numbered(number, brought * 10);
            scope.repeats(plugin, &text, &brought);
            let (source, own) = (table.source(plugin), scope.own(&brought));
            scope.grams.hash_every_stride(&text, |some| table.insert(own.filter().exclude(some), source));
            if asked {
                let mut found = Vec::new();
                scope.grams.hash_every_position(&text, |some| table.sources_of(some, &mut found));
                let mut names: Vec<&str> = found.iter().map(|source| table.name(*source)).collect();
                names.sort_unstable();
                prop_assert_eq!(scope.who(&text), names);
            }
        }
    }
}
