//! Whom a message is for: the caller itself, or a sender or group of the channel for which the caller's token speaks.

use crate::events::client_message::ChannelMessage;
use crate::events::ids::GROUP;
use crate::identity::{Caller, Scope};
use crate::problem::{Problem, ProblemKind};

/// Who a message says that it is of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Claim<'m> {
    pub(super) channel: Option<&'m str>,
    pub(super) sender: Option<&'m str>,
    pub(super) is_group: bool,
    pub(super) group: Option<&'m str>,
}

impl<'m> From<&'m ChannelMessage> for Claim<'m> {
    fn from(message: &'m ChannelMessage) -> Self {
        Self {
            channel: message.channel.as_deref(),
            sender: message.sender_id.as_deref(),
            is_group: message.is_group,
            group: message.group_id.as_deref(),
        }
    }
}

/// The caller as whom a message counts.
///
/// # Errors
/// It claims to be of somebody for whom this caller does not speak.
pub(super) fn claimed_caller(caller: &Caller, claim: Claim<'_>) -> Result<Caller, Problem> {
    if claim.channel.is_some_and(|channel| channel != &*caller.channel) {
        let detail = format!(
            "this credential is of the channel {}: leave channel out, or use a token of that channel (`talon token create`)",
            caller.channel
        );
        return Err(Problem::new(ProblemKind::Forbidden, detail).with_fields(["channel"]));
    }
    let speaks_for_others = caller.scopes.contain(Scope::Channel);
    match (claim.is_group, claim.group) {
        (true, Some(group)) => caller.for_sender(&format!("{GROUP}{group}")),
        (true, None) => Err(wrong("groupId", "a message of a group names it")),
        (false, Some(_)) => Err(wrong("isGroup", "a message that names a group has isGroup: true")),
        (false, None) => match claim.sender {
            Some(sender) if sender.starts_with(GROUP) => {
                Err(wrong("senderId", "a sender's id does not begin with group:"))
            }
            Some(sender) if speaks_for_others => caller.for_sender(sender),
            Some(sender) if is_own(caller, sender) => Ok(caller.clone()),
            Some(_) => {
                let detail = "this credential speaks for itself alone: leave senderId out, or use a token with the scope channel";
                Err(Problem::new(ProblemKind::Forbidden, detail).with_fields(["senderId"]))
            }
            None if speaks_for_others => Err(wrong("senderId", "a channel's token says whose message it is")),
            None => Ok(caller.clone()),
        },
    }
}

/// By its subject, or by what of it its issuer wrote.
fn is_own(caller: &Caller, sender: &str) -> bool {
    let subject = caller.subject.as_str();
    subject == sender || subject.split_once('/').is_some_and(|(_, own)| own == sender)
}

fn wrong(field: &'static str, detail: &'static str) -> Problem {
    Problem::new(ProblemKind::Unprocessable, detail).with_fields([field])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Subject, Via};

    fn caller(scopes: &[Scope], channel: &str) -> Caller {
        Caller {
            subject: Subject::of("token", "t1").unwrap(),
            scopes: scopes.iter().copied().collect(),
            channel: channel.into(),
            session: None,
            via: Via::Token("t1".into()),
        }
    }

    // Promises: GW-105
    #[test]
    fn only_a_channels_token_speaks_for_others_and_only_in_its_channel() {
        let (own, channel) =
            (caller(&[Scope::Chat, Scope::Admin], "api"), caller(&[Scope::Channel], "telegram"));
        let claim = Claim::default();
        let of = |caller: &Caller, claim| {
            claimed_caller(caller, claim).map(|caller| caller.subject.as_str().to_owned())
        };
        let sender = Claim { sender: Some("42"), channel: Some("telegram"), ..claim };
        let group = Claim { is_group: true, group: Some("7"), ..sender };
        assert_eq!(of(&channel, sender).unwrap(), "gw:telegram/42");
        assert_eq!(of(&channel, group).unwrap(), "gw:telegram/group:7");
        assert_eq!(of(&own, claim).unwrap(), "gw:token/t1");
        assert_eq!(
            of(&own, Claim { sender: Some("t1"), channel: Some("api"), ..claim }).unwrap(),
            "gw:token/t1"
        );
        for (caller, claim) in [
            (&own, sender),
            (&own, Claim { sender: Some("42"), ..claim }),
            (&own, Claim { is_group: true, group: Some("7"), ..claim }),
            (&channel, claim),
            (&channel, Claim { channel: Some("slack"), ..sender }),
            (&channel, Claim { sender: Some("group:7"), ..sender }),
            (&channel, Claim { is_group: true, ..sender }),
            (&channel, Claim { group: Some("7"), ..sender }),
        ] {
            assert!(claimed_caller(caller, claim).is_err(), "{claim:?}");
        }
    }
}
