//! The metadata that says whom a request is for. Host and agent refuse a request of the gateway that lacks one of them.

use http::HeaderValue;
use talon_listen::delegation;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::identity::Caller;

/// Writes a caller into each request.
#[derive(Debug, Clone)]
pub struct Delegation {
    subject: MetadataValue<Ascii>,
    channel: MetadataValue<Ascii>,
    role: MetadataValue<Ascii>,
    origin: MetadataValue<Ascii>,
}

impl Delegation {
    /// For this caller.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        Self {
            subject: value(caller.subject.as_str()),
            channel: value(&caller.channel),
            role: value(caller.role().as_str()),
            origin: value(caller.origin()),
        }
    }

    /// The same, as what a person decides.
    pub(super) fn by_person(self) -> Self {
        Self { origin: value("person"), ..self }
    }
}

impl Interceptor for Delegation {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        metadata.insert(delegation::SUBJECT, self.subject.clone());
        metadata.insert(delegation::CHANNEL, self.channel.clone());
        metadata.insert(delegation::ROLE, self.role.clone());
        metadata.insert(delegation::ORIGIN, self.origin.clone());
        Ok(request)
    }
}

/// Subjects and channels are visible ASCII by their types; what is not becomes empty, which host and agent refuse.
fn value(text: &str) -> MetadataValue<Ascii> {
    let value =
        HeaderValue::from_str(text).ok().and_then(|value| MetadataValue::try_from(value.as_bytes()).ok());
    value.unwrap_or_else(|| MetadataValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Scope, Subject, Via};

    #[test]
    fn a_request_says_whom_it_is_for() {
        let caller = Caller {
            subject: Subject::of("telegram", "42").unwrap(),
            scopes: [Scope::Chat, Scope::Operate].into_iter().collect(),
            channel: "telegram".into(),
            session: None,
            via: Via::Token("t".into()),
        };
        let told = |mut delegation: Delegation| {
            let request = delegation.call(Request::new(())).unwrap();
            ["talon-subject", "talon-channel", "talon-role", "talon-origin"]
                .map(|name| request.metadata().get(name).unwrap().to_str().unwrap().to_owned())
        };
        assert_eq!(told(Delegation::of(&caller)), ["gw:telegram/42", "telegram", "operate", "program"]);
        assert_eq!(told(Delegation::of(&caller).by_person())[3], "person");
    }
}
