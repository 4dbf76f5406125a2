//! Vectors of texts.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talon_proto::agent::EmbedRequest;
use tonic::Code;
use utoipa::ToSchema;

use super::fields::{agent_model, body, refuse_the_rest, wrong};
use super::turn::{for_all_sessions, refused};
use crate::access::require_chat;
use crate::app::App;
use crate::identity::Caller;
use crate::input::JsonBody;
use crate::problem::{Problem, ProblemKind};

body! {
    /// Texts, and how their vectors are wanted.
    struct EmbeddingsBody {
        /// talon, or the model of `models.embeddings`.
        need model: String,
        need input: EmbeddedTexts,
        take encoding_format: Option<Encoding>,
        /// How many numbers a vector has, of models that leave the choice.
        take dimensions: Option<u32>,
        /// For the client's own books.
        take user: Option<String>,
    }
}

/// A text, or several.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "it is a text or a list of texts: tokens are not taken, since models count them differently"
)]
enum EmbeddedTexts {
    One(String),
    Many(Vec<String>),
}

/// How a vector is written: as numbers, or as base64 of little-endian 32-bit floats.
#[derive(Debug, Deserialize, Clone, Copy, PartialEq, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Float,
    Base64,
}

/// Vectors in the order of the texts.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EmbeddingList {
    /// list
    object: &'static str,
    data: Vec<Embedding>,
    /// As the request named it.
    model: String,
    usage: EmbeddingUsage,
}

#[derive(Debug, Serialize, ToSchema)]
struct Embedding {
    /// embedding
    object: &'static str,
    /// The text's place.
    index: usize,
    embedding: EncodedVector,
}

/// As `encoding_format` says.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
enum EncodedVector {
    Numbers(Vec<f32>),
    Base64(String),
}

#[derive(Debug, Serialize, ToSchema)]
struct EmbeddingUsage {
    prompt_tokens: u64,
    total_tokens: u64,
}

/// A request, as far as it is honoured.
struct EmbeddingsRequest {
    model: String,
    texts: Vec<String>,
    encoding: Encoding,
    dimensions: u32,
}

impl EmbeddingsRequest {
    fn read(mut body: Map<String, Value>) -> Result<Self, Problem> {
        let EmbeddingsBody { model, input, encoding_format, dimensions, user: _user } =
            EmbeddingsBody::take(&mut body)?;
        refuse_the_rest(body, |_, _| false)?;
        let texts = match input {
            EmbeddedTexts::One(text) => vec![text],
            EmbeddedTexts::Many(texts) => texts,
        };
        let encoding = encoding_format.unwrap_or(Encoding::Float);
        Ok(Self { model, texts, encoding, dimensions: dimensions.unwrap_or_default() })
    }
}

/// Vectors of texts, by the model of `models.embeddings`.
#[utoipa::path(post, path = "/v1/embeddings", tag = "openai", request_body = EmbeddingsBody, responses((status = OK, body = EmbeddingList)))]
pub(super) async fn embed(
    State(app): State<App>,
    caller: Caller,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<Json<EmbeddingList>, Problem> {
    require_chat(&caller)?;
    for_all_sessions(&caller)?;
    let EmbeddingsRequest { model, texts, encoding, dimensions } = EmbeddingsRequest::read(body)?;
    let request = EmbedRequest { texts, model: agent_model(&model), dimensions };
    let made = app.backends.agent(&caller).embed(request).await.map_err(|status| match status.code() {
        Code::FailedPrecondition => Problem::new(ProblemKind::NotImplemented, status.message()),
        Code::InvalidArgument => wrong("input", status.message()),
        _ => refused(&status),
    })?;
    let made = made.into_inner();
    let vectors = made.vectors.into_iter().enumerate();
    let data = vectors.map(|(index, vector)| {
        let embedding = encoded(vector.numbers, encoding);
        Embedding { object: "embedding", index, embedding }
    });
    let usage = EmbeddingUsage { prompt_tokens: made.input_tokens, total_tokens: made.input_tokens };
    Ok(Json(EmbeddingList { object: "list", data: data.collect(), model, usage }))
}

/// A vector as it was asked for; official clients ask for base64.
fn encoded(numbers: Vec<f32>, encoding: Encoding) -> EncodedVector {
    match encoding {
        Encoding::Float => EncodedVector::Numbers(numbers),
        Encoding::Base64 => {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            EncodedVector::Base64(STANDARD.encode(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<EmbeddingsRequest, Problem> {
        EmbeddingsRequest::read(body.as_object().unwrap().clone())
    }

    // Promises: GW-181
    #[test]
    fn a_text_or_texts_are_taken_and_anything_else_is_named() {
        let one =
            read(json!({"model": "m", "input": "a", "encoding_format": "base64", "user": "u"})).unwrap();
        assert!(one.texts == ["a"] && one.encoding == Encoding::Base64);
        assert_eq!(read(json!({"model": "m", "input": ["a", "b"], "dimensions": 3})).unwrap().dimensions, 3);
        for (body, field) in [
            (json!({"input": "a"}), "model"),
            (json!({"model": "m"}), "input"),
            (json!({"model": "m", "input": [1, 2]}), "input"),
            (json!({"model": "m", "input": "a", "encoding_format": "int8"}), "encoding_format"),
            (json!({"model": "m", "input": "a", "truncate": true}), "truncate"),
        ] {
            assert_eq!(read(body.clone()).err().expect("refused").fields(), [field], "{body}");
        }
    }

    // Promises: GW-181
    #[test]
    fn numbers_survive_both_encodings() {
        let numbers = [1.5_f32, -2.25, 0.0];
        assert_eq!(json!(encoded(numbers.to_vec(), Encoding::Float)), json!([1.5, -2.25, 0.0]));
        let EncodedVector::Base64(text) = encoded(numbers.to_vec(), Encoding::Base64) else { panic!() };
        let bytes = STANDARD.decode(text).unwrap();
        let read: Vec<f32> =
            bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
        assert_eq!(read, numbers);
    }
}
