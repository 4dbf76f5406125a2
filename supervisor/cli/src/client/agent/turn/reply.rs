//! Parses the replies to questions: of an approval, and of the model.

/// Bytes of a denial's reason; the agent accepts no more.
const MAX_REASON_BYTES: usize = 500;

/// The reply to an approval question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ApprovalReply {
    Approve,
    /// With a rule for this call in the session, or always.
    ApproveSession,
    ApproveAlways,
    /// With a reason for the model, possibly empty.
    Deny(String),
    /// No decision for now.
    Later,
    /// Not understood: the question stays open.
    Unclear,
}

impl ApprovalReply {
    /// Parses yes, no, no with a reason, or later. An empty line means no; only an explicit yes approves.
    pub(crate) fn parse(line: &str) -> Self {
        let line = line.trim();
        let (word, rest) = line.split_once([' ', ',', ':']).unwrap_or((line, ""));
        match (word.to_ascii_lowercase().as_str(), rest.trim()) {
            ("y" | "yes", "") => Self::Approve,
            ("s" | "session", "") => Self::ApproveSession,
            ("a" | "always", "") => Self::ApproveAlways,
            ("" | "n" | "no", reason) => {
                Self::Deny(reason[..reason.floor_char_boundary(MAX_REASON_BYTES)].to_owned())
            }
            ("l" | "later", "") => Self::Later,
            _ => Self::Unclear,
        }
    }
}

/// The reply to a question of the model.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuestionReply {
    Answer(String),
    /// The model is to decide.
    Decline,
    /// No answer for now.
    Later,
}

impl QuestionReply {
    /// Parses an answer: the number of a suggested one, any text, nothing, or later.
    pub(crate) fn parse(line: &str, choices: &[String]) -> Self {
        let line = line.trim();
        let choice = line.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
        match (line, choice) {
            ("", _) => Self::Decline,
            ("later", _) => Self::Later,
            (_, Some(choice)) => Self::Answer(choice.clone()),
            (line, None) => Self::Answer(line.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: AGENT-85
    #[test]
    fn a_question_is_answered_by_a_number_or_by_any_text() {
        let choices = ["red".to_owned(), "blue".to_owned()];
        let answer = |text: &str| QuestionReply::Answer(text.to_owned());
        assert_eq!(QuestionReply::parse("2\n", &choices), answer("blue"));
        assert_eq!(QuestionReply::parse("3", &choices), answer("3"));
        assert_eq!(QuestionReply::parse("0", &choices), answer("0"));
        assert_eq!(QuestionReply::parse(" the green one ", &choices), answer("the green one"));
        assert_eq!(QuestionReply::parse("", &choices), QuestionReply::Decline);
        assert_eq!(QuestionReply::parse("later", &choices), QuestionReply::Later);
    }

    // Promises: CLI-42
    #[test]
    fn only_a_plain_yes_approves() {
        assert_eq!(ApprovalReply::parse(" Yes\n"), ApprovalReply::Approve);
        assert_eq!(ApprovalReply::parse(""), ApprovalReply::Deny(String::new()));
        assert_eq!(
            ApprovalReply::parse("no, use trash instead"),
            ApprovalReply::Deny("use trash instead".into())
        );
        assert_eq!(ApprovalReply::parse("later"), ApprovalReply::Later);
        assert_eq!(ApprovalReply::parse("s"), ApprovalReply::ApproveSession);
        assert_eq!(ApprovalReply::parse("Always"), ApprovalReply::ApproveAlways);
        for line in ["yes please", "ok", "why?", "yy", "always please", "session 1"] {
            assert_eq!(ApprovalReply::parse(line), ApprovalReply::Unclear, "{line}");
        }
        assert_eq!(
            ApprovalReply::parse(&format!("n {}", "é".repeat(400))),
            ApprovalReply::Deny("é".repeat(250))
        );
    }
}
