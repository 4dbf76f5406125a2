//! How often the right tool is found among 1,000 of public MCP servers: see `tests/fixtures/tools`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use talon_proto::plugin::{Action, Parameter};

use super::{ToolIndex, embedding_text};
use crate::tools::{Offer, Tool};

const TOOLS: &str = include_str!("../../../tests/fixtures/tools/tools.jsonl");
/// In everyday words.
const INTENTS: &str = include_str!("../../../tests/fixtures/tools/intents.txt");
/// As a model writes a search.
const QUERIES: &str = include_str!("../../../tests/fixtures/tools/queries.txt");
/// In other languages.
const LANGUAGES: &str = include_str!("../../../tests/fixtures/tools/languages.txt");
/// The SHA-256 of the texts, and a vector of each; made by `record_vectors.py` beside it.
const VECTORS: &[u8] = include_bytes!("../../../tests/fixtures/tools/vectors.bin");
/// Numbers of a vector.
const DIMENSIONS: usize = 384;
/// The page with what is measured here, and the variable that writes it anew.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tool-search.md");
const REWRITE: &str = "TALON_REWRITE_DOCS";
const TABLE_BEGINS: &str = "<!-- Made by supervisor/agent/src/tools/search/fixture_tests.rs; TALON_REWRITE_DOCS=1 makes it anew. -->\n";
const TABLE_ENDS: &str = "<!-- The end of what is made. -->\n";

#[derive(Deserialize)]
struct RecordedTool {
    server: String,
    name: String,
    description: String,
    parameters: BTreeMap<String, String>,
}

fn offer() -> Offer {
    let tools: Vec<(String, Action)> = TOOLS
        .lines()
        .map(|line| {
            let tool: RecordedTool = serde_json::from_str(line).expect("a tool a line");
            let parameters = tool.parameters.into_iter().map(|(name, description)| Parameter {
                name,
                description,
                r#type: "string".to_owned(),
                ..Parameter::default()
            });
            let action = Action {
                name: tool.name,
                description: tool.description,
                parameters: parameters.collect(),
                ..Action::default()
            };
            (tool.server, action)
        })
        .collect();
    Offer::new(tools.iter().map(|(server, action)| (server.as_str(), action)))
}

/// One line of a list: a query and the tools that are right.
struct Labelled {
    language: &'static str,
    query: &'static str,
    right: BTreeSet<&'static str>,
}

fn labelled(lines: &'static str) -> Vec<Labelled> {
    let line = |line: &'static str| {
        let (rest, right) = line.rsplit_once('|').expect("a query and its tools");
        let (language, query) = rest.split_once('|').unwrap_or(("en", rest));
        Labelled { language, query, right: right.split(' ').collect() }
    };
    lines.lines().map(line).collect()
}

/// The fixture with its recorded vectors.
struct Fixture<'t> {
    index: ToolIndex<'t>,
    lists: [Vec<Labelled>; 3],
    /// The vectors of the tools in the index's order, and those of each list.
    tools: Vec<Vec<f32>>,
    queries: [Vec<Vec<f32>>; 3],
}

impl<'t> Fixture<'t> {
    fn new(offer: &'t Offer) -> Self {
        let recorded: Vec<RecordedTool> =
            TOOLS.lines().map(|line| serde_json::from_str(line).expect("a tool a line")).collect();
        let order: BTreeMap<String, usize> = recorded
            .iter()
            .enumerate()
            .map(|(place, tool)| (format!("{}.{}", tool.server, tool.name), place))
            .collect();
        let by_name: BTreeMap<usize, String> = offer
            .tools()
            .map(|tool| (order[&format!("{}.{}", tool.plugin, tool.action)], embedding_text(tool)))
            .collect();
        let lists = [QUERIES, INTENTS, LANGUAGES].map(labelled);
        let queries = lists.iter().flatten().map(|line| line.query.to_owned());
        let mut digest = Sha256::new();
        let mut texts = 0;
        for text in by_name.into_values().chain(queries) {
            digest.update(text.as_bytes());
            digest.update([0]);
            texts += 1;
        }
        let (recorded_of, rows) = VECTORS.split_at(32);
        assert_eq!(recorded_of, &digest.finalize()[..], "the texts are others: run record_vectors.py");
        let mut rows = rows.chunks_exact(DIMENSIONS).map(unit);
        assert_eq!(rows.len(), texts);
        let recorded: Vec<Vec<f32>> = rows.by_ref().take(1000).collect();
        let tools = offer
            .tools()
            .map(|tool| recorded[order[&format!("{}.{}", tool.plugin, tool.action)]].clone())
            .collect();
        let queries = [0, 1, 2].map(|list| rows.by_ref().take(lists[list].len()).collect());
        Self { index: ToolIndex::new(offer.tools()), lists, tools, queries }
    }

