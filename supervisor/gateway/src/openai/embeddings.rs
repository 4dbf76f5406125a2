//! Vectors of texts.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use talon_proto::agent::EmbedRequest;
use tonic::Code;

use super::fields::{agent_model, need, refuse_the_rest, take, wrong};
use super::turn::{for_all_sessions, refused};
use crate::access::require_chat;
use crate::app::App;
use crate::identity::Caller;
use crate::input::JsonBody;
use crate::problem::{Problem, ProblemKind};

#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Float,
    Base64,
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
        let fields = &mut body;
        let model = need(fields, "model")?;
        let input: Value = need(fields, "input")?;
        let texts = match serde_json::from_value(input) {
            Ok(Input::One(text)) => vec![text],
            Ok(Input::Many(texts)) => texts,
            Err(_) => {
                return Err(wrong(
                    "input",
                    "it is a text or a list of texts: tokens are not taken, since models count them differently",
                ));
            }
        };
        let encoding = take(fields, "encoding_format")?.unwrap_or(Encoding::Float);
        let dimensions = take(fields, "dimensions")?.unwrap_or_default();
        let _user: Option<String> = take(fields, "user")?;
        refuse_the_rest(body, |_, _| false)?;
        Ok(Self { model, texts, encoding, dimensions })
    }
}

/// Vectors of texts, by the model of `models.embeddings`.
#[utoipa::path(post, path = "/v1/embeddings", tag = "openai", request_body = Object, responses((status = OK, body = Object)))]
pub(super) async fn embed(
    State(app): State<App>,
    caller: Caller,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<Json<Value>, Problem> {
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
    let data: Vec<Value> = made
        .vectors
        .iter()
        .enumerate()
        .map(|(index, vector)| {
            json!({"object": "embedding", "index": index, "embedding": encoded(&vector.numbers, encoding)})
        })
        .collect();
    let usage = json!({"prompt_tokens": made.input_tokens, "total_tokens": made.input_tokens});
    Ok(Json(json!({"object": "list", "data": data, "model": model, "usage": usage})))
}

/// A vector as numbers, or as base64 of little-endian 32-bit floats, which official clients ask for.
fn encoded(numbers: &[f32], encoding: Encoding) -> Value {
    match encoding {
        Encoding::Float => json!(numbers),
        Encoding::Base64 => {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            json!(STANDARD.encode(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(encoded(&numbers, Encoding::Float), json!([1.5, -2.25, 0.0]));
        let text = encoded(&numbers, Encoding::Base64);
        let bytes = STANDARD.decode(text.as_str().unwrap()).unwrap();
        let read: Vec<f32> =
            bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
        assert_eq!(read, numbers);
    }
}
