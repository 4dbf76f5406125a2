//! OpenAI's request for vectors of texts, which most servers have.
//!
//! Format: <https://developers.openai.com/api/reference/resources/embeddings>. Vectors are requested in base64
//! (32-bit floats, little endian), a quarter of their size as numbers; servers that do not know that send
//! numbers, which are read, too. The order is that of `index`, not of the list.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Failure;
use crate::limits::MAX_DIMENSIONS;
use crate::model::EmbeddingRequest;

/// The request.
pub(super) fn body(request: &EmbeddingRequest) -> Value {
    let mut body = json!({ "model": request.model, "input": request.texts, "encoding_format": "base64" });
    if let Some(dimensions) = request.dimensions {
        body["dimensions"] = json!(dimensions);
    }
    body
}

/// The vectors of an answer, in the order of the texts.
///
/// # Errors
/// [`Failure`] unless there is one for each text, all have the same length, and all are numbers but zero.
pub(super) fn read(answer: &Value, texts: usize) -> Result<Vec<Vec<f32>>, Failure> {
    let wrong = |what: &str| {
        Failure::unexpected(format!("its vectors cannot be used: {what}; check models.embeddings.model"))
    };
    let Some(data) = answer["data"].as_array() else { return Err(Failure::unreadable(&answer.to_string())) };
    if data.len() != texts {
        return Err(wrong(&format!("{} came for {texts} texts", data.len())));
    }
    let mut vectors = vec![Vec::new(); texts];
    for (place, entry) in data.iter().enumerate() {
        let index = match &entry["index"] {
            Value::Null => Some(place),
            index => index.as_u64().and_then(|index| usize::try_from(index).ok()),
        };
        let free = index.and_then(|index| vectors.get_mut(index)).filter(|vector| vector.is_empty());
        let Some(vector) = free else { return Err(wrong("two are for the same text, or one for none")) };
        *vector = numbers(&entry["embedding"]).ok_or_else(|| wrong("one is neither numbers nor base64"))?;
    }
    let length = vectors.first().map_or(0, Vec::len);
    if length > MAX_DIMENSIONS {
        return Err(Failure::too_large("a vector", MAX_DIMENSIONS * size_of::<f32>()));
    }
    let is_usable = |vector: &Vec<f32>| {
        vector.len() == length && vector.iter().all(|n| n.is_finite()) && vector.iter().any(|n| *n != 0.0)
    };
    if vectors.iter().all(is_usable) {
        Ok(vectors)
    } else {
        Err(wrong("their lengths differ, or one is zero or infinite"))
    }
}

fn numbers(embedding: &Value) -> Option<Vec<f32>> {
    match embedding {
        Value::Array(numbers) => numbers.iter().map(|number| number.as_f64().map(|n| n as f32)).collect(),
        Value::String(text) => {
            let bytes = STANDARD.decode(text).ok()?;
            let (floats, []) = bytes.as_chunks::<4>() else { return None };
            Some(floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base64(numbers: &[f32]) -> String {
        STANDARD.encode(numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn vectors_are_ordered_by_index_in_either_form() {
        let answer = json!({ "object": "list", "data": [
            { "object": "embedding", "index": 1, "embedding": base64(&[0.5, -1.0]) },
            { "object": "embedding", "index": 0, "embedding": [1, 2.5] },
        ]});
        assert_eq!(read(&answer, 2).expect("vectors"), [[1.0, 2.5], [0.5, -1.0]]);
        let unnumbered = json!({ "data": [{ "embedding": [1] }, { "embedding": [2] }] });
        assert_eq!(read(&unnumbered, 2).expect("vectors"), [[1.0], [2.0]]);
    }

    #[test]
    fn half_of_an_answer_is_none() {
        let of = |data: Value| read(&json!({ "data": data }), 2).expect_err("refused").message;
        let one = |index: u64, embedding: Value| json!({ "index": index, "embedding": embedding });
        let good = || one(0, json!([1.0, 0.0]));
        for (data, says) in [
            (json!([good()]), "1 came for 2 texts"),
            (json!([good(), good()]), "same text"),
            (json!([good(), one(7, json!([1.0, 0.0]))]), "one for none"),
            (json!([good(), one(1, json!([1.0]))]), "lengths differ"),
            (json!([good(), one(1, json!([0.0, 0.0]))]), "zero"),
            (json!([good(), one(1, json!([1e300, 0.0]))]), "infinite"),
            (json!([good(), one(1, json!("AAA"))]), "neither numbers nor base64"),
            (json!([good(), one(1, json!(base64(&[f32::NAN, 1.0])))]), "infinite"),
            (json!("none"), "cannot be read"),
        ] {
            let message = of(data);
            assert!(message.contains(says), "{message}");
        }
        let long = json!({ "data": [{ "embedding": vec![1.0; MAX_DIMENSIONS + 1] }] });
        assert!(read(&long, 1).expect_err("refused").message.contains("larger than"));
    }
}
