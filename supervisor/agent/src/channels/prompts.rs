//! Calls and questions that wait for a person, as a channel shows them.

use std::fmt::Write as _;
use std::sync::Arc;

use talon_extensions::contract::ChannelButton;
use talon_proto::agent::Approval;

use super::outbound::OutboundText;
use super::pending::PendingMessage;
use super::service::Channels;

/// The most characters of arguments that are shown. What is cut can be read with `talon approval list`.
const MAX_SHOWN_CHARS: usize = 1500;
/// The most characters on a button.
const MAX_LABEL_CHARS: usize = 48;
/// The most answers that are buttons.
const MAX_CHOICES: usize = 8;
/// How many characters of the digest a button has: enough that what it was made for is what it decides.
pub(super) const DIGEST_CHARS: usize = 12;

/// What a button decides, as its id says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice<'b> {
    Allow {
        approval: &'b str,
        digest: &'b str,
    },
    Deny {
        approval: &'b str,
        digest: &'b str,
    },
    /// The suggested answer of this number.
    Answer {
        approval: &'b str,
        number: usize,
    },
}

impl<'b> Choice<'b> {
    /// The id of what it decides.
    pub(super) fn approval(&self) -> &'b str {
        match *self {
            Self::Allow { approval, .. } | Self::Deny { approval, .. } | Self::Answer { approval, .. } => {
                approval
            }
        }
    }

    /// What is done, as the audit log has it.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Allow { .. } => "allow_approval",
            Self::Deny { .. } => "deny_approval",
            Self::Answer { .. } => "answer_approval",
        }
    }
}

/// What a button decides; `None` if it is none of ours.
pub(super) fn choice(button: &str) -> Option<Choice<'_>> {
    let mut parts = button.split(':');
    let (kind, approval, more) = (parts.next()?, parts.next()?, parts.next()?);
    if approval.is_empty() || parts.next().is_some() {
        return None;
    }
    match kind {
        "a" => Some(Choice::Allow { approval, digest: more }),
        "d" => Some(Choice::Deny { approval, digest: more }),
        "c" => Some(Choice::Answer { approval, number: more.parse().ok()? }),
        _ => None,
    }
}

/// Whether something waits that a text answers: a question of the model's, never a call, a plan or a plugin's form.
pub(super) fn is_open_question(approval: &Approval) -> bool {
    approval.state == PENDING
        && !approval.question.is_empty()
        && approval.form.is_empty()
        && approval.plan.is_none()
}

/// Whether a question, which waited when this text was about to answer it, has it as its answer. One that is gone was answered.
pub(super) fn is_answered_with(question: Option<&Approval>, text: &str) -> bool {
    question.is_none_or(|question| question.state != PENDING && question.answer == text.trim())
}

/// What waits.
pub(super) const PENDING: &str = "pending";

/// The text and the buttons of what waits.
pub(super) fn prompt(approval: &Approval) -> (String, Vec<ChannelButton>) {
    let button =
        |id: String, label: &str| ChannelButton { id, label: label.chars().take(MAX_LABEL_CHARS).collect() };
    if is_open_question(approval) {
        let choices = approval.choices.iter().take(MAX_CHOICES).enumerate();
        let buttons =
            choices.map(|(number, label)| button(format!("c:{}:{number}", approval.id), label)).collect();
        return (approval.question.clone(), buttons);
    }
    if !approval.question.is_empty() {
        let text = format!("{}\n\nAnswer with: talon approval answer {}", approval.question, approval.id);
        return (text, Vec::new());
    }
    let digest: String = approval.digest.chars().take(DIGEST_CHARS).collect();
    let mut text = format!("⚠️ The assistant wants to run: {}.{}", approval.plugin, approval.action);
    let mut names: Vec<_> = approval.args.iter().collect();
    names.sort();
    let mut shown = String::new();
    for (name, value) in names {
        // Writing to a text cannot fail.
        let _ = write!(shown, "\n{name}: {value}");
    }
    let whole = shown.chars().count();
    if whole > MAX_SHOWN_CHARS {
        shown = shown.chars().take(MAX_SHOWN_CHARS).collect();
        let _ = write!(shown, "…\n({} more characters: talon approval list)", whole - MAX_SHOWN_CHARS);
    }
    text.push_str(&shown);
    let buttons = [("a", "Allow"), ("d", "Deny")];
    (text, buttons.map(|(kind, label)| button(format!("{kind}:{}:{digest}", approval.id), label)).into())
}

