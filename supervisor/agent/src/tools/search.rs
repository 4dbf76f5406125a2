//! Finds tools by words: BM25 over names, descriptions and arguments. Where an embedding model is configured,
//! the order by words is fused with the one by meaning ([`ToolIndex::search_fused`]).
//!
//! A word counts more in a name than in a description, and more in a description's first sentence than in the
//! rest; rare words count more than common ones, and short texts more than long ones (BM25F). Words are
//! compared without their English endings, and `readFile` is two words. In scripts without spaces, each
//! character is a word. Another word for the same thing counts about half as much ([`synonyms`]). A tool of the
//! server that a query names comes before others, and so does one that does what the query asks for: reads,
//! creates, changes or deletes.
//!
//! `search/fixture_tests.rs` measures it on 1,000 tools of public MCP servers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use talon_llm::limits::MAX_EMBEDDED_CHARS;

use self::synonyms::Operation;
use self::terms::{stem, stems};
use super::Tool;
use crate::fusion;

mod synonyms;
mod terms;

/// The fields of a tool: the action's name, the plugin's, the description, the arguments, and the
/// description's first sentence again, each with the weight of a word in it and with how much long ones are
/// discounted. From the half of the fixture's intents that is for tuning. BM25's usual discount is 0.75; a
/// plugin's name is the same for all its tools.
const FIELDS: [(f64, f64); 5] = [(3.0, 0.75), (2.0, 0.01), (0.5, 0.75), (0.2, 0.75), (1.5, 0.75)];
/// How soon more occurrences of a word count no more: at the upper end of BM25's usual 1.2 to 2, since the
/// fields' weights add up.
const SATURATION: f64 = 2.0;
/// What another word for the same thing counts. More finds more of what is paraphrased, and less of what is
/// asked for in a tool's own words.
const SYNONYM_WEIGHT: f64 = 0.6;
/// The factor of tools whose server the query names.
const SERVER_BONUS: f64 = 1.6;
/// The factors of tools that do what the query asks for, and of those that do something else.
const OPERATION_BONUS: f64 = 1.1;
/// See [`OPERATION_BONUS`].
const OPERATION_MALUS: f64 = 0.85;
/// What a tool's factor grows by where the query has all words of its name: `create_issue` does what "create
/// issue" asks for, and `batch_create_issues` something else. Twice or four times as much does no better.
const NAME_BONUS: f64 = 0.15;
/// What the order by words counts beside the one by meaning, for a query of which all words are known. It
/// falls with the third power of their share: what shares few words with any tool is in another language,
/// where one word in common (`Excel`) says little of what is wanted.
const WORDS_WEIGHT: f64 = 3.0;
/// The shortest word that names a server by its beginning: `mongo` is `mongodb`.
const MIN_SERVER_PREFIX: usize = 4;
/// How much of a query is matched; its beginning says what it is about.
const MAX_QUERY_CHARS: usize = 4096;
/// Words of a query that say nothing about a tool.
const STOP_WORDS: [&str; 56] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "do", "for", "from", "go",
    "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "my", "not", "of",
    "off", "on", "or", "out", "over", "please", "so", "some", "that", "the", "their", "them", "there",
    "these", "this", "those", "to", "up", "very", "was", "were", "with", "you", "your",
];

/// Tools with the words of each.
pub struct ToolIndex<'t> {
    tools: Vec<IndexedTool<'t>>,
    /// How many tools have a word.
    having: BTreeMap<String, usize>,
}

struct IndexedTool<'t> {
    tool: &'t Tool,
    /// How often each word occurs, weighted and discounted by the field's length.
    words: BTreeMap<String, f64>,
    server: Vec<String>,
    /// The words of the action's name that are not the server's.
    name: Vec<String>,
    operation: Option<Operation>,
}

