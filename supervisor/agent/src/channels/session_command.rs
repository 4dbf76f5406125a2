//! What a person sets of their session by a command of a chat: `/model`, `/thinking`, `/verbose`, with the words of the configuration.

/// Stands for the configured value, as in `talon chat`.
const DEFAULT: &str = "default";
/// The longest word behind a command. 256: longer than the name of any model.
const MAX_WORD_BYTES: usize = 256;

/// A command. Without a word it shows what holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionCommand {
    ShowModel,
    /// A name as `talon model list` has them; empty for as configured.
    Model(String),
    ShowThinking,
    /// off, low, medium, high, or empty for as configured.
    Thinking(String),
    ShowVerbose,
    Verbose(bool),
    /// It cannot be carried out: what to write.
    Wrong(&'static str),
}

impl SessionCommand {
    /// Reads a whole message: `None` if it is for the model. One that begins as a command always is one, so that a mistyped one never is a
    /// question. A mention of the agent may stand before it: by one of its names, or, where the channel marks the message as for the agent, any.
    /// Telegram has the bot's name behind it, `/model@its_name`: one that the channel does not mark is another bot's.
    pub(super) fn parse(text: &str, mentioned: bool, names: &[String]) -> Option<Self> {
        let line = behind_mention(text.trim(), mentioned, names);
        let line = line.strip_prefix('/').filter(|line| !line.starts_with(char::is_whitespace))?;
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let name = match name.split_once('@') {
            Some(_) if !mentioned => return None,
            Some((name, _)) => name,
            None => name,
        };
        let name = name.to_ascii_lowercase();
        let (word, more) = (words.next(), words.next());
        let is_too_much = more.is_some() || word.is_some_and(|word| word.len() > MAX_WORD_BYTES);
        Some(match (name.as_str(), word) {
            ("model", _) if is_too_much => {
                Self::Wrong("Write /model to see the models, or /model NAME, or /model default.")
            }
            ("model", None) => Self::ShowModel,
            ("model", Some(DEFAULT)) => Self::Model(String::new()),
            ("model", Some(model)) => Self::Model(model.to_owned()),
            ("thinking", None) => Self::ShowThinking,
            ("thinking", Some(DEFAULT)) if !is_too_much => Self::Thinking(String::new()),
            ("thinking", Some(level @ ("off" | "low" | "medium" | "high"))) if !is_too_much => {
                Self::Thinking(level.to_owned())
            }
            ("thinking", _) => Self::Wrong("Write /thinking off, low, medium, high or default."),
            ("verbose", None) => Self::ShowVerbose,
            ("verbose", Some(word @ ("on" | "off"))) if !is_too_much => Self::Verbose(word == "on"),
            ("verbose", _) => Self::Wrong("Write /verbose on or /verbose off."),
            _ => return None,
        })
    }

    /// Whether it changes something.
    pub(super) fn changes(&self) -> bool {
        matches!(self, Self::Model(_) | Self::Thinking(_) | Self::Verbose(_))
    }
}

/// The text behind a mention of the agent that it begins with; else the text.
fn behind_mention<'t>(text: &'t str, mentioned: bool, names: &[String]) -> &'t str {
    let Some((first, rest)) = text.split_once(char::is_whitespace) else { return text };
    let first = first.trim_end_matches([',', ':']);
    let word = first.trim_start_matches('@').to_lowercase();
    let is_marked = mentioned && first.starts_with('@');
    let is_own = is_marked || names.iter().any(|name| name.trim_start_matches('@').to_lowercase() == word);
    if is_own && !word.is_empty() { rest.trim_start() } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Promises: GW-300
    #[test]
    fn commands_have_the_words_of_the_configuration_and_everything_else_is_for_the_model() {
        use SessionCommand::{Model, ShowModel, ShowThinking, ShowVerbose, Thinking, Verbose};
        for (text, command) in [
            ("/model", ShowModel),
            (" /Model@TalonBot ", ShowModel),
            ("/model local/small", Model("local/small".to_owned())),
            ("/model@TalonBot fast", Model("fast".to_owned())),
            ("/model default", Model(String::new())),
            ("/thinking", ShowThinking),
            ("/thinking high", Thinking("high".to_owned())),
            ("/thinking default", Thinking(String::new())),
            ("/verbose", ShowVerbose),
            ("/verbose on", Verbose(true)),
            ("/verbose off", Verbose(false)),
        ] {
            assert_eq!(SessionCommand::parse(text, true, &[]), Some(command), "{text}");
        }
        for text in [
            "/model which one is that?",
            "/thinking loud",
            "/thinking high please",
            "/verbose yes",
            "/verbose on on",
            &format!("/model {}", "x".repeat(300)),
        ] {
            let command = SessionCommand::parse(text, false, &[]);
            assert!(matches!(command, Some(SessionCommand::Wrong(_))), "{text}");
            assert!(!command.is_some_and(|command| command.changes()));
        }
        for text in ["hello", "/start", "/", "//model", "/models", "model x", "/ model", "say /model", ""] {
            assert_eq!(SessionCommand::parse(text, true, &[]), None, "{text}");
        }
    }

    // Promises: GW-300
    #[test]
    fn a_mention_of_the_agent_may_stand_before_a_command_and_another_name_makes_it_none() {
        let names = ["Talon".to_owned(), String::new()];
        let parse = |text, mentioned| SessionCommand::parse(text, mentioned, &names);
        let fast = || Some(SessionCommand::Model("fast".to_owned()));
        for text in ["@talon /model fast", "talon: /model fast", "@Talon,  /MODEL fast", "/model fast"] {
            assert_eq!((parse(text, false), parse(text, true)), (fast(), fast()), "{text}");
        }
        for text in ["@its_name /model fast", "/model@its_name fast", "@its_name /model@its_name fast"] {
            assert_eq!((parse(text, false), parse(text, true)), (None, fast()), "{text}");
        }
        for text in
            ["@ /model fast", ": /model fast", "say /model fast", "talon, talon /model fast", "@talon"]
        {
            assert_eq!((parse(text, false), parse(text, true)), (None, None), "{text}");
        }
    }

    proptest! {
        // Promises: GW-300
        #[test]
        fn any_text_is_taken(
            text in "(@?talon:? )?/?(model|thinking|verbose)?@?\\PC{0,40}",
            mentioned in any::<bool>(),
        ) {
            let command = SessionCommand::parse(&text, mentioned, &["talon".to_owned()]);
            if let Some(SessionCommand::Model(name)) = command {
                prop_assert!(name.len() <= MAX_WORD_BYTES && !name.contains(char::is_whitespace));
            }
        }
    }
}
