//! What the action of an API route is asked, and what it answers.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::IntoOutput;
use crate::{Output, ToolError};

/// An HTTP request: the parameter of a function with [`#[api_route]`](macro@crate::api_route). It was authenticated, and its
/// token has the scope of the operator's entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ApiRequest {
    /// The method, such as `POST`.
    pub method: String,
    /// The path, decoded.
    pub path: String,
    /// The parameters of the query, decoded, each with all its values.
    pub query: BTreeMap<String, Vec<String>>,
    /// The headers that the entry lists, in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body as it travels; read it with [`text`](Self::text) or [`bytes`](Self::bytes).
    pub body: String,
    /// How the body travels.
    pub body_encoding: BodyEncoding,
    /// Whose request it is, as `gw:issuer/subject`.
    pub subject: String,
}

/// How bytes travel as a JSON text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyEncoding {
    /// As they are: UTF-8.
    #[default]
    Text,
    /// As base64 with padding.
    Base64,
}

impl ApiRequest {
    /// The first value of a parameter of the query.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name)?.first().map(String::as_str)
    }

    /// The body's bytes.
    ///
    /// # Errors
    /// When it is said to be base64 and is none: a defect of the host.
    pub fn bytes(&self) -> Result<Vec<u8>, ToolError> {
        match self.body_encoding {
            BodyEncoding::Text => Ok(self.body.clone().into_bytes()),
            BodyEncoding::Base64 => {
                STANDARD.decode(&self.body).map_err(|_| ToolError::new("the body is no base64"))
            }
        }
    }

    /// The body as text; `None` if it is none.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        (self.body_encoding == BodyEncoding::Text).then_some(self.body.as_str())
    }
}

/// An HTTP answer. An error of the function becomes 502, without its text.
///
/// ```
/// use serde_json::json;
/// use talon_sdk::{ApiRequest, ApiResponse, ToolError};
///
/// /// Says who asks.
/// #[talon_sdk::api_route(read_only)]
/// async fn whoami(asked: ApiRequest) -> Result<ApiResponse, ToolError> {
///     ApiResponse::json(200, &json!({"subject": asked.subject}))
/// }
/// # assert_eq!(whoami().action().roles, ["api_route"]);
/// ```
#[must_use = "nothing is answered until it is returned"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApiResponse {
    status: u16,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    body: String,
    #[serde(skip_serializing_if = "is_text")]
    body_encoding: BodyEncoding,
}

fn is_text(encoding: &BodyEncoding) -> bool {
    *encoding == BodyEncoding::Text
}

impl ApiResponse {
    /// An answer without a body. The status is from 200 to 599.
    pub fn new(status: u16) -> Self {
        Self { status, headers: BTreeMap::new(), body: String::new(), body_encoding: BodyEncoding::Text }
    }

    /// An answer of plain text.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::new(status) }.header("content-type", "text/plain; charset=utf-8")
    }

    /// An answer of JSON.
    ///
    /// # Errors
    /// When the value cannot be JSON (for example a map whose keys are not strings).
    pub fn json(status: u16, value: &impl Serialize) -> Result<Self, ToolError> {
        let body = serde_json::to_string(value)?;
        Ok(Self { body, ..Self::new(status) }.header("content-type", "application/json"))
    }

    /// An answer of bytes.
    pub fn bytes(status: u16, content_type: &str, body: &[u8]) -> Self {
        let body = STANDARD.encode(body);
        Self { body, body_encoding: BodyEncoding::Base64, ..Self::new(status) }
            .header("content-type", content_type)
    }

    /// Sets a header. Hosts pass on those that describe the body or its use, and most that begin with `x-`.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.insert(name.to_ascii_lowercase(), value.into());
        self
    }
}

impl IntoOutput for ApiResponse {
    fn into_output(self) -> Result<Output, ToolError> {
        Output::text(format!("status {}", self.status)).structured(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_response_is_structured_content() {
        let said =
            |response: ApiResponse| response.into_output().expect("JSON").structured_content().cloned();
        assert_eq!(
            said(ApiResponse::new(204).header("ETag", "7")),
            Some(json!({"status": 204, "headers": {"etag": "7"}}))
        );
        assert_eq!(
            said(ApiResponse::bytes(200, "image/png", b"\xff\x00")),
            Some(json!({
                "status": 200, "headers": {"content-type": "image/png"}, "body": "/wA=", "body_encoding": "base64"
            }))
        );
    }

    #[test]
    fn a_body_is_text_or_bytes() {
        let text = ApiRequest { body: "é".to_owned(), ..ApiRequest::default() };
        assert_eq!((text.text(), text.bytes().expect("bytes")), (Some("é"), "é".as_bytes().to_vec()));
        let bytes = ApiRequest {
            body: "/wA=".to_owned(),
            body_encoding: BodyEncoding::Base64,
            ..ApiRequest::default()
        };
        assert_eq!((bytes.text(), bytes.bytes().expect("bytes")), (None, b"\xff\x00".to_vec()));
        let wrong = ApiRequest { body: "???".to_owned(), ..bytes };
        assert!(wrong.bytes().is_err());
    }
}
