//! What a model calls by another word than a tool does.
//!
//! Tools are named by their services: a merge request here is a pull request there, a folder a directory, and
//! who asks says mail where the service says message. The groups are words that the lists of public MCP
//! servers use for one thing, and the words of everyday English for it; a word may be in several. They were
//! collected with one half of the fixture's intents and are measured with the other
//! (`tests/fixtures/tools`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::terms::{stem, words};

/// Words for the same thing, in one line each.
const GROUPS: &[&str] = &[
    "folder directory",
    "repository repo project",
    "pr pull",
    "mr merge",
    "ticket issue bug",
    "email mail mailbox inbox message",
    "image picture photo screenshot media",
    "spreadsheet excel workbook sheet worksheet",
    "docx word document",
    "column field section",
    "row record entry",
    "appointment meeting event agenda schedule",
    "website site url page web",
    "download fetch scrape extract save",
    "delete remove erase drop clear discard throw",
    "create make new add insert open write",
    "add append put insert attach",
    "update change modify edit rename correct set",
    "get read show view details retrieve",
    "search find look query locate filter",
    "list all which what browse",
    "run execute start trigger launch begin",
    "stop cancel abort kill terminate dismiss",
    "export save store write download",
    "send post push publish message broadcast",
    "label tag",
    "user person people colleague member account",
    "comment note reply story remark answer",
    "wiki confluence page",
    "javascript script evaluate js",
    "http network request",
    "deploy apply rollout",
    "cluster kubernetes kubectl context",
    "complete done finish transition",
    "size large big storage space",
    "structure schema tree outline",
    "log output trace",
    "phrase text string content",
    "press click key",
    "upload attach attachment",
    "copy duplicate clone",
    "protect password lock restrict",
    "several batch multiple bulk many",
    "count many number",
    "latest recent current newest",
    "color background format bold",
    "slow performance profile",
    "conflict merge",
    "compare diff difference changed",
    "move transfer",
    "phone mobile emulate device",
    "offline network",
    "wait block until",
    "navigate open visit go",
    "csv comma",
    "mouse hover",
    "permission access allow restriction",
    "team workspace group",
    "remember entity observation",
    "connect relation link relate",
    "distance far",
    "coordinate geocode latitude longitude",
    "place restaurant shop poi",
    "pod container",
    "install helm",
    "value get",
    "version release",
    "sprint iteration",
    "assign give assignee",
    "watch follow watcher",
    "hours time worklog",
    "check status validate verify",
    "commit changes",
    "secret variable",
    "environment env",
];

/// What a tool or a query does to a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Create,
    Update,
    Delete,
}

/// The words that say what is done: who searches for `which labels are there` wants none deleted.
const OPERATIONS: [(Operation, &str); 4] = [
    (
        Operation::Read,
        "get list read show view find search query fetch retrieve describe check what which who when how is are does did \
         where look see tell details browse",
    ),
    (Operation::Create, "create add new make insert post attach append plan file report"),
    (Operation::Update, "update edit change modify set rename replace correct mark"),
    (Operation::Delete, "delete remove erase drop clear throw forget"),
];

static SYNONYMS: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let mut synonyms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for group in GROUPS {
        let group: BTreeSet<String> = group.split(' ').map(stem).collect();
        for word in &group {
            synonyms
                .entry(word.clone())
                .or_default()
                .extend(group.iter().filter(|other| *other != word).cloned());
        }
    }
    synonyms
});

/// The other words for a word, both without endings.
pub(super) fn of(word: &str) -> impl Iterator<Item = &'static str> {
    SYNONYMS.get(word).into_iter().flatten().map(String::as_str)
}

/// What the first word that says so does.
pub(super) fn operation(text: &str) -> Option<Operation> {
    let of_word = |word: &String| {
        let among = |list: &str| list.split(' ').any(|one| one == word || stem(one) == stem(word));
        OPERATIONS.iter().find(|(_, list)| among(list)).map(|(operation, _)| *operation)
    };
    words(text).iter().find_map(of_word)
}
