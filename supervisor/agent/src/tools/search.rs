//! Finds tools by words: BM25 over names, descriptions and arguments.
//!
//! A word counts more in a name than in a description, and more there than in an argument; rare words count
//! more than common ones, and short texts more than long ones (BM25F). Words are compared without their
//! English endings, and `readFile` is two words. In scripts without spaces, each character is a word.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Tool;

/// The weights of a word in the action's name, in the plugin's, in the description, and in an argument.
const WEIGHTS: [f64; 4] = [3.0, 1.5, 1.0, 0.5];
/// How soon more occurrences of a word count no more: BM25's usual number.
const SATURATION: f64 = 1.2;
/// How much long texts are discounted: BM25's usual number.
const LENGTH_DISCOUNT: f64 = 0.75;
/// How much of a query is matched; its beginning says what it is about.
const MAX_QUERY_CHARS: usize = 4096;
/// Words of a query that say nothing about a tool.
const STOP_WORDS: [&str; 30] = [
    "a", "an", "and", "are", "as", "at", "by", "can", "do", "for", "from", "how", "i", "in", "is", "it",
    "me", "my", "of", "on", "or", "please", "that", "the", "this", "to", "with", "what", "you", "your",
];

/// Tools with the words of each.
pub struct ToolIndex<'t> {
    tools: Vec<&'t Tool>,
    /// By tool and field: how often each word occurs, weighted and discounted by the field's length.
    words: Vec<BTreeMap<String, f64>>,
}

impl<'t> ToolIndex<'t> {
    /// Indexes tools.
    #[must_use]
    pub fn new(tools: impl IntoIterator<Item = &'t Tool>) -> Self {
        let tools: Vec<&Tool> = tools.into_iter().collect();
        let fields: Vec<[Vec<String>; 4]> = tools.iter().map(|tool| fields(tool)).collect();
        let count = tools.len().max(1) as f64;
        let average: Vec<f64> = (0..WEIGHTS.len())
            .map(|field| (fields.iter().map(|of| of[field].len()).sum::<usize>() as f64 / count).max(1.0))
            .collect();
        let words = fields.iter().map(|of| {
            let mut words = BTreeMap::new();
            for (field, weight) in WEIGHTS.iter().enumerate() {
                let length = of[field].len() as f64 / average[field];
                let counts = weight / (1.0 - LENGTH_DISCOUNT + LENGTH_DISCOUNT * length);
                for word in &of[field] {
                    *words.entry(word.clone()).or_default() += counts;
                }
            }
            words
        });
        Self { words: words.collect(), tools }
    }

    /// The tools that fit a query best, at most so many; none that shares no word with it.
    #[must_use]
    pub fn search(&self, query: &str, most: usize) -> Vec<&'t Tool> {
        let scores = self.scores(query);
        let mut order: Vec<usize> = (0..self.tools.len()).filter(|place| scores[*place] > 0.0).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        order.into_iter().take(most).map(|place| self.tools[place]).collect()
    }

    /// How well each tool fits a query; 0 for not at all.
    #[must_use]
    pub fn scores(&self, query: &str) -> Vec<f64> {
        let query: String = query.chars().take(MAX_QUERY_CHARS).collect();
        let wanted: BTreeSet<String> = words(&query)
            .into_iter()
            .filter(|word| !STOP_WORDS.contains(&word.as_str()))
            .map(|word| stem(&word))
            .collect();
        let mut scores = vec![0.0; self.tools.len()];
        for word in &wanted {
            let having = self.words.iter().filter(|words| words.contains_key(word)).count() as f64;
            let rarity = (1.0 + (self.tools.len() as f64 - having + 0.5) / (having + 0.5)).ln();
            for (score, words) in scores.iter_mut().zip(&self.words) {
                if let Some(often) = words.get(word) {
                    *score += rarity * often / (SATURATION + often);
                }
            }
        }
        scores
    }
}

/// The words of a tool's action, plugin, description and arguments.
fn fields(tool: &Tool) -> [Vec<String>; 4] {
    let stems = |text: &str| words(text).iter().map(|word| stem(word)).collect::<Vec<_>>();
    let parameters = tool.spec.parameters.get("properties").and_then(Value::as_object);
    let described = |(name, schema): (&String, &Value)| {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        format!("{name} {description}")
    };
    let arguments: Vec<String> = parameters.into_iter().flat_map(Map::iter).map(described).collect();
    [stems(&tool.action), stems(&tool.plugin), stems(&tool.spec.description), stems(&arguments.join(" "))]
}

/// The words in lower case, in their order.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut was_small = false;
    for c in text.chars() {
        let alone = matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
        if !c.is_alphanumeric() || alone || (was_small && c.is_uppercase()) {
            found.push(std::mem::take(&mut word));
        }
        if alone {
            found.push(c.to_string());
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase();
    }
    found.push(word);
    found.retain(|word| !word.is_empty());
    found
}