impl Channels {
    /// Shows what waits in a message's turn, once.
    pub(super) async fn show(self: &Arc<Self>, message: &mut PendingMessage, approval: &Approval) {
        if approval.state != PENDING || message.shown.contains(&approval.id) {
            return;
        }
        let (text, buttons) = prompt(approval);
        let outbound = OutboundText {
            channel: &message.channel,
            conversation: &message.conversation,
            id: &approval.id,
            text: &text,
            buttons: &buttons,
        };
        self.deliver(outbound, None).await;
        message.shown.push(approval.id.clone());
        self.keep(message).await;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(value: &str) -> Approval {
        Approval {
            id: "01J00000000000000000000000".to_owned(),
            plugin: "shell".to_owned(),
            action: "run".to_owned(),
            args: [("command".to_owned(), value.to_owned())].into(),
            state: PENDING.to_owned(),
            digest: "0123456789abcdef".repeat(4),
            ..Approval::default()
        }
    }

    // Promises: GW-207
    #[test]
    fn a_call_is_shown_with_its_arguments_and_two_buttons() {
        let (text, buttons) = prompt(&call("rm -r build"));
        assert_eq!(text, "⚠️ The assistant wants to run: shell.run\ncommand: rm -r build");
        assert_eq!(buttons.iter().map(|button| button.label.as_str()).collect::<Vec<_>>(), ["Allow", "Deny"]);
        let approval = "01J00000000000000000000000";
        assert_eq!(choice(&buttons[0].id), Some(Choice::Allow { approval, digest: "0123456789ab" }));
        assert_eq!(choice(&buttons[1].id), Some(Choice::Deny { approval, digest: "0123456789ab" }));
        let long = prompt(&call(&"x".repeat(5000))).0;
        assert!(long.contains("more characters: talon approval list"), "{long}");
        for other in ["", "a:", "a::x", "x:1:2", "a:1:2:3", "c:1:x"] {
            assert_eq!(choice(other), None, "{other}");
        }
    }

    // Promises: GW-208
    #[test]
    fn a_question_is_answered_by_a_text_and_a_call_or_a_form_never_is() {
        let question =
            Approval { question: "Which one?".to_owned(), choices: vec!["this".to_owned()], ..call("") };
        assert!(is_open_question(&question) && !is_open_question(&call("")));
        let (text, buttons) = prompt(&question);
        assert_eq!((text.as_str(), buttons[0].label.as_str()), ("Which one?", "this"));
        let form = Approval { form: "{}".to_owned(), ..question.clone() };
        let plan = Approval { plan: Some(Default::default()), ..question.clone() };
        let answered = Approval { state: "answered".to_owned(), ..question };
        assert!(!is_open_question(&form) && !is_open_question(&plan) && !is_open_question(&answered));
        assert!(prompt(&plan).1.is_empty());
    }

    // Promises: GW-208
    #[test]
    fn a_text_has_answered_a_question_only_if_that_has_it_as_its_answer() {
        let question = Approval { question: "Which one?".to_owned(), ..call("") };
        let ended = |answer: &str| Approval {
            state: "approved".to_owned(),
            answer: answer.to_owned(),
            ..question.clone()
        };
        assert!(is_answered_with(None, "this") && is_answered_with(Some(&ended("this")), " this\n"));
        // A process was killed before it answered; it expired, or somebody else was faster.
        for other in [question.clone(), ended(""), ended("that")] {
            assert!(!is_answered_with(Some(&other), "this"), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn a_button_fits_every_service(value in ".{0,3000}") {
            let (_, buttons) = prompt(&call(&value));
            prop_assert!(buttons.iter().all(|button| button.id.len() <= 64));
        }
    }
}
