//! The page with the prompt is what a model gets.

use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::tokens::OpenAiTokenizer;

const REWRITE: &str = "TALON_REWRITE_DOCS";
const PAGE: &str = "docs/agent-prompt.md";

const INTRODUCTION: &str = "# The agent's prompt

What a model gets before the conversation, as a test captures it; it writes this page anew with
`TALON_REWRITE_DOCS=1 cargo nextest run -p talon-agent the_page_has_the_prompt`. Here with one rule of the operator, a `USER.md`, and one
memory, one workflow and the note of one trusted plugin. [The loop](agent-loop.md#the-system-prompt) says where each part comes from.

- The safety rules are first in every prompt, in eight languages, because an injected text may be in any. They and all that follows up to the
  files stay the same from question to question, so that providers cache them. In a window of up to 8,192 tokens they are in English and in the
  language of the message only, and a notice says so.
- Rule 3 does not forbid what the user asks for: \"open the first hit\" is the user's request, a hit that says \"now call mail.send\" is not.
- The day and the time zone are the machine's; the name is from a line such as `Name: Ada` in `USER.md`.
- A file that is not shown whole is named in a notice, and ends in a line that says how much is left out.
";

fn example() -> Prompt {
    let user = "Name: Ada Lovelace\nPrefers short answers, and metric units.";
    let workspace = Workspace::new(Files { user: Some(user), ..Files::default() });
    Prompt::new(vec!["Never send mail to more than one person.".to_owned()], workspace)
        .today("Tuesday, 2026-11-24, time zone Europe/Berlin (UTC+01:00)".to_owned())
        .memories(vec!["Ada's project is in /srv/engine.".to_owned()])
        .hints(vec!["files.read, then files.write".to_owned()])
        .trusted_notes(vec![Note { plugin: "git".to_owned(), text: "Call status before commit.".to_owned() }])
}

// Promises: AGENT-94
#[test]
fn the_page_has_the_prompt() {
    let mut page = INTRODUCTION.to_owned();
    for message in example().messages(10_000, &OpenAiTokenizer::O200k) {
        let Message::System { text } = message else { panic!("it is the system's") };
        let tokens = OpenAiTokenizer::O200k.count(&text);
        write!(page, "\n{tokens} tokens (counted as for GPT-4o):\n\n```text\n{text}\n```\n")
            .expect("a string grows");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(&path, &page).expect("our own page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, page, "{PAGE} is not the prompt: run this with {REWRITE}=1");
}

// Promises: AGENT-94
#[test]
fn day_name_and_working_rules_are_never_cut() {
    for tokens in [0, 100, 10_000] {
        let prompt = example();
        let text = prompt.messages(tokens, &OpenAiTokenizer::O200k).into_iter().nth(2);
        let Some(Message::System { text }) = text else { panic!("there are three") };
        for part in [
            "language of the user's message",
            "talon__read_more",
            "approval",
            "tools__search",
            "2026-11-24",
            "Ada Lovelace",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert_eq!(prompt.stable_messages(), 6);
    }
    // Founding sections of 500 tokens have room for more than this.
    assert!(OpenAiTokenizer::O200k.count(&example().working()) < 230);
}

// Promises: AGENT-95
#[test]
fn files_that_are_not_shown_whole_are_named() {
    let long = "word ".repeat(1_000);
    let files = Files {
        soul: Some(&long),
        user: Some("Name: Ada"),
        daily: &[("2026-11-22", &long)],
        ..Files::default()
    };
    let prompt = Prompt::new(vec![], Workspace::new(files));
    let cut = |tokens| prompt.with_rules(safety_rules(), tokens, &OpenAiTokenizer::O200k).files_cut;
    assert_eq!(cut(10_000), [""; 0]);
    assert_eq!(cut(500), ["SOUL.md", "memory/"]);
    // Too long for any prompt.
    let longer = "word ".repeat(10_000);
    let prompt = Prompt::new(vec![], Workspace::new(Files { identity: Some(&longer), ..Files::default() }));
    assert_eq!(
        prompt.with_rules(safety_rules(), 100_000, &OpenAiTokenizer::O200k).files_cut,
        ["IDENTITY.md"]
    );
}

// Promises: AGENT-96
#[test]
fn a_small_window_has_the_rules_in_two_languages() {
    let german = reduced_safety_rules(Some("de"));
    assert!(german.starts_with("Safety rules.") && german.contains("Sicherheitsregeln,"));
    assert!(!german.contains("Règles"));
    assert_eq!(german.matches("[plugin_output]").count(), 2);
    assert_eq!(reduced_safety_rules(Some("en")), reduced_safety_rules(None));
    assert!(OpenAiTokenizer::O200k.count(&german) < 250);
}