impl<'t> ToolIndex<'t> {
    /// Indexes tools.
    #[must_use]
    pub fn new(tools: impl IntoIterator<Item = &'t Tool>) -> Self {
        let tools: Vec<&Tool> = tools.into_iter().collect();
        let fields: Vec<[Vec<String>; FIELDS.len()]> = tools.iter().map(|tool| fields(tool)).collect();
        let count = tools.len().max(1) as f64;
        let average: Vec<f64> = (0..FIELDS.len())
            .map(|field| (fields.iter().map(|of| of[field].len()).sum::<usize>() as f64 / count).max(1.0))
            .collect();
        let mut having: BTreeMap<String, usize> = BTreeMap::new();
        let indexed = tools.into_iter().zip(&fields).map(|(tool, of)| {
            let mut words = BTreeMap::new();
            for (field, (weight, discount)) in FIELDS.iter().enumerate() {
                let length = of[field].len() as f64 / average[field];
                let counts = weight / (1.0 - discount + discount * length);
                for word in &of[field] {
                    *words.entry(word.clone()).or_default() += counts;
                }
            }
            for word in words.keys() {
                *having.entry(word.clone()).or_default() += 1;
            }
            let first = self::terms::words(&tool.spec.description).into_iter().next().unwrap_or_default();
            let operation = synonyms::operation(&tool.action).or_else(|| synonyms::operation(&first));
            let server = stems(&tool.plugin);
            let name = stems(&tool.action).into_iter().filter(|word| !server.contains(word)).collect();
            IndexedTool { tool, words, server, name, operation }
        });
        let tools = indexed.collect();
        Self { tools, having }
    }

    /// The tools that fit a query best, at most so many; none that shares no word with it.
    #[must_use]
    pub fn search(&self, query: &str, most: usize) -> Vec<&'t Tool> {
        self.best(&self.scores(query), most)
    }

    /// The tools that fit a query best by words and by meaning. `similarities` has that of each tool, in the
    /// order in which they were indexed.
    #[must_use]
    pub fn search_fused(&self, query: &str, similarities: &[f32], most: usize) -> Vec<&'t Tool> {
        // Cosines are above -1; any order of them is one of positive numbers.
        let by_meaning: Vec<f64> = similarities.iter().map(|cosine| f64::from(*cosine) + 2.0).collect();
        let by_words = WORDS_WEIGHT * self.known(query).powi(3);
        let orders = [(by_words, fusion::order(&self.scores(query))), (1.0, fusion::order(&by_meaning))];
        self.best(&fusion::fuse(self.tools.len(), &orders), most)
    }

    fn best(&self, scores: &[f64], most: usize) -> Vec<&'t Tool> {
        fusion::order(scores).into_iter().take(most).map(|place| self.tools[place].tool).collect()
    }

    /// The words of a query that say something about a tool, without endings. A name like `GitHub` or `MongoDB`
    /// is one word if any tool has it as one, and otherwise two.
    fn wanted(&self, query: &str) -> BTreeSet<String> {
        let query: String = query.chars().take(MAX_QUERY_CHARS).collect();
        let said = query.split(|c: char| !c.is_alphanumeric()).flat_map(|said| {
            let whole = stem(&said.to_lowercase());
            if self.having.contains_key(&whole) { vec![whole] } else { stems(said) }
        });
        said.filter(|word| !STOP_WORDS.contains(&word.as_str())).collect()
    }

    /// The share of a query's words that any tool has, in itself or by another word.
    fn known(&self, query: &str) -> f64 {
        let wanted = self.wanted(query);
        let has = |term: &str| self.having.contains_key(term);
        wanted.iter().filter(|word| has(word) || synonyms::of(word).any(has)).count() as f64
            / wanted.len().max(1) as f64
    }

    /// How well each tool fits a query; 0 for not at all.
    #[must_use]
    pub fn scores(&self, query: &str) -> Vec<f64> {
        let wanted = self.wanted(query);
        let mut scores = vec![0.0; self.tools.len()];
        for word in &wanted {
            let same = synonyms::of(word).map(|other| (other, SYNONYM_WEIGHT));
            let terms: Vec<(&str, f64)> = std::iter::once((word.as_str(), 1.0))
                .chain(same)
                .map(|(term, weight)| (term, weight * self.rarity(term)))
                .collect();
            for (score, tool) in scores.iter_mut().zip(&self.tools) {
                // The best of the words for one thing: a tool that has them all is not about it more.
                let each = terms.iter().filter_map(|(term, weight)| {
                    let often = tool.words.get(*term)?;
                    Some(weight * often / (SATURATION + often))
                });
                *score += each.fold(0.0, f64::max);
            }
        }
        let operation = synonyms::operation(query);
        let others = wanted.iter().flat_map(|word| synonyms::of(word)).map(str::to_owned);
        let known: BTreeSet<String> = others.chain(wanted.iter().cloned()).collect();
        for (score, tool) in scores.iter_mut().zip(&self.tools) {
            *score *= tool.factor(&wanted, operation) * (1.0 + NAME_BONUS * tool.named(&known));
        }
        scores
    }

    /// BM25's weight of a word: the fewer tools have it, the more it says.
    fn rarity(&self, word: &str) -> f64 {
        let having = self.having.get(word).copied().unwrap_or_default() as f64;
        (1.0 + (self.tools.len() as f64 - having + 0.5) / (having + 0.5)).ln()
    }
}

