//! What a tool returns on success.

use serde::Serialize;
use serde_json::Value;
use talon_proto::plugin::{InputRequest, Media};

use crate::ToolError;
use crate::text::cut;

/// How much of a structured answer is repeated as text when the tool gave no text, in bytes. Enough to show a
/// small answer whole; repeating a larger one would only double its size.
const MAX_DIGEST_BYTES: usize = 512;

/// A tool's answer: text, and structured data beside it where there is some.
///
/// ```
/// use talon_sdk::Output;
/// use serde_json::json;
///
/// let output = Output::text("2 files").structured(json!({"files": ["a", "b"]}))?;
/// assert_eq!(output.content(), "2 files");
/// # Ok::<(), talon_sdk::ToolError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    content: String,
    structured: Option<Value>,
    media: Vec<Media>,
    input_request: Option<InputRequest>,
}

/// The parts of an answer.
pub(crate) struct Parts {
    pub(crate) content: String,
    pub(crate) structured: Option<Value>,
    pub(crate) media: Vec<Media>,
    pub(crate) input_request: Option<InputRequest>,
}

impl Output {
    /// A question to the caller's user instead of an answer: its text (at most 4 KiB), and what is asked for. The
    /// caller calls the action again with the answer ([`Context::input_response`](crate::Context::input_response)),
    /// or never. Only for callers that can ask
    /// ([`Context::takes_input_requests`](crate::Context::takes_input_requests)).
    pub fn question(text: impl Into<String>, request: InputRequest) -> Self {
        Self { content: text.into(), input_request: Some(request), ..Self::default() }
    }

    /// What was asked for by [`question`](Self::question).
    #[must_use]
    pub fn input_request(&self) -> Option<&InputRequest> {
        self.input_request.as_ref()
    }

    /// An answer of text.
    pub fn text(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// Adds data that a program can read. It travels as JSON text beside the content.
    ///
    /// # Errors
    /// When the value cannot be JSON (for example a map whose keys are not strings).
    pub fn structured(mut self, value: impl Serialize) -> Result<Self, ToolError> {
        self.structured = Some(serde_json::to_value(value)?);
        Ok(self)
    }

    /// Adds an image, audio, a resource or a link to one. A host passes it on only where its operator grants
    /// that; say in the text what it shows.
    #[must_use]
    pub fn with_media(mut self, media: Media) -> Self {
        self.media.push(media);
        self
    }

    /// What was added by [`with_media`](Self::with_media).
    #[must_use]
    pub fn media(&self) -> &[Media] {
        &self.media
    }

    /// The text.
    #[must_use]
    pub fn content(&self) -> &str {
        &self.content
    }

    /// The data beside the text.
    #[must_use]
    pub fn structured_content(&self) -> Option<&Value> {
        self.structured.as_ref()
    }

    /// An answer of data only, with a short text for readers that do not see the data.
    fn data(value: Value) -> Self {
        Self { content: digest(&value), structured: Some(value), ..Self::default() }
    }

    pub(crate) fn into_parts(self) -> Parts {
        let Self { content, structured, media, input_request } = self;
        Parts { content, structured, media, input_request }
    }
}

/// Small data in full; for larger data its kind and size.
fn digest(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= MAX_DIGEST_BYTES {
        return text;
    }
    let what = match value {
        Value::Array(items) => format!("a list of {} items", items.len()),
        Value::Object(fields) => {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            format!("an object with {}", cut(&names.join(", "), MAX_DIGEST_BYTES / 2))
        }
        _ => "a value".to_owned(),
    };
    format!("{what}, {} bytes of JSON in the structured content", text.len())
}

/// A typed answer: sent as structured content, with a short text derived from it.
///
/// ```
/// use talon_sdk::{Json, ToolError};
///
/// #[derive(serde::Serialize)]
/// struct Weather { degrees: f32 }
///
/// async fn weather() -> Result<Json<Weather>, ToolError> {
///     Ok(Json(Weather { degrees: 21.5 }))
/// }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Json<T>(
    /// The value.
    pub T,
);

/// What a tool may return: text, [`Json`], a [`serde_json::Value`], an [`Output`], or nothing.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not an output",
    note = "return a String, an Output, or wrap something serializable in talon_sdk::Json(…)"
)]
pub trait IntoOutput {
    /// Makes the answer.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    fn into_output(self) -> Result<Output, ToolError>;
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(self)
    }
}

impl IntoOutput for String {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::text(self))
    }
}

impl IntoOutput for &'static str {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::text(self))
    }
}

impl IntoOutput for () {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::text("done"))
    }
}

impl IntoOutput for Value {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::data(self))
    }
}

impl<T: Serialize> IntoOutput for Json<T> {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::data(serde_json::to_value(self.0)?))
    }
}

/// What a tool function's future gives: a `Result` of an [`IntoOutput`] and something that becomes a
/// [`ToolError`].
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not a tool's result",
    note = "return Result<T, talon_sdk::ToolError>, where T is a String, an Output or talon_sdk::Json(…)"
)]
pub trait IntoToolResult {
    /// Makes the result.
    ///
    /// # Errors
    /// The tool's own error, or the output's when it cannot be written as JSON.
    fn into_tool_result(self) -> Result<Output, ToolError>;
}

impl<O: IntoOutput, E: Into<ToolError>> IntoToolResult for Result<O, E> {
    fn into_tool_result(self) -> Result<Output, ToolError> {
        self.map_err(Into::into)?.into_output()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_data_is_its_own_text() {
        let output = Json([1, 2]).into_output().expect("JSON");
        assert_eq!(output.content(), "[1,2]");
        assert_eq!(output.structured_content(), Some(&json!([1, 2])));
    }

    #[test]
    fn large_data_is_described() {
        let output = json!({"rows": vec![0; 1000]}).into_output().expect("JSON");
        assert_eq!(output.content(), "an object with rows, 2010 bytes of JSON in the structured content");
        let output = json!(vec![0; 1000]).into_output().expect("JSON");
        assert!(output.content().starts_with("a list of 1000 items"), "{}", output.content());
    }

    #[test]
    fn what_is_not_json_is_an_error() {
        let odd = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(Json(&odd).into_output().is_err());
        assert!(Output::text("x").structured(&odd).is_err());
    }
}
