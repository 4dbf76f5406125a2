use std::collections::BTreeSet;

use talon_proto::plugin::{Action, Parameter};

use super::ToolIndex;
use super::terms::{stem, words};
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
            action("search_files", "Recursively search for files matching a pattern", &["path", "pattern"]),
        ),
        ("git", action("git_commit", "Records changes to the repository", &["repo_path", "message"])),
        (
            "git",
            action("git_diff", "Shows differences between branches or commits", &["repo_path", "target"]),
        ),
        (
            "github",
            action("create_issue", "Create a new issue in a repository", &["owner", "repo", "title", "body"]),
        ),
        (
            "github",
            action("list_pull_requests", "List and filter repository pull requests", &["owner", "repo"]),
        ),
        ("slack", action("post_message", "Post a new message to a channel", &["channel_id", "text"])),
        ("time", action("convert_time", "Convert time between timezones", &["source_timezone", "time"])),
        ("fetch", action("fetch", "Fetches a URL from the internet and extracts it as markdown", &["url"])),
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
        let found: Vec<&str> = index.search(query, 5).iter().map(|tool| tool.spec.name.as_str()).collect();
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
