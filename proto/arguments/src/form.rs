//! What an action may ask its caller's user for: one flat object, as MCP's elicitation has it.
//!
//! The form is a plugin's, so all of it is bounded; a program that shows it sanitizes its texts.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::secret_field::asks_for_secret;

/// The longest schema, in bytes. A form for a person fills a screen, which is a tenth of it.
pub const MAX_FORM_BYTES: usize = 16 << 10;
/// The most fields. People fill in fewer in the middle of something else; a larger one is no form.
pub const MAX_FIELDS: usize = 32;
/// The most values to choose from in one field: a list of all countries fits.
pub const MAX_CHOICES: usize = 256;
/// The longest name of a field, and the longest value to choose, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// The longest answer, in bytes: one text of some pages. A larger one is refused.
pub const MAX_ANSWER_BYTES: usize = 64 << 10;

/// A schema is none of a form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// It is too large.
    #[error("the form has {0} bytes and may have {MAX_FORM_BYTES}")]
    Large(usize),
    /// It asks for a secret.
    #[error(
        "the field {0:?} asks for a secret, which MCP forbids in a form: give it to the server in its configuration or by a login"
    )]
    Secret(String),
    /// It is not what forms are.
    #[error("the form is no JSON Schema of one flat object: {0}")]
    Schema(String),
}

/// An answer does not fit its form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormAnswerError {
    /// It is too large, or no JSON object.
    #[error("the answer has to be one JSON object of at most {MAX_ANSWER_BYTES} bytes")]
    NoObject,
    /// A field is missing.
    #[error("{0:?} is missing")]
    Missing(String),
    /// The form has no such field.
    #[error("{0:?} is not asked for")]
    Unknown(String),
    /// The value is not of the field's kind.
    #[error("{name:?} has to be {expected}")]
    Kind {
        /// The field.
        name: String,
        /// What it takes.
        expected: String,
    },
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    /// A text.
    Text,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of these.
    One(Vec<Choice>),
    /// Any of these.
    Several(Vec<Choice>),
}

/// A value to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// As it is answered.
    pub value: String,
    /// As it is shown.
    pub title: String,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    /// The title to show; by default the name.
    pub title: String,
    /// More about it; may be empty.
    pub description: String,
    /// What it takes.
    pub kind: FieldKind,
    /// Whether there is no answer without it.
    pub required: bool,
    /// The value that it has if a person leaves it as it is.
    pub default: Option<Value>,
}

/// A form: at most [`MAX_FIELDS`] fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Form {
    /// In the order of the schema.
    pub fields: Vec<Field>,
}

impl Form {
    /// Of a JSON Schema, as text.
    ///
    /// # Errors
    /// [`FormError`]: it is too large, or something else than one object of texts, numbers, booleans and choices.
    pub fn parse(schema: &str) -> Result<Self, FormError> {
        if schema.len() > MAX_FORM_BYTES {
            return Err(FormError::Large(schema.len()));
        }
        match serde_json::from_str(schema) {
            Ok(Value::Object(schema)) => Self::of(&schema),
            _ => Err(FormError::Schema("it is no JSON object".to_owned())),
        }
    }

    fn of(schema: &Map<String, Value>) -> Result<Self, FormError> {
        let broken = |why: &str| Err(FormError::Schema(why.to_owned()));
        if schema.get("type").is_some_and(|word| word != "object") {
            return broken("its type is not object");
        }
        const ELSEWHERE: [&str; 5] = ["$ref", "allOf", "anyOf", "oneOf", "not"];
        if ELSEWHERE.iter().any(|keyword| schema.contains_key(*keyword)) {
            return broken("it is composed of others");
        }
        let none = Map::new();
        let properties = match schema.get("properties") {
            None => &none,
            Some(Value::Object(properties)) => properties,
            Some(_) => return broken("its properties are no object"),
        };
        if properties.len() > MAX_FIELDS {
            return Err(FormError::Schema(format!("it has more than {MAX_FIELDS} fields")));
        }
        let required: BTreeSet<&str> = texts(schema.get("required")).into_iter().flatten().collect();
        let field = |(name, piece): (&String, &Value)| field(name, piece, required.contains(name.as_str()));
        Ok(Self { fields: properties.iter().map(field).collect::<Result<_, _>>()? })
    }