/// The word without an English ending: `searches`, `searching` and `search` are the same.
fn stem(word: &str) -> String {
    /// With less left it is another word: `sing`, `bus`.
    const LEAST_CHARS: usize = 3;
    let mut stem = word;
    for (ending, instead) in
        [("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")]
    {
        let Some(rest) = stem.strip_suffix(ending) else { continue };
        if !rest.is_ascii() || rest.len() < LEAST_CHARS || (ending == "s" && rest.ends_with('s')) {
            continue;
        }
        if !instead.is_empty() {
            return format!("{rest}{instead}");
        }
        stem = rest;
        break;
    }
    // `stopped` and `stop`, `create` and `creating`.
    let mut last = stem.chars().rev();
    let doubled =
        last.next().zip(last.next()).is_some_and(|(a, b)| a == b && !"lsz".contains(a) && a.is_ascii());
    let end = if doubled && stem.len() > LEAST_CHARS && stem.len() < word.len() {
        stem.len() - 1
    } else {
        stem.len()
    };
    stem[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use talon_proto::plugin::{Action, Parameter};

    use super::*;
    use crate::tools::Offer;

    /// As public servers declare theirs.
    fn offer() -> Offer {
        let action = |name: &str, description: &str, parameters: &[&str]| Action {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: parameters
                .iter()
                .map(|name| Parameter { name: (*name).to_owned(), ..Parameter::default() })
                .collect(),
            ..Action::default()
        };
        let actions = [
            (
                "filesystem",
                action(
                    "read_text_file",
                    "Read the complete contents of a file as text",
                    &["path", "head", "tail"],
                ),
            ),
            (
                "filesystem",
                action("write_file", "Create a new file or overwrite an existing one", &["path", "content"]),
            ),
            (
                "filesystem",
                action("list_directory", "Get a listing of all files and directories in a path", &["path"]),
            ),
            (
                "filesystem",
                action(
                    "search_files",
                    "Recursively search for files matching a pattern",
                    &["path", "pattern"],
                ),
            ),
            ("git", action("git_commit", "Records changes to the repository", &["repo_path", "message"])),
            (
                "git",
                action("git_diff", "Shows differences between branches or commits", &["repo_path", "target"]),
            ),
            (
                "github",
                action(
                    "create_issue",
                    "Create a new issue in a repository",
                    &["owner", "repo", "title", "body"],
                ),
            ),
            (
                "github",
                action("list_pull_requests", "List and filter repository pull requests", &["owner", "repo"]),
            ),
            ("slack", action("post_message", "Post a new message to a channel", &["channel_id", "text"])),
            ("time", action("convert_time", "Convert time between timezones", &["source_timezone", "time"])),
            (
                "fetch",
                action("fetch", "Fetches a URL from the internet and extracts it as markdown", &["url"]),
            ),
        ];
        Offer::new(actions.iter().map(|(plugin, action)| (*plugin, action)))
    }

    // Promises: AGENT-71
    #[test]
    fn tools_are_found_by_what_they_do() {
        let offer = offer();
        let index = ToolIndex::new(offer.tools());
        for (query, tool) in [
            ("read a file", "filesystem__read_text_file"),
            ("overwrite the contents of a file", "filesystem__write_file"),
            ("which files are in this directory", "filesystem__list_directory"),
            ("searching files by pattern", "filesystem__search_files"),
            ("show what changed between two commits", "git__git_diff"),
            ("open an issue on github", "github__create_issue"),
            ("pull request list", "github__list_pull_requests"),
            ("send a slack message", "slack__post_message"),
            ("what time is it in another timezone", "time__convert_time"),
            ("download a web page by url", "fetch__fetch"),
        ] {
            let found: Vec<&str> =
                index.search(query, 5).iter().map(|tool| tool.spec.name.as_str()).collect();
            assert_eq!(found.first(), Some(&tool), "{query}: {found:?}");
        }
        assert!(index.search("zebra", 5).is_empty());
        assert!(index.search("", 5).is_empty() && index.search("the of and", 5).is_empty());
    }

    #[test]
    fn endings_do_not_matter() {
        for words in [
            &["search", "searches", "searching", "searched"][..],
            &["create", "creates", "creating", "created"],
            &["stop", "stops", "stopping", "stopped"],
            &["query", "queries"],
            &["file", "files"],
        ] {
            let stems: BTreeSet<String> = words.iter().map(|word| stem(word)).collect();
            assert_eq!(stems.len(), 1, "{words:?}: {stems:?}");
        }
        assert_ne!(stem("bus"), stem("b"));
        assert_eq!(words("readFile read_file"), ["read", "file", "read", "file"]);
        assert_eq!(words("搜索 x"), ["搜", "索", "x"]);
    }
}
