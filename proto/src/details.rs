//! What a status says besides its text, in the form that every gRPC library reads: a `google.rpc.Status` in
//! `grpc-status-details-bin`. Clients in Go take the code from there, so it has to stand in it as well.

use prost::{Message, Name};
use prost_types::Any;
use tonic::{Code, Status};

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

impl QuotaExceeded {
    /// A RESOURCE_EXHAUSTED with this text and these numbers.
    #[must_use]
    pub fn into_status(self, message: impl Into<String>) -> Status {
        let message = message.into();
        let code = Code::ResourceExhausted;
        let detail = Any { type_url: Self::type_url(), value: self.encode_to_vec() };
        let details = RpcStatus { code: code.into(), message: message.clone(), details: vec![detail] };
        Status::with_details(code, message, details.encode_to_vec().into())
    }

    /// The numbers of a status, if a quota is what caused it.
    #[must_use]
    pub fn of(status: &Status) -> Option<Self> {
        if status.code() != Code::ResourceExhausted {
            return None;
        }
        let details = RpcStatus::decode(status.details()).ok()?.details;
        details.iter().find_map(|detail| detail.to_msg().ok())
    }
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
    fn other_statuses_have_none() {
        assert_eq!(QuotaExceeded::of(&Status::resource_exhausted("too many requests")), None);
        let quota = QuotaExceeded::default();
        assert_eq!(QuotaExceeded::of(&Status::unavailable("later")), None);
        let raw = Status::with_details(Code::ResourceExhausted, "raw", quota.encode_to_vec().into());
        assert_eq!(QuotaExceeded::of(&raw), None);
    }
}
