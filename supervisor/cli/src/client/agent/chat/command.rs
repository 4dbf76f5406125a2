//! Parses a line of a chat into a command.

use clap::ValueEnum as _;
use talon_sanitize::{Sanitized, sanitized};

use super::plan_command::PlanCommand;
use super::setting_command::SettingCommand;
use crate::client::agent::approval::scope::Scope;
use crate::client::agent::formatting::single_line;

/// Commands with their arguments and effects, as `/help` shows them.
pub(super) const COMMANDS: [(&str, &str, &str); 24] = [
    ("help", "", "this help"),
    ("model", "[NAME|default]", "the models, or the one that is asked in this session from now on"),
    (
        "thinking",
        "[LEVEL|show|hide]",
        "how long the model thinks: off, low, medium, high, default; or whether its thoughts are shown",
    ),
    ("temperature", "[NUMBER|default]", "how freely the model chooses its words, from 0 to 2"),
    ("top_p", "[NUMBER|default]", "of how much of all likelihood it chooses them: above 0, at most 1"),
    ("max_tokens", "[TOKENS|default]", "the most tokens of an answer"),
    ("verbosity", "[LEVEL]", "how detailed answers are: low, high, default"),
    ("verbose", "[on|off]", "whether channels show arguments and results of calls"),
    ("metadata", "[KEY=VALUE…]", "what is noted about this session, for programs; KEY= removes an entry"),
    (
        "plan",
        "[ask MESSAGE|approve|CHANGE]",
        "the plan; have one written, carry it out, or change it: add TEXT, insert N TEXT, reword N TEXT, move N TO, drop N…, done N…, \
         open N…, clear",
    ),
    ("tools", "[PATTERN…|all]", "the tools, or only these from now on: plugin.action or plugin.*"),
    ("approve", "[ID] [SCOPE]", "run the call that waits; SCOPE: session or always"),
    ("deny", "[ID] [REASON]", "do not run it, and tell the model why"),
    ("cost", "", "what this session and this day have cost"),
    ("context", "", "what the model saw with the last question, and what was shortened"),
    ("session", "[ID]", "about this session, or go on with another one"),
    ("resume", "", "choose one of your sessions from a list"),
    (
        "undo",
        "[TURNS]",
        "take the last turn back, or so many, to word your message anew; what its calls did stays",
    ),
    ("compact", "[TURNS]", "summarize older turns, and leave so many as they are"),
    ("clear", "", "begin a new session; this one is kept"),
    ("exit", "", "leave; so does Ctrl-D"),
    ("quit", "", "the same"),
    ("/…", "", "a message that begins with a slash"),
    ("… @FILE", "", "a message that a file goes with; Tab completes its name"),
];
/// Edit distance up to which an unknown word counts as a typo of a command.
const MAX_TYPO_DISTANCE: usize = 2;

/// A parsed line.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    Empty,
    Say(String),
    Help,
    Model(Option<String>),
    Thinking(Thinking),
    Setting(SettingCommand),
    Plan(PlanCommand),
    Tools(Vec<String>),
    Approve(Option<String>, Scope),
    Deny(Option<String>, String),
    Cost,
    Context,
    Session(Option<String>),
    Resume,
    Undo(u32),
    Compact(Option<u32>),
    Clear,
    Exit,
    /// An invalid command, with the message for the user.
    Wrong(Sanitized),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    Query,
    Show(bool),
    /// Empty: the configured level.
    Level(String),
}

impl Command {
    /// Parses a line. A line that starts with a single slash is always a command: a mistyped one is never
    /// sent to the model.
    pub(super) fn parse(line: &str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            return Self::Empty;
        }
        let Some(rest) = line.strip_prefix('/') else { return Self::Say(line.to_owned()) };
        if rest.starts_with('/') {
            return Self::Say(rest.to_owned());
        }
        let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let rest = rest.trim();
        let first = || rest.split_whitespace().next().map(str::to_owned);
        match word {
            "help" | "?" => Self::Help,
            "model" => Self::Model(first()),
            "thinking" => Self::thinking(rest),
            "plan" => PlanCommand::parse(rest).map_or_else(Self::Wrong, Self::Plan),
            "tools" => Self::Tools(rest.split_whitespace().map(str::to_owned).collect()),
            "approve" => Self::approve(rest),
            "deny" => Self::deny(rest),
            "cost" => Self::Cost,
            "context" => Self::Context,
            "session" => Self::Session(first()),
            "resume" => Self::Resume,
            "undo" => match first().map(|turns| turns.parse()) {
                None => Self::Undo(1),
                Some(Ok(turns @ 1..)) => Self::Undo(turns),
                Some(_) => Self::Wrong("write how many turns to take back, as in /undo 2".into()),
            },
            "compact" => match first().map(|turns| turns.parse()) {
                None => Self::Compact(None),
                Some(Ok(turns @ 1..)) => Self::Compact(Some(turns)),
                Some(_) => Self::Wrong("write how many turns stay as they are, as in /compact 3".into()),
            },
            "clear" => Self::Clear,
            "exit" | "quit" => Self::Exit,
            other => match SettingCommand::parse(other, rest) {
                Some(setting) => setting.map_or_else(Self::Wrong, Self::Setting),
                None => Self::Wrong(unknown(other)),
            },
        }
    }

    fn thinking(rest: &str) -> Self {
        Self::Thinking(match rest {
            "" => Thinking::Query,
            "show" => Thinking::Show(true),
            "hide" => Thinking::Show(false),
            "default" => Thinking::Level(String::new()),
            "off" | "low" | "medium" | "high" => Thinking::Level(rest.to_owned()),
            _ => {
                return Self::Wrong(
                    "say off, low, medium, high or default; or show or hide for its thoughts".into(),
                );
            }
        })
    }

    /// The id and the scope may be omitted. Whatever else is written approves nothing.
    fn approve(rest: &str) -> Self {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let scope = |word: &str| Scope::from_str(word, true).ok();
        match words[..] {
            [] => Self::Approve(None, Scope::Once),
            [word] => match scope(word) {
                Some(scope) => Self::Approve(None, scope),
                None => Self::Approve(Some(word.to_owned()), Scope::Once),
            },
            [id, word] if scope(word).is_some() => {
                Self::Approve(Some(id.to_owned()), scope(word).unwrap_or(Scope::Once))
            }
            _ => Self::Wrong(
                "write /approve, and behind it the id, a scope (once, session, always), or both".into(),
            ),
        }
    }

    /// The id may be omitted if only one call waits; anything that is not an id belongs to the reason.
    fn deny(rest: &str) -> Self {
        let (word, reason) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match is_id(word) {
            true => Self::Deny(Some(word.to_owned()), reason.trim().to_owned()),
            false => Self::Deny(None, rest.to_owned()),
        }
    }
}

