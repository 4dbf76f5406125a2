use proptest::prelude::*;

use super::*;

/// Enough for all that a test says, unless it is about what is not.
const ROOM: usize = 16 * 1024;

struct Scope {
    grams: Grams,
    told: Told,
}

impl Scope {
    fn new(fingerprints: usize) -> Self {
        Self { grams: Grams::new(), told: Told::new(fingerprints) }
    }

    fn own(&self, text: &str) -> Own {
        let mut own = Own::default();
        self.grams.of_every_position(text, |grams| own.add(grams));
        own.sort();
        own
    }

    fn says(&mut self, plugin: &str, text: &str) {
        self.repeats(plugin, text, "");
    }

    /// The plugin says something to a call that had brought something.
    fn repeats(&mut self, plugin: &str, text: &str, brought: &str) {
        let own = self.own(brought);
        self.told.remember(&self.grams, plugin, text, &own);
    }

    /// Who said a piece of it.
    fn who(&mut self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let Self { grams, told } = self;
        grams.of_every_position(text, |some| told.sources_of(grams, some, &mut found));
        let mut names: Vec<String> = found.iter().map(|source| told.name(*source).to_owned()).collect();
        names.sort();
        names
    }

    fn waiting(&self) -> usize {
        self.told.waiting.len()
    }
}

/// A text that shares no piece with one of another number.
fn numbered(number: usize, bytes: usize) -> String {
    let words = (0..).map(|word| format!("{number:04}x{word:05} "));
    words.take(bytes / 11 + 1).collect::<String>()[..bytes].to_owned()
}

#[test]
fn a_text_waits_until_somebody_asks() {
    let mut scope = Scope::new(ROOM);
    scope.says("web", &numbered(1, 500));
    scope.says("mail", &numbered(2, 500));
    assert_eq!(scope.waiting(), 2);
    // Too short to be a piece of anything.
    assert!(scope.who("/srv/notes.txt").is_empty());
    assert_eq!(scope.waiting(), 2);
    assert_eq!(scope.who(&numbered(2, 100)), ["mail"]);
    assert_eq!((scope.waiting(), scope.told.bytes), (0, 0));
    assert_eq!(scope.who(&numbered(1, 100)), ["web"]);
}

#[test]
fn a_plugin_that_has_its_share_pushes_out_its_own() {
    let mut scope = Scope::new(1024);
    scope.says("quiet", &numbered(0, 4000));
    for number in 1..50 {
        scope.says("loud", &numbered(number, 5000));
        assert!(scope.told.bytes <= scope.told.max_bytes);
    }
    assert_eq!(scope.waiting(), 2);
    assert_eq!(scope.who(&numbered(0, 100)), ["quiet"]);
    assert_eq!(scope.who(&numbered(49, 100)), ["loud"]);
    assert!(scope.who(&numbered(48, 100)).is_empty());
}

#[test]
fn what_gives_way_to_others_is_remembered() {
    let mut scope = Scope::new(1024);
    let plugins = ["a", "b", "c", "d"];
    for (number, plugin) in plugins.into_iter().enumerate() {
        scope.says(plugin, &numbered(number, 3500));
    }
    assert_eq!(scope.waiting(), 3);
    for (number, plugin) in plugins.into_iter().enumerate() {
        assert_eq!(scope.who(&numbered(number, 100)), [plugin]);
    }
}

#[test]
fn no_more_than_so_many_texts_wait() {
    let mut scope = Scope::new(ROOM);
    for number in 0..3 * MAX_WAITING {
        scope.says("web", &numbered(number, 60));
        assert!(scope.waiting() <= MAX_WAITING);
    }
    for number in 0..3 * MAX_WAITING {
        assert_eq!(scope.who(&numbered(number, 60)), ["web"], "{number}");
    }
}

#[test]
fn what_is_too_long_to_wait_is_taken_in_at_once() {
    let mut scope = Scope::new(1024);
    scope.says("web", &numbered(1, 100));
    let long = numbered(2, 200_000);
    scope.says("web", &long);
    assert_eq!(scope.waiting(), 0);
    assert_eq!(scope.who(&long[long.len() - 100..]), ["web"]);
}

#[test]
fn a_copy_of_many_own_pieces_is_not_kept() {
    let mut scope = Scope::new(ROOM);
    let brought = numbered(1, 1000);
    scope.repeats("web", &format!("{brought} {}", numbered(2, 100)), &brought);
    assert_eq!(scope.waiting(), 0);
    assert!(scope.who(&brought).is_empty());
    assert_eq!(scope.who(&numbered(2, 100)), ["web"]);
}

#[test]
fn memory_for_a_long_text_is_not_kept_for_short_ones() {
    let mut scope = Scope::new(1024);
    scope.says("web", &numbered(1, 12_000));
    scope.says("web", &numbered(2, 1000));
    assert!(scope.told.waiting.iter().all(|text| text.text.capacity() <= 2 * text.text.len()));
}

proptest! {
    /// Between two texts nothing, or somebody asks for something.
    #[test]
    fn what_waits_is_found_as_what_does_not(
        said in proptest::collection::vec((0..4_usize, 0..30_usize, 40..300_usize, 0..2_usize, any::<bool>()), 1..40),
    ) {
        let (mut waits, mut at_once) = (Scope::new(ROOM), Scope::new(ROOM));
        for (plugin, number, bytes, brought, asked) in said {
            let (plugin, text) = (["a", "b", "c", "d"][plugin], numbered(number, bytes));
            // A call's own piece of a line or so.
            let brought = numbered(number, brought * 40);
            waits.repeats(plugin, &text, &brought);
            at_once.repeats(plugin, &text, &brought);
            at_once.told.take_in_all(&at_once.grams);
            if asked {
                prop_assert_eq!(waits.who(&text), at_once.who(&text));
            }
        }
        for number in 0..30 {
            prop_assert_eq!(waits.who(&numbered(number, 300)), at_once.who(&numbered(number, 300)));
        }
    }
}
