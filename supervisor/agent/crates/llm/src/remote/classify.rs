//! Classifies the errors of providers.
//!
//! By status first, since it means the same everywhere; codes and words decide where providers use one status
//! for several errors.

use std::time::Duration;

use super::{Failure, Quote, Report};
use crate::model::ErrorClass;
use crate::wire::stated_wait;

/// How providers describe a transcript that is too long. Only OpenAI has a code for it.
const CONTEXT_WORDS: &[&str] = &[
    "maximum context length",
    "context length exceeded",
    "maximum context size",
    "exceed context limit",
    "exceeds the context",
    "exceed the context",
    "exceeds the available context",
    "exceeds maximum context",
    "exceeds the model's context",
    "context window",
    "prompt is too long",
    "input is too long",
    "reduce the length of the messages",
    "input token count",
];
const CONTEXT_CODES: &[&str] = &["context_length_exceeded", "request_too_large", "exceed_context_size_error"];
const BILLING_CODES: &[&str] = &[
    "insufficient_quota",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_credits",
];
const BILLING_WORDS: &[&str] =
    &["credit balance is too low", "insufficient balance", "insufficient credits", "requires more credits"];
const AUTH_CODES: &[&str] = &[
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "permission_denied",
    "unauthenticated",
    "api_key_invalid",
];
const AUTH_WORDS: &[&str] =
    &["api key not valid", "incorrect api key", "invalid api key", "no auth credentials"];
const RATE_CODES: &[&str] =
    &["rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "too_many_requests"];
const TIMEOUT_CODES: &[&str] = &["timeout_error", "deadline_exceeded"];
const REQUEST_CODES: &[&str] =
    &["invalid_request_error", "not_found_error", "model_not_found", "badrequesterror"];
/// Groq: its model wrote a call that cannot be read; the next try may do better.
const RETRY_CODES: &[&str] = &["tool_use_failed"];
/// What some providers answer with 403 although the key is valid.
const MODERATION_WORDS: &[&str] = &["moderation", "flagged"];

/// The failure for an error report.
pub(crate) fn failure(status: Option<u16>, report: &Report, retry_after: Option<Duration>) -> Failure {
    let status = status.or(report.status);
    let class = class(status, report);
    // Some say it in their text alone.
    let stated = || (class == ErrorClass::RateLimit).then(|| stated_wait(&report.message)).flatten();
    let retry_after = retry_after.or(report.retry_after).or_else(stated);
    Failure { class, status, message: error_message(class, status, report, retry_after), retry_after }
}

/// The failure for an error in the middle of an answer.
pub(crate) fn reported(report: &Report) -> Failure {
    failure(None, report, None)
}

fn class(status: Option<u16>, report: &Report) -> ErrorClass {
    let message = report.message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let about_request = matches!(status, None | Some(400 | 404 | 413 | 422 | 500));
    if report.has_code(CONTEXT_CODES) || status == Some(413) || (about_request && says(CONTEXT_WORDS)) {
        return ErrorClass::Context;
    }
    if status == Some(402) || report.has_code(BILLING_CODES) || says(BILLING_WORDS) {
        return ErrorClass::Billing;
    }
    if status == Some(403) && says(MODERATION_WORDS) {
        return ErrorClass::Request;
    }
    if matches!(status, Some(401 | 403)) || report.has_code(AUTH_CODES) || (about_request && says(AUTH_WORDS))
    {
        return ErrorClass::Auth;
    }
    match status {
        Some(400) if report.has_code(RETRY_CODES) => ErrorClass::Server,
        Some(429) => ErrorClass::RateLimit,
        Some(408 | 504 | 524) => ErrorClass::Timeout,
        // Conflict, Too Early, and Client Closed Request are temporary.
        Some(409 | 425 | 499) => ErrorClass::Server,
        Some(300..=499) => ErrorClass::Request,
        Some(_) => ErrorClass::Server,
        None if report.has_code(RATE_CODES) => ErrorClass::RateLimit,
        None if report.has_code(TIMEOUT_CODES) => ErrorClass::Timeout,
        None if report.has_code(REQUEST_CODES) => ErrorClass::Request,
        None => ErrorClass::Server,
    }
}

fn error_message(
    class: ErrorClass,
    status: Option<u16>,
    report: &Report,
    retry_after: Option<Duration>,
) -> String {
    let said = status_message(status, report);
    let again = match retry_after {
        Some(rest) => format!("it wants to be asked again in {} s", rest.as_secs().max(1)),
        None => "it does not say for how long".to_owned(),
    };
    match class {
        ErrorClass::Auth if status == Some(403) => {
            format!("the key may not do this{said}: allow it at the provider, or use another key or model")
        }
        ErrorClass::Auth => format!("the key was refused{said}: give it one that holds, and reload"),
        ErrorClass::RateLimit => {
            format!("too many requests{said}: {again}; wait, add a key, or configure a fallback")
        }
        ErrorClass::Billing => {
            format!("the account has no credit left{said}: top it up, or use another provider")
        }
        ErrorClass::Context => {
            format!(
                "the conversation is longer than the model takes{said}: compact it, or use a model with a larger context"
            )
        }
        ErrorClass::Timeout => format!("it gave up waiting for its model{said}: ask again"),
        ErrorClass::Network => format!("it could not be reached{said}: check the network and base_url"),
        ErrorClass::Server if report.is_page => {
            format!(
                "something in front of it answered with a web page{said}: check base_url and the proxy, then ask again"
            )
        }
        ErrorClass::Server => {
            format!("it is reached and cannot answer{said}: ask again later, or another provider")
        }
        ErrorClass::Request if report.is_page => {
            format!("a web page answered instead of the provider{said}: check base_url")
        }
        ErrorClass::Request => {
            format!("it does not take the request{said}: check the model's name and what it supports")
        }
    }
}

fn status_message(status: Option<u16>, report: &Report) -> String {
    let quoted = (!report.message.is_empty()).then(|| Quote(&report.message).to_string());
    match (status, quoted) {
        (Some(status), Some(quoted)) => format!(" (HTTP {status}: {quoted})"),
        (Some(status), None) => format!(" (HTTP {status})"),
        (None, Some(quoted)) => format!(" ({quoted})"),
        (None, None) => String::new(),
    }
}