/// The words that can follow a command, as far as they are always the same.
pub(super) fn words_after(name: &str) -> &'static [&'static str] {
    match name {
        "thinking" => &["off", "low", "medium", "high", "default", "show", "hide"],
        "verbosity" => &["low", "high", "default"],
        "verbose" => &["on", "off"],
        "model" | "temperature" | "top_p" | "max_tokens" => &["default"],
        "tools" => &["all"],
        "approve" => &["once", "session", "always"],
        "plan" => &["ask", "approve", "add", "insert", "reword", "move", "drop", "done", "open", "clear"],
        _ => &[],
    }
}

/// Whether the first column of the help is a command, and not an example of a message.
pub(super) fn is_word(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Whether the word looks like an id of the store: 26 letters and digits.
fn is_id(word: &str) -> bool {
    const ID_LETTERS: usize = 26;
    word.len() == ID_LETTERS && word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

fn unknown(word: &str) -> Sanitized {
    let near = COMMANDS
        .iter()
        .filter(|(name, ..)| is_word(name))
        .map(|(name, ..)| (strsim::damerau_levenshtein(word, name), *name))
        .filter(|(far, _)| *far <= MAX_TYPO_DISTANCE)
        .min();
    match near {
        Some((_, name)) => sanitized!("there is no /{}: did you mean /{}?", single_line(word), name),
        None => {
            sanitized!(
                "there is no /{}: /help has all commands; write //{} to say that",
                single_line(word),
                single_line(word)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        let some = |text: &str| Some(text.to_owned());
        for (line, command) in [
            ("", Command::Empty),
            ("  hello there ", Command::Say("hello there".into())),
            ("//etc is a path", Command::Say("/etc is a path".into())),
            ("/help", Command::Help),
            ("/model", Command::Model(None)),
            ("/model ollama/llama3.2", Command::Model(some("ollama/llama3.2"))),
            ("/thinking hide", Command::Thinking(Thinking::Show(false))),
            ("/thinking default", Command::Thinking(Thinking::Level(String::new()))),
            ("/tools git.* files.read", Command::Tools(vec!["git.*".into(), "files.read".into()])),
            ("/approve", Command::Approve(None, Scope::Once)),
            ("/approve always", Command::Approve(None, Scope::Always)),
            (
                "/approve 01K0AAAAAAAAAAAAAAAAAAAAAA session",
                Command::Approve(some("01K0AAAAAAAAAAAAAAAAAAAAAA"), Scope::Session),
            ),
            ("/deny not there", Command::Deny(None, "not there".into())),
            (
                "/deny 01K0AAAAAAAAAAAAAAAAAAAAAA too much",
                Command::Deny(some("01K0AAAAAAAAAAAAAAAAAAAAAA"), "too much".into()),
            ),
            ("/compact 3", Command::Compact(Some(3))),
            ("/undo", Command::Undo(1)),
            ("/undo 2", Command::Undo(2)),
            ("/quit", Command::Exit),
        ] {
            assert_eq!(Command::parse(line), command, "{line}");
        }
    }

    // Promises: CLI-44
    #[test]
    fn what_is_no_command_is_never_said_to_a_model() {
        for (line, said) in [
            ("/modle x", "did you mean /model?"),
            ("/etc/passwd", "write //etc/passwd to say that"),
            ("/compact all", "/compact 3"),
            ("/undo 0", "/undo 2"),
            ("/approve 01K0 for ever", "once, session, always"),
            ("/approve 01K0 evermore", "once, session, always"),
            ("/thinking hard", "off, low, medium"),
        ] {
            let Command::Wrong(text) = Command::parse(line) else { panic!("{line}") };
            assert!(text.contains(said), "{line}: {text}");
        }
    }

    // Promises: CLI-44
    #[test]
    fn every_command_of_the_help_is_one() {
        for (name, ..) in COMMANDS.iter().filter(|(name, ..)| is_word(name)) {
            assert!(!matches!(Command::parse(&format!("/{name}")), Command::Wrong(_)), "{name}");
        }
    }

    // Promises: CLI-70
    #[test]
    fn the_words_after_a_command_are_taken_by_it() {
        let takes = |name: &str, word: &str| {
            // These words take more.
            let more = match word {
                "ask" | "add" => " x",
                "insert" | "reword" => " 1 x",
                "move" => " 1 2",
                "drop" | "done" | "open" => " 1",
                _ => "",
            };
            !matches!(Command::parse(&format!("/{name} {word}{more}")), Command::Wrong(_))
        };
        for (name, ..) in COMMANDS.iter().filter(|(name, ..)| is_word(name)) {
            assert!(words_after(name).iter().all(|word| takes(name, word)), "{name}");
        }
    }
}