impl IndexedTool<'_> {
    /// The share of its name's words that a query has, in themselves or by other words.
    fn named(&self, known: &BTreeSet<String>) -> f64 {
        let said = self.name.iter().filter(|word| known.contains(*word)).count();
        said as f64 / self.name.len().max(1) as f64
    }

    /// What its score is multiplied with, for its server and what it does.
    fn factor(&self, wanted: &BTreeSet<String>, operation: Option<Operation>) -> f64 {
        let names = |word: &String, server: &String| {
            word == server || (word.len() >= MIN_SERVER_PREFIX && server.starts_with(word.as_str()))
        };
        let is_named = wanted.iter().any(|word| self.server.iter().any(|server| names(word, server)));
        let by_server = if is_named { SERVER_BONUS } else { 1.0 };
        by_server
            * match (operation, self.operation) {
                (Some(asked), Some(own)) if asked == own => OPERATION_BONUS,
                (Some(_), Some(_)) => OPERATION_MALUS,
                _ => 1.0,
            }
    }
}

/// The words of a tool's fields, as in [`FIELDS`].
fn fields(tool: &Tool) -> [Vec<String>; FIELDS.len()] {
    let parameters = tool.spec.parameters.get("properties").and_then(Value::as_object);
    let described = |(name, schema): (&String, &Value)| {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        format!("{name} {description}")
    };
    let arguments: Vec<String> = parameters.into_iter().flat_map(Map::iter).map(described).collect();
    let description = tool.spec.description.trim();
    [
        stems(&tool.action),
        stems(&tool.plugin),
        stems(description),
        stems(&arguments.join(" ")),
        stems(first_sentence(description)),
    ]
}

/// The text of a tool of which a vector is made: its name in words, and its first sentence. More makes
/// searches worse, on the fixture: what arguments are called is about other things.
#[must_use]
pub fn embedding_text(tool: &Tool) -> String {
    let name = format!("{} {}", tool.plugin, tool.action).replace(['_', '-'], " ");
    let text = format!("{name}: {}", first_sentence(tool.spec.description.trim()));
    text.chars().take(MAX_EMBEDDED_CHARS).collect()
}

fn first_sentence(description: &str) -> &str {
    let ends = ["\n", "\t", ". ", "! ", "? "].iter().filter_map(|mark| description.find(mark));
    &description[..ends.min().unwrap_or(description.len())]
}

#[cfg(test)]
mod fixture_tests;
#[cfg(test)]
mod tests;
