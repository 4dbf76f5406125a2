//! How often the right memory is recalled: measured on 500 memories in three languages, with recorded vectors.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use talon_store::limits::MAX_RECALLED;
use talon_store::{Engine, MemoryId, NearestQuery, NewMemory, Store, StoreOptions, StoredMemory, Vector};

use super::memory_index::outstanding;
use super::{hybrid, keywords};

const MEMORIES: &str = include_str!("../../tests/fixtures/memories/memories.txt");
const QUERIES: &str = include_str!("../../tests/fixtures/memories/queries.txt");
const VECTORS: &[u8] = include_bytes!("../../tests/fixtures/memories/vectors.bin");
const DIMENSIONS: usize = 384;
const MODEL: &str = "recorded";

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recall.md");
const TABLE_BEGINS: &str =
    "<!-- Made by supervisor/agent/src/recall/fixture_tests.rs; TALON_REWRITE_DOCS=1 makes it anew. -->";
const TABLE_ENDS: &str = "<!-- The end of what is made. -->";
const REWRITE: &str = "TALON_REWRITE_DOCS";

/// A request, with the memories that answer it.
struct Labelled {
    list: &'static str,
    request: &'static str,
    right: Vec<&'static str>,
}

fn labelled() -> Vec<Labelled> {
    let line = |line: &'static str| {
        let [list, request, right] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        Labelled { list, request, right: right.split(' ').filter(|one| !one.is_empty()).collect() }
    };
    QUERIES.lines().map(line).collect()
}

struct Fixture {
    _directory: tempfile::TempDir,
    store: Store,
    /// The name of each memory.
    names: BTreeMap<MemoryId, String>,
    requests: Vec<(Labelled, Vector)>,
}

impl Fixture {
    async fn new() -> Self {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("agent/agent.db");
        let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a directory of our own");
        let memories: Vec<Vec<&str>> = MEMORIES.lines().map(|line| line.split('|').collect()).collect();
        let requests = labelled();
        let mut digest = Sha256::new();
        for text in memories.iter().map(|memory| memory[2]).chain(requests.iter().map(|one| one.request)) {
            digest.update(text.as_bytes());
            digest.update([0]);
        }
        let (recorded_of, rows) = VECTORS.split_at(32);
        assert_eq!(recorded_of, &digest.finalize()[..], "the texts are others: run record_vectors.py");
        let mut rows = rows.chunks_exact(DIMENSIONS).map(Vector::from_bytes);
        assert_eq!(rows.len(), memories.len() + requests.len());
        let (mut names, mut vectors) = (BTreeMap::new(), Vec::new());
        for (memory, vector) in memories.iter().zip(rows.by_ref().take(memories.len())) {
            let new = NewMemory {
                content: memory[2].to_owned(),
                tags: ["fact".to_owned()].into(),
                source: "test".to_owned(),
                workflow: None,
            };
            let id = store.memory().remember(new).await.expect("there is room").memory.id;
            names.insert(id, format!("{}.{}", memory[0], memory[1]));
            vectors.push((id, vector));
        }
        store.memory_vectors().put(MODEL, vectors).await.expect("there is room");
        let requests = requests.into_iter().zip(rows).collect();
        Self { _directory: directory, store, names, requests }
    }

    /// What is found of a request: by words, by meaning, by both. As [`super::StoreRecall`] does it.
    async fn find(&self, request: &Labelled, vector: &Vector) -> [Vec<StoredMemory>; 3] {
        let words = keywords::extract(request.request);
        if words.is_empty() {
            return Default::default();
        }
        let by_words = self.store.memory().related(&words, None, MAX_RECALLED).await.expect("it is open");
        let query = NearestQuery {
            model: MODEL.to_owned(),
            vector: vector.clone(),
            owner: None,
            workflows: false,
            limit: MAX_RECALLED,
        };
        let near = outstanding(self.store.memory_vectors().nearest(&query).await.expect("it is open"));
        let both = hybrid::fuse(by_words.clone(), near.clone());
        [by_words, near, both]
    }
}

/// The lists of requests, and what the page calls them.
const LISTS: [(&str, &str); 6] = [
    ("en", "in English, about memories in English"),
    ("de", "in German, about memories in German"),
    ("es", "in Spanish, about memories in Spanish"),
    ("x-en", "in English, about memories in German and Spanish"),
    ("x-de", "in German, about memories in English and Spanish"),
    ("x-es", "in Spanish, about memories in English and German"),
];
/// How many memories a prompt gets.
const RECALLED: usize = 5;

// Promises: AGENT-145
#[tokio::test]
async fn the_page_says_how_often_the_right_memory_is_recalled() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.names.len(), 500);
    let mut found: BTreeMap<&str, Vec<[Option<usize>; 3]>> = BTreeMap::new();
    let mut unasked = [0, 0, 0];
    for (request, vector) in &fixture.requests {
        let all = fixture.find(request, vector).await;
        if request.list == "none" {
            for (sum, memories) in unasked.iter_mut().zip(&all) {
                *sum += memories.len().min(RECALLED);
            }
            continue;
        }
        let known = |name: &&str| fixture.names.values().any(|one| one == name);
        assert!(!request.right.is_empty() && request.right.iter().all(known), "{}", request.request);
        let rank = |memories: &Vec<StoredMemory>| {
            memories.iter().position(|one| request.right.contains(&fixture.names[&one.id].as_str()))
        };
        found.entry(request.list).or_default().push(all.each_ref().map(rank));
    }
    let mut table =
        "| requests | of them | words: @1, @5 | meaning: @1, @5 | both: @1, @5 |\n|---|---|---|---|---|\n"
            .to_owned();
    let share = |ranks: &[[Option<usize>; 3]], by: usize, most: usize| {
        let right = ranks.iter().filter(|rank| rank[by].is_some_and(|rank| rank < most)).count();
        right as f64 / ranks.len() as f64
    };
    let mut row = |name: &str, ranks: &[[Option<usize>; 3]]| {
        let cells =
            [0, 1, 2].map(|by| format!("{:.2}, {:.2}", share(ranks, by, 1), share(ranks, by, RECALLED)));
        writeln!(table, "| {name} | {} | {} |", ranks.len(), cells.join(" | ")).expect("a text takes lines");
    };
    for (list, name) in LISTS {
        row(name, &found[list]);
    }
    let all: Vec<_> = found.values().flatten().copied().collect();
    row("all", &all);
    let others = fixture.requests.iter().filter(|(request, _)| request.list == "none").count();
    let means = unasked.map(|sum| format!("{:.1}", f64::from(u32::try_from(sum).unwrap()) / others as f64));
    writeln!(
        table,
        "\nOf {others} requests about something else, a prompt gets {} memories by words, {} by meaning, {} by both, on average.",
        means[0], means[1], means[2]
    )
    .expect("a text takes lines");
    println!("{table}");
    let recalled = [0, 1, 2].map(|by| share(&all, by, RECALLED));
    assert!(recalled[2] > recalled[0] + 0.15 && recalled[2] >= recalled[1], "{recalled:?}");
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let (before, rest) = page.split_once(TABLE_BEGINS).expect("the page has the table");
    let (_, after) = rest.split_once(TABLE_ENDS).expect("the table ends");
    let made = format!("{before}{TABLE_BEGINS}\n{table}\n{TABLE_ENDS}{after}");
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(PAGE, &made).expect("the page can be written");
    } else {
        assert_eq!(page, made, "{REWRITE}=1 writes the table anew");
    }
}
