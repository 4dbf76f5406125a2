//! What a status says besides its text, in the form that every gRPC library reads: a `google.rpc.Status` in
//! `grpc-status-details-bin`. Clients in Go take the code from there, so it has to stand in it as well.

use prost::{Message, Name};
use prost_types::Any;
use tonic::{Code, Status};

use crate::agent::CompletionRefusal;
use crate::model::Refusal;
use crate::state::QuotaExceeded;

/// `google.rpc.Status`, whose three fields have been the same since it was published.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

impl Name for QuotaExceeded {
    const NAME: &'static str = "QuotaExceeded";
    const PACKAGE: &'static str = "talon.state.v1";

    fn type_url() -> String {
        format!("type.googleapis.com/{}", Self::full_name())
    }
}

impl Name for Refusal {
    const NAME: &'static str = "Refusal";
    const PACKAGE: &'static str = "talon.model.v1";

    fn type_url() -> String {
        format!("type.googleapis.com/{}", Self::full_name())
    }
}

impl Name for CompletionRefusal {
    const NAME: &'static str = "CompletionRefusal";
    const PACKAGE: &'static str = "talon.agent.v1";

    fn type_url() -> String {
        format!("type.googleapis.com/{}", Self::full_name())
    }
}

impl CompletionRefusal {
    /// A status with this text, reason and field.
    #[must_use]
    pub fn into_status(self, code: Code, message: impl Into<String>) -> Status {
        with_detail(code, message.into(), &self)
    }

    /// The reason and field of a status, if the agent gave them.
    #[must_use]
    pub fn of(status: &Status) -> Option<Self> {
        detail_of(status)
    }
}

impl QuotaExceeded {
    /// A RESOURCE_EXHAUSTED with this text and these numbers.
    #[must_use]
    pub fn into_status(self, message: impl Into<String>) -> Status {
        with_detail(Code::ResourceExhausted, message.into(), &self)
    }

    /// The numbers of a status, if a quota is what caused it.
    #[must_use]
    pub fn of(status: &Status) -> Option<Self> {
        if status.code() != Code::ResourceExhausted {
            return None;
        }
        detail_of(status)
    }
}

impl Refusal {
    /// A status with this text and this reason.
    #[must_use]
    pub fn into_status(self, code: Code, message: impl Into<String>) -> Status {
        with_detail(code, message.into(), &self)
    }

    /// The reason of a status, if the host gave one.
    #[must_use]
    pub fn of(status: &Status) -> Option<Self> {
        detail_of(status)
    }
}

fn with_detail<T: Message + Name>(code: Code, message: String, detail: &T) -> Status {
    let detail = Any { type_url: T::type_url(), value: detail.encode_to_vec() };
    let details = RpcStatus { code: code.into(), message: message.clone(), details: vec![detail] };
    Status::with_details(code, message, details.encode_to_vec().into())
}

fn detail_of<T: Message + Name + Default>(status: &Status) -> Option<T> {
    let details = RpcStatus::decode(status.details()).ok()?.details;
    details.iter().find_map(|detail| detail.to_msg().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_travel_in_a_status() {
        let quota = QuotaExceeded { resource: "keys".to_owned(), used: 9, limit: 9, wanted: 10 };
        let status = quota.clone().into_status("no more keys");
        assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "no more keys"));
        assert_eq!(QuotaExceeded::of(&status), Some(quota));
        let inner = RpcStatus::decode(status.details()).expect("a google.rpc.Status");
        assert_eq!((inner.code, inner.message.as_str()), (8, "no more keys"));
        assert_eq!(inner.details[0].type_url, "type.googleapis.com/talon.state.v1.QuotaExceeded");
    }

    #[test]
    fn reasons_travel_in_a_status() {
        let refusal = Refusal { reason: "unknown_model".to_owned() };
        let status = refusal.clone().into_status(Code::NotFound, "no such model");
        assert_eq!((status.code(), status.message()), (Code::NotFound, "no such model"));
        assert_eq!(Refusal::of(&status), Some(refusal));
        assert_eq!(Refusal::of(&Status::not_found("no such model")), None);
    }

    #[test]
    fn other_statuses_have_none() {
        assert_eq!(QuotaExceeded::of(&Status::resource_exhausted("too many requests")), None);
        let quota = QuotaExceeded::default();
        assert_eq!(QuotaExceeded::of(&Status::unavailable("later")), None);
        let raw = Status::with_details(Code::ResourceExhausted, "raw", quota.encode_to_vec().into());
        assert_eq!(QuotaExceeded::of(&raw), None);
    }
}