    /// What is found for each query of a list.
    fn find(&self, list: usize) -> Vec<Found> {
        let each = self.lists[list].iter().zip(&self.queries[list]).map(|(line, query)| {
            let cosine = |tool: &Vec<f32>| tool.iter().zip(query).map(|(a, b)| a * b).sum::<f32>();
            let similarities: Vec<f32> = self.tools.iter().map(cosine).collect();
            let by_meaning: Vec<f64> = similarities.iter().map(|cosine| f64::from(*cosine) + 2.0).collect();
            let is_right = |tools: Vec<&Tool>| {
                let names = tools.iter().map(|tool| format!("{}.{}", tool.plugin, tool.action));
                names.map(|name| line.right.contains(name.as_str())).collect()
            };
            [
                is_right(self.index.search(line.query, 5)),
                is_right(self.index.best(&by_meaning, 5)),
                is_right(self.index.search_fused(line.query, &similarities, 5)),
            ]
        });
        each.collect()
    }
}

/// Whether each of the first five tools is right: by words, by vectors, by both.
type Found = [Vec<bool>; 3];

fn unit(bytes: &[u8]) -> Vec<f32> {
    let numbers: Vec<f32> = bytes.iter().map(|byte| f32::from(byte.cast_signed())).collect();
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.iter().map(|number| number / length).collect()
}

/// Of so many intents, at how many the first tool, and one of the first five, is right.
#[derive(Debug, Default)]
struct Recall {
    intents: u32,
    first: u32,
    five: u32,
}

impl Recall {
    /// Of queries, each with whether the tools that were found are right.
    fn of<'f>(found: impl Iterator<Item = &'f Vec<bool>>) -> Self {
        found.fold(Self::default(), |recall, is_right| Self {
            intents: recall.intents + 1,
            first: recall.first + u32::from(is_right.first() == Some(&true)),
            five: recall.five + u32::from(is_right.contains(&true)),
        })
    }

    fn at_1(&self) -> f64 {
        f64::from(self.first) / f64::from(self.intents)
    }

    fn at_5(&self) -> f64 {
        f64::from(self.five) / f64::from(self.intents)
    }
}

/// The lines for tuning, and those that are only measured.
const HALVES: [usize; 2] = [0, 1];

// Promises: AGENT-99
#[test]
fn the_right_one_of_a_thousand_tools_is_among_the_first_five() {
    let offer = offer();
    assert_eq!(offer.tools().count(), 1000);
    let fixture = Fixture::new(&offer);
    let known: BTreeSet<String> =
        offer.tools().map(|tool| format!("{}.{}", tool.plugin, tool.action)).collect();
    for line in fixture.lists.iter().flatten() {
        assert!(line.right.iter().all(|tool| known.contains(*tool)), "{}", line.query);
    }
    for (list, at_1, at_5) in [(0, 0.90, 0.97), (1, 0.58, 0.79)] {
        let lines = fixture.lists[list].iter();
        let found: Vec<Vec<bool>> = lines
            .map(|line| {
                let tools = fixture.index.search(line.query, 5);
                let names = tools.iter().map(|tool| format!("{}.{}", tool.plugin, tool.action));
                names.map(|name| line.right.contains(name.as_str())).collect()
            })
            .collect();
        for half in HALVES {
            let recall = Recall::of(found.iter().skip(half).step_by(2));
            assert!(recall.at_1() >= at_1 && recall.at_5() >= at_5, "{list}: {recall:?}");
        }
    }
}

// Promises: AGENT-113
#[test]
fn the_page_says_how_often_the_right_tool_is_found() {
    let offer = offer();
    let fixture = Fixture::new(&offer);
    let mut table =
        "| queries | of them | words: @1, @5 | vectors: @1, @5 | both: @1, @5 |\n|---|---|---|---|---|\n"
            .to_owned();
    let languages: BTreeSet<&str> = fixture.lists[2].iter().map(|line| line.language).collect();
    assert!(languages.len() >= 6 && fixture.lists[2].len() >= 60);
    let mut row = |name: &str, found: Vec<&Found>| {
        let recall = [0, 1, 2].map(|by| Recall::of(found.iter().map(|found| &found[by])));
        let cells = recall.each_ref().map(|recall| format!("{:.2}, {:.2}", recall.at_1(), recall.at_5()));
        writeln!(table, "| {name} | {} | {} |", found.len(), cells.join(" | ")).expect("a text takes lines");
    };
    for (list, name) in ["as a model writes them", "in everyday English"].iter().enumerate() {
        let found = fixture.find(list);
        for (half, what) in HALVES.into_iter().zip(["tuned with", "held out"]) {
            row(&format!("{name}, {what}"), found.iter().skip(half).step_by(2).collect());
        }
    }
    let found = fixture.find(2);
    row("in seven other languages", found.iter().collect());
    for language in languages {
        let of_it = found.iter().zip(&fixture.lists[2]).filter(|(_, line)| line.language == language);
        row(&format!("of these, `{language}`"), of_it.map(|(found, _)| found).collect());
    }
    println!("{table}");
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
