//! The values of one record as parsed, each with its position.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use super::excerpt::excerpt;
use super::limits::{MAX_JSON_DEPTH, MAX_RECORD_WEIGHT};
use super::scalar;

/// A position in a text: line and column in characters, counted from 1. Line 0 is the file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// A problem, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) at: Mark,
    pub(super) reason: String,
}

/// A value.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: Mark,
    pub(super) kind: NodeKind,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    /// A scalar without its quotes.
    Scalar { text: String, style: ScalarForm },
    /// Values.
    List(Vec<Node>),
    /// Keys and values in their order; a key may stand twice.
    Map(Vec<(Node, Node)>),
    /// A skipped value that the store cannot hold: how many values there were.
    Skipped(usize),
    /// A value that is larger than a record may be, and therefore not kept.
    TooLarge,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScalarForm {
    /// Without quotes: `5` may be a number and `null` may be null.
    Plain,
    /// A text, whatever it looks like.
    Text,
    /// Base64 of bytes.
    Binary,
    /// With an unknown tag.
    Tagged(String),
}

/// Writers differ in the padding at the end.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Node {
    /// Whether it is `null`, or no value at all.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.kind, NodeKind::Scalar { text, style: ScalarForm::Plain } if scalar::is_null(text))
    }

    /// Whether it is null, or an empty text, list or map.
    pub(super) fn is_empty(&self) -> bool {
        match &self.kind {
            NodeKind::Scalar { text, .. } => text.is_empty() || self.is_null(),
            NodeKind::List(items) => items.is_empty(),
            NodeKind::Map(entries) => entries.is_empty(),
            NodeKind::Skipped(values) => *values == 0,
            NodeKind::TooLarge => false,
        }
    }

    pub(super) fn is_scalar(&self) -> bool {
        matches!(self.kind, NodeKind::Scalar { .. })
    }

    /// The bytes of a scalar. Null gives no bytes, as in the founding files.
    pub(super) fn bytes(self) -> Result<Vec<u8>, Problem> {
        let null = self.is_null();
        let at = self.at;
        match self.kind {
            NodeKind::Scalar { .. } if null => Ok(Vec::new()),
            NodeKind::Scalar { text, style: ScalarForm::Plain | ScalarForm::Text } => Ok(text.into_bytes()),
            NodeKind::Scalar { text, style: ScalarForm::Binary } => {
                let packed: String = text.split_ascii_whitespace().collect();
                BASE64
                    .decode(packed)
                    .map_err(|error| Problem { at, reason: format!("is not base64: {error}") })
            }
            NodeKind::Scalar { style: ScalarForm::Tagged(tag), .. } => {
                Err(Problem { at, reason: format!("has a tag that is not known here: {}", excerpt(&tag)) })
            }
            NodeKind::TooLarge => Err(too_large(at)),
            NodeKind::List(_) | NodeKind::Map(_) | NodeKind::Skipped(_) => {
                Err(Problem { at, reason: "must be a text, not a list or a map".into() })
            }
        }
    }

    /// The text of a scalar. Numbers and the like keep their spelling.
    pub(super) fn text(self) -> Result<String, Problem> {
        let at = self.at;
        String::from_utf8(self.bytes()?)
            .map_err(|_| Problem { at, reason: "must be text, and its bytes are not UTF-8".into() })
    }

    /// A whole number.
    pub(super) fn number(self) -> Result<u64, Problem> {
        let at = self.at;
        let text = self.text()?;
        text.parse().ok().filter(|number| i64::try_from(*number).is_ok()).ok_or_else(|| Problem {
            at,
            reason: format!("must be a whole number from 0 to {}, not {}", i64::MAX, excerpt(&text)),
        })
    }

    /// The entries of a map; each key must be a text and must not repeat.
    pub(super) fn fields(self, what: &str) -> Result<Vec<(String, Node)>, Problem> {
        let entries = match self.kind {
            NodeKind::Map(entries) => entries,
            NodeKind::TooLarge => return Err(too_large(self.at)),
            _ => {
                return Err(Problem {
                    at: self.at,
                    reason: format!("{what} must be a map of keys and values"),
                });
            }
        };
        let mut fields: Vec<(String, Node)> = Vec::with_capacity(entries.len());
        let mut seen = std::collections::HashSet::new();
        for (key, value) in entries {
            let at = key.at;
            let key = key
                .text()
                .map_err(|problem| Problem { reason: format!("a key {}", problem.reason), ..problem })?;
            if !seen.insert(key.clone()) {
                return Err(Problem { at, reason: format!("the key {} stands twice", excerpt(&key)) });
            }
            fields.push((key, value));
        }
        Ok(fields)
    }

    /// The entries of a map, unchecked; empty for other values.
    pub(super) fn entries(self) -> Vec<(Node, Node)> {
        if let NodeKind::Map(entries) = self.kind { entries } else { Vec::new() }
    }

    /// The values of a list. Null is an empty one.
    pub(super) fn items(self, what: &str) -> Result<Vec<Node>, Problem> {
        if self.is_null() {
            return Ok(Vec::new());
        }
        match self.kind {
            NodeKind::List(items) => Ok(items),
            NodeKind::TooLarge => Err(too_large(self.at)),
            _ => Err(Problem { at: self.at, reason: format!("{what} must be a list") }),
        }
    }

    /// The value as JSON.
    pub(super) fn json(self) -> Result<Value, Problem> {
        self.json_within(MAX_JSON_DEPTH)
    }

    fn json_within(self, depth: usize) -> Result<Value, Problem> {
        let at = self.at;
        if depth == 0 && !self.is_scalar() {
            return Err(Problem { at, reason: format!("is nested more than {MAX_JSON_DEPTH} levels deep") });
        }
        match self.kind {
            NodeKind::Scalar { text, style: ScalarForm::Plain } => Ok(scalar::resolve(text)),
            NodeKind::Scalar { .. } => self.text().map(Value::String),
            NodeKind::List(items) => {
                let items = items.into_iter().map(|item| item.json_within(depth - 1));
                items.collect::<Result<_, _>>().map(Value::Array)
            }
            NodeKind::Map(_) => {
                let fields = self.fields("this")?.into_iter();
                let fields = fields.map(|(key, value)| Ok((key, value.json_within(depth - 1)?)));
                fields.collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
            NodeKind::Skipped(_) => Ok(Value::Null),
            NodeKind::TooLarge => Err(too_large(at)),
        }
    }
}

pub(super) fn too_large(at: Mark) -> Problem {
    Problem { at, reason: format!("is larger than a record may be: about {MAX_RECORD_WEIGHT} bytes") }
}