    /// Checks an answer: one JSON object with what is required, nothing else than what is asked for, and each value
    /// of its field's kind. Lengths and ranges are the plugin's to check.
    ///
    /// # Errors
    /// [`FormAnswerError`], for the first field that is wrong.
    pub fn check(&self, answer: &str) -> Result<(), FormAnswerError> {
        if answer.len() > MAX_ANSWER_BYTES {
            return Err(FormAnswerError::NoObject);
        }
        let Ok(Value::Object(answer)) = serde_json::from_str(answer) else {
            return Err(FormAnswerError::NoObject);
        };
        for (name, value) in &answer {
            let Some(field) = self.fields.iter().find(|field| field.name == *name) else {
                return Err(FormAnswerError::Unknown(name.chars().take(MAX_NAME_BYTES).collect()));
            };
            if !field.kind.takes(value) {
                return Err(FormAnswerError::Kind { name: name.clone(), expected: field.kind.expected() });
            }
        }
        match self.fields.iter().find(|field| field.required && !answer.contains_key(&field.name)) {
            Some(missing) => Err(FormAnswerError::Missing(missing.name.clone())),
            None => Ok(()),
        }
    }
}

impl FieldKind {
    /// Whether a value is of this kind.
    #[must_use]
    pub fn takes(&self, value: &Value) -> bool {
        let among = |choices: &[Choice], value: &Value| {
            value.as_str().is_some_and(|text| choices.iter().any(|choice| choice.value == text))
        };
        match self {
            Self::Text => value.is_string(),
            Self::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::One(choices) => among(choices, value),
            Self::Several(choices) => {
                value.as_array().is_some_and(|all| all.iter().all(|value| among(choices, value)))
            }
        }
    }

    /// What it takes, for people.
    #[must_use]
    pub fn expected(&self) -> String {
        let listed = |choices: &[Choice]| {
            let values: Vec<&str> = choices.iter().map(|choice| choice.value.as_str()).collect();
            values.join(", ")
        };
        match self {
            Self::Text => "a text".to_owned(),
            Self::Integer => "an integer".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::One(choices) => format!("one of {}", listed(choices)),
            Self::Several(choices) => format!("a list of some of {}", listed(choices)),
        }
    }
}

fn texts(list: Option<&Value>) -> Option<Vec<&str>> {
    list?.as_array()?.iter().map(Value::as_str).collect()
}

fn field(name: &str, piece: &Value, required: bool) -> Result<Field, FormError> {
    let broken = |why: &str| {
        let shown: String = name.chars().take(MAX_NAME_BYTES).collect();
        Err(FormError::Schema(format!("the field {shown:?} {why}")))
    };
    let plain = !name.chars().any(|c| c.is_whitespace() || c.is_control());
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !plain {
        return broken("has no usable name");
    }
    let Value::Object(piece) = piece else { return broken("has no schema") };
    let word = piece.get("type").and_then(Value::as_str);
    let kind = match (word, choices(piece, ["enum", "oneOf"])) {
        (Some("string") | None, Some(choices)) => FieldKind::One(choices),
        (Some("string"), None) => FieldKind::Text,
        (Some("integer"), None) => FieldKind::Integer,
        (Some("number"), None) => FieldKind::Number,
        (Some("boolean"), None) => FieldKind::Boolean,
        (Some("array"), None) => {
            let items = piece.get("items").and_then(Value::as_object);
            match items.and_then(|items| choices(items, ["enum", "anyOf"])) {
                Some(choices) => FieldKind::Several(choices),
                None => return broken("is a list without choices"),
            }
        }
        _ => return broken("is no text, number, boolean or choice"),
    };
    let is_typed = matches!(kind, FieldKind::Text | FieldKind::Integer | FieldKind::Number);
    if is_typed && asks_for_secret(name, piece) {
        return Err(FormError::Secret(name.to_owned()));
    }
    if let FieldKind::One(choices) | FieldKind::Several(choices) = &kind
        && (choices.is_empty()
            || choices.len() > MAX_CHOICES
            || choices.iter().any(|choice| choice.value.len() > MAX_NAME_BYTES))
    {
        return Err(FormError::Schema(format!(
            "the field {name:?} has no choices, more than {MAX_CHOICES}, or one that is too long"
        )));
    }
    let text = |key: &str| piece.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let title = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| name.to_owned());
    let default = piece.get("default").filter(|value| kind.takes(value)).cloned();
    Ok(Field { name: name.to_owned(), title, description: text("description"), kind, required, default })
}

/// The values of a choice: plain ones, or ones with titles. `None`: it is no choice, or one that cannot be read.
fn choices(schema: &Map<String, Value>, [plain, titled]: [&str; 2]) -> Option<Vec<Choice>> {
    if let Some(values) = schema.get(plain) {
        let titles = texts(schema.get("enumNames")).unwrap_or_default();
        let choice = |(at, value): (usize, &str)| Choice {
            value: value.to_owned(),
            title: titles.get(at).copied().unwrap_or(value).to_owned(),
        };
        return Some(texts(Some(values))?.into_iter().enumerate().map(choice).collect());
    }
    let choice = |one: &Value| {
        let value = one.get("const")?.as_str()?;
        let title = one.get("title").and_then(Value::as_str).unwrap_or(value);
        Some(Choice { value: value.to_owned(), title: title.to_owned() })
    };
    schema.get(titled)?.as_array()?.iter().map(choice).collect()
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
