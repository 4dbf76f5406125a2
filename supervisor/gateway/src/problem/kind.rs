//! The types of problems.

use http::StatusCode;

/// The type of a problem. Each has a URI, a status and a title that never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// The request has no sense: syntax, a field, a parameter.
    BadRequest,
    /// No credential, or one that does not hold.
    Unauthenticated,
    /// The credential does not permit this.
    Forbidden,
    /// From a page of another site, or under a name that is not ours.
    ForeignSite,
    /// There is no such thing, or it is somebody else's.
    NotFound,
    /// The path has no such method.
    MethodNotAllowed,
    /// The headers or the body were not sent in time.
    RequestTimeout,
    /// It does not fit the state of things, such as a session that is busy.
    Conflict,
    /// `If-Match` names an earlier revision.
    PreconditionFailed,
    /// The body is too large.
    TooLarge,
    /// The body is of a type, or compressed in a way, that is not read.
    UnsupportedMediaType,
    /// The body is read and its content is refused.
    Unprocessable,
    /// Too many requests, or a limit of host or agent.
    TooManyRequests,
    /// A defect of ours.
    Internal,
    /// It is not implemented on this system, or not configured.
    NotImplemented,
    /// A plugin or a provider answered with something unusable.
    BadGateway,
    /// Host or agent do not answer now.
    Unavailable,
    /// Host or agent did not answer in time.
    GatewayTimeout,
}

impl ProblemKind {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::BadRequest,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::ForeignSite,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::Conflict,
        Self::PreconditionFailed,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::Unprocessable,
        Self::TooManyRequests,
        Self::Internal,
        Self::NotImplemented,
        Self::BadGateway,
        Self::Unavailable,
        Self::GatewayTimeout,
    ];

    /// The last part of its URI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BadRequest => "bad-request",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::ForeignSite => "foreign-site",
            Self::NotFound => "not-found",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::RequestTimeout => "request-timeout",
            Self::Conflict => "conflict",
            Self::PreconditionFailed => "precondition-failed",
            Self::TooLarge => "too-large",
            Self::UnsupportedMediaType => "unsupported-media-type",
            Self::Unprocessable => "unprocessable",
            Self::TooManyRequests => "too-many-requests",
            Self::Internal => "internal",
            Self::NotImplemented => "not-implemented",
            Self::BadGateway => "bad-gateway",
            Self::Unavailable => "unavailable",
            Self::GatewayTimeout => "gateway-timeout",
        }
    }

    /// Its URI, by which programs tell it.
    #[must_use]
    pub fn uri(self) -> String {
        format!("urn:talon:problem:{}", self.name())
    }

    /// Its status.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden | Self::ForeignSite => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict => StatusCode::CONFLICT,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            Self::BadGateway => StatusCode::BAD_GATEWAY,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::GatewayTimeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// Its title, for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::BadRequest => "The request cannot be understood",
            Self::Unauthenticated => "A credential is needed",
            Self::Forbidden => "The credential does not permit this",
            Self::ForeignSite => "The request comes from another site",
            Self::NotFound => "There is no such thing",
            Self::MethodNotAllowed => "The path has no such method",
            Self::RequestTimeout => "The request was not sent in time",
            Self::Conflict => "The request does not fit the present state",
            Self::PreconditionFailed => "It has changed meanwhile",
            Self::TooLarge => "The request is too large",
            Self::UnsupportedMediaType => "The body is of a type that is not read",
            Self::Unprocessable => "The request's content is refused",
            Self::TooManyRequests => "A limit is reached",
            Self::Internal => "The gateway failed",
            Self::NotImplemented => "This is not available here",
            Self::BadGateway => "What stands behind the gateway gave an unusable answer",
            Self::Unavailable => "What stands behind the gateway does not answer now",
            Self::GatewayTimeout => "What stands behind the gateway did not answer in time",
        }
    }

    /// The type that stands for a status that a library answered with.
    #[must_use]
    pub(super) fn of_status(status: StatusCode) -> Self {
        let same = |kind: &Self| kind.status() == status;
        let general = if status.is_client_error() { Self::BadRequest } else { Self::Internal };
        Self::ALL.into_iter().find(same).unwrap_or(general)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_type_has_a_name_of_its_own_and_an_error_status() {
        let names: BTreeSet<_> = ProblemKind::ALL.into_iter().map(ProblemKind::name).collect();
        assert_eq!(names.len(), ProblemKind::ALL.len());
        for kind in ProblemKind::ALL {
            assert!(kind.status().is_client_error() || kind.status().is_server_error(), "{kind:?}");
            assert!(!kind.title().is_empty() && kind.uri().starts_with("urn:talon:problem:"));
        }
        assert_eq!(ProblemKind::of_status(StatusCode::IM_A_TEAPOT), ProblemKind::BadRequest);
        assert_eq!(ProblemKind::of_status(StatusCode::FORBIDDEN), ProblemKind::Forbidden);
    }
}
