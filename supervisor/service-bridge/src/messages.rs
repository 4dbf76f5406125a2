//! Arguments as a request, and an answer as JSON, by the mapping of proto3's JSON.

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::Value;
use talon_bridge::text::{MAX_ERROR_TEXT_BYTES, cut};

/// Why a message cannot be translated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageError {
    /// The arguments are not the request.
    #[error("the arguments are no {message}: {problem}")]
    Arguments { message: String, problem: String },
    /// The answer is not what was described.
    #[error("the answer is no {message}: {problem}; is the descriptor the program's?")]
    Answer { message: String, problem: String },
}

/// The request for arguments as a JSON object.
///
/// Its depth is bounded: `serde_json` ends at 128 levels.
pub(crate) fn request(message: &MessageDescriptor, json: &str) -> Result<Vec<u8>, MessageError> {
    let refused = |error: serde_json::Error| MessageError::Arguments {
        message: message.full_name().to_owned(),
        problem: cut(&error.to_string(), MAX_ERROR_TEXT_BYTES),
    };
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let request = DynamicMessage::deserialize(message.clone(), &mut deserializer).map_err(refused)?;
    deserializer.end().map_err(refused)?;
    Ok(request.encode_to_vec())
}

/// An answer as JSON: bytes as base64, 64-bit integers as strings, fields that have their default left out.
///
/// Its depth is bounded: `prost` ends at 100 levels.
pub(crate) fn answer(message: &MessageDescriptor, answer: Bytes) -> Result<Value, MessageError> {
    let refused = |problem: String| MessageError::Answer {
        message: message.full_name().to_owned(),
        problem: cut(&problem, MAX_ERROR_TEXT_BYTES),
    };
    let decoded =
        DynamicMessage::decode(message.clone(), answer).map_err(|error| refused(error.to_string()))?;
    decoded
        .serialize_with_options(serde_json::value::Serializer, &SerializeOptions::new())
        .map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
