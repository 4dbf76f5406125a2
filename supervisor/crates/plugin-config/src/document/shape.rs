//! The schema of a type, in the form that the checks and the reference page use.
//!
//! It is derived from the types through schemars, so that each key, its type and its documentation are
//! written once.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::units::{BYTES_FORMAT, DURATION_FORMAT, Duration, UID_RANGE_FORMAT};

/// The schema format of an amount in dollars.
const DOLLARS_FORMAT: &str = "dollars";
/// The schema format of an IP address with a port.
const SOCKET_ADDRESS_FORMAT: &str = "socket-address";

/// The schema of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// The kind of value.
    pub kind: ShapeKind,
    /// Whether it may be `null`, which removes a default.
    pub nullable: bool,
}

/// The kinds of value.
#[derive(Debug, Clone, PartialEq)]
pub enum ShapeKind {
    /// Fixed keys.
    Object(Vec<Field>),
    /// Keys that the operator chooses.
    Map {
        /// What the keys name.
        key: KeyKind,
        /// The schema of each value.
        value: Box<Shape>,
    },
    /// Any number of values with the same schema.
    List(Box<Shape>),
    /// Exactly one of these keys.
    OneOf(Vec<Field>),
    /// A length of time with its unit.
    Duration,
    /// A duration greater than zero, and at most this long.
    BoundedDuration {
        /// The longest.
        longest: Duration,
        /// Whether a bare number is milliseconds. Otherwise a unit is needed.
        bare_milliseconds: bool,
    },
    /// An amount in dollars, as a decimal number.
    Dollars {
        /// The most decimals.
        decimals: usize,
        /// The largest amount.
        most: u64,
    },
    /// A number of bytes.
    Bytes,
    /// An inclusive range of uids.
    UidRange,
    /// An IP address with a port.
    SocketAddress,
    /// A whole number.
    Integer {
        /// The smallest.
        min: i128,
        /// The largest.
        max: i128,
    },
    /// A number from 0 up that may have decimals.
    Number {
        /// The largest.
        max: u64,
    },
    /// `true` or `false`.
    Bool,
    /// A text.
    Text,
    /// A path.
    Path,
    /// A path, or the bare name of a program.
    Program,
    /// A text that is never repeated in messages.
    Secret,
    /// One of these words.
    Choice(Vec<Choice>),
    /// Any JSON value.
    Any,
}

/// What the keys of a map name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A plugin.
    Plugin,
    /// A provider of models.
    Provider,
    /// One of a plugin's actions.
    Action,
    /// A credential, by the name that the plugin knows.
    Credential,
    /// Any name that the operator chooses.
    Free,
}

/// One fixed key.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The key.
    pub name: String,
    /// Other spellings of it.
    pub aliases: Vec<String>,
    /// Paragraphs: the first describes the key, the others explain it.
    pub doc: String,
    /// Whether an entry without it is incomplete. Keys outside of maps and lists always have a default.
    pub required: bool,
    /// The default from the schema, for keys of entries.
    pub default: Option<Value>,
    /// The default in words, if it depends on the machine or on other keys.
    pub default_text: Option<String>,
    /// An example value.
    pub example: Option<Value>,
    /// Whether values below it may be secrets. Then only the name of their key can show it.
    pub may_hold_secrets: bool,
    /// The schema of its value.
    pub shape: Shape,
}

/// One allowed word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The word.
    pub word: String,
    /// The value that it stands for: the word itself, or `true` or `false`.
    pub value: Value,
    /// Its description; empty if there is none.
    pub doc: String,
}

impl Shape {
    /// The shape of the type `T`.
    #[must_use]
    pub fn of<T: JsonSchema>() -> Self {
        shape(&root_schema::<T>())
    }
}

/// The JSON Schema of a config file for `T`, for editors. The file is merged over the defaults of `T`.
#[must_use]
pub fn file_schema<T: JsonSchema>() -> Value {
    let mut schema = root_schema::<T>();
    adapt_for_files(&mut schema, true);
    schema
}

fn root_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Adapts the schema of a type to files. The types hold effective values, in which every key is present. A
/// file may leave out every key with a default: outside of entries (`always_there`) that is every key. It
/// must not have unknown keys.
fn adapt_for_files(schema: &mut Value, always_there: bool) {
    let Some(map) = schema.as_object_mut() else { return };
    if map.contains_key("properties") {
        map.insert("additionalProperties".to_owned(), false.into());
        if always_there {
            map.remove("required");
        }
    }
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(|property| adapt_for_files(property, always_there));
    }
    for inside_an_entry in ["additionalProperties", "items"] {
        if let Some(schema) = map.get_mut(inside_an_entry) {
            adapt_for_files(schema, false);
        }
    }
    if let Some(options) = map.get_mut("anyOf").and_then(Value::as_array_mut) {
        options.iter_mut().for_each(|option| adapt_for_files(option, false));
    }
}

fn shape(schema: &Value) -> Shape {
    // `Option` of a type without a plain schema type is written as "this or null".
    if let Some(options) = schema.get("anyOf").and_then(Value::as_array) {
        let is_null = |option: &&Value| option.get("type").and_then(Value::as_str) == Some("null");
        if let Some(inner) = options.iter().find(|option| !is_null(option)) {
            return Shape { nullable: options.iter().any(|o| is_null(&o)), ..shape(inner) };
        }
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    Shape { kind: kind(schema, &types), nullable: types.contains(&"null") }
}

fn kind(schema: &Value, types: &[&str]) -> ShapeKind {
    if let Some(choices) = choices(schema) {
        return ShapeKind::Choice(choices);
    }
    if let Some(keys) = one_of(schema) {
        return ShapeKind::OneOf(keys);
    }
    if schema.get("x-secret").is_some() {
        return ShapeKind::Secret;
    }
    match schema.get("format").and_then(Value::as_str) {
        Some(DURATION_FORMAT) => {
            let longest = schema.get("x-longest-seconds").and_then(Value::as_u64).map(Duration::from_secs);
            let bare_milliseconds = schema.get("x-bare-unit").and_then(Value::as_str) == Some("ms");
            return longest.map_or(ShapeKind::Duration, |longest| ShapeKind::BoundedDuration {
                longest,
                bare_milliseconds,
            });
        }
        Some(DOLLARS_FORMAT) => {
            let number = |key: &str| schema.get(key).and_then(Value::as_u64);
            let decimals =
                number("x-decimals").and_then(|decimals| usize::try_from(decimals).ok()).unwrap_or(2);
            return ShapeKind::Dollars { decimals, most: number("maximum").unwrap_or(u64::MAX) };
        }
        Some(BYTES_FORMAT) => return ShapeKind::Bytes,
        Some(UID_RANGE_FORMAT) => return ShapeKind::UidRange,
        Some(SOCKET_ADDRESS_FORMAT) => return ShapeKind::SocketAddress,
        Some("path") => return ShapeKind::Path,
        Some("program") => return ShapeKind::Program,
        _ => {}
    }
    let is = |name: &str| types.contains(&name);
    if is("object") {
        return object(schema);
    }
    if is("array") {
        return ShapeKind::List(Box::new(schema.get("items").map_or(ANY, shape)));
    }
    if is("integer") {
        return integer(schema);
    }
    if is("number") {
        return ShapeKind::Number { max: schema.get("maximum").and_then(Value::as_u64).unwrap_or(u64::MAX) };
    }
    if is("boolean") {
        return ShapeKind::Bool;
    }
    if is("string") {
        return ShapeKind::Text;
    }
    ShapeKind::Any
}

const ANY: Shape = Shape { kind: ShapeKind::Any, nullable: true };

fn choices(schema: &Value) -> Option<Vec<Choice>> {
    let choice = |value: &Value, doc: &str| {
        let word = match value {
            Value::String(word) => word.clone(),
            Value::Bool(value) => value.to_string(),
            _ => return None,
        };
        Some(Choice { word, value: value.clone(), doc: paragraphs(doc) })
    };
    if let Some(options) = schema.get("oneOf").and_then(Value::as_array) {
        return options
            .iter()
            .map(|option| choice(option.get("const")?, text(option, "description")))
            .collect();
    }
    schema
        .get("enum")?
        .as_array()?
        .iter()
        .filter(|word| !word.is_null())
        .map(|word| choice(word, ""))
        .collect()
}

/// serde's form of an enum whose variants hold values: a map with the variant as its only key.
fn one_of(schema: &Value) -> Option<Vec<Field>> {
    let key = |option: &Value| {
        let properties = option.get("properties")?.as_object()?;
        let (name, value) = properties.iter().next().filter(|_| properties.len() == 1)?;
        // The variant's description applies to its key.
        let mut value = value.clone();
        for said in ["description", "format"] {
            if let (Some(word), Some(map)) = (option.get(said), value.as_object_mut()) {
                map.entry(said).or_insert_with(|| word.clone());
            }
        }
        Some(field(name, &value, &[]))
    };
    schema.get("oneOf")?.as_array()?.iter().map(key).collect()
}

fn integer(schema: &Value) -> ShapeKind {
    let bound =
        |name: &str| schema.get(name).and_then(Value::as_number).and_then(serde_json::Number::as_i128);
    let (lowest, highest) = match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => (0, i128::from(u32::MAX)),
        Some("uint" | "uint64") => (0, i128::from(u64::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    ShapeKind::Integer {
        min: bound("minimum").unwrap_or(lowest).max(lowest),
        max: bound("maximum").unwrap_or(highest).min(highest),
    }
}

fn object(schema: &Value) -> ShapeKind {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let fields = properties.iter().map(|(name, schema)| field(name, schema, &required)).collect();
        return ShapeKind::Object(fields);
    }
    let key = match text(schema, "x-key") {
        "plugin" => KeyKind::Plugin,
        "provider" => KeyKind::Provider,
        "action" => KeyKind::Action,
        "credential" => KeyKind::Credential,
        _ => KeyKind::Free,
    };
    let value = schema.get("additionalProperties").map_or(ANY, shape);
    ShapeKind::Map { key, value: Box::new(value) }
}

fn field(name: &str, schema: &Value, required: &[&str]) -> Field {
    Field {
        name: name.to_owned(),
        aliases: schema.get("x-aliases").and_then(Value::as_array).map_or_else(Vec::new, |aliases| {
            aliases.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }),
        doc: paragraphs(text(schema, "description")),
        required: required.contains(&name),
        default: schema.get("default").cloned(),
        default_text: schema.get("x-default").and_then(Value::as_str).map(str::to_owned),
        example: schema.get("examples").and_then(Value::as_array).and_then(|all| all.first()).cloned(),
        may_hold_secrets: schema.get("x-may-hold-secrets").is_some(),
        shape: shape(schema),
    }
}

fn text<'s>(schema: &'s Value, key: &str) -> &'s str {
    schema.as_object().and_then(|map: &Map<_, _>| map.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// Joins the lines of each paragraph: doc comments are wrapped in the source.
fn paragraphs(doc: &str) -> String {
    doc.split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n\n")
}

impl Shape {
    /// The shape one step below this one; `None` if there is no such key.
    pub(super) fn below(&self, step: &str) -> Option<&Self> {
        match &self.kind {
            ShapeKind::Object(fields) | ShapeKind::OneOf(fields) => {
                fields.iter().find(|field| field.name == step).map(|field| &field.shape)
            }
            ShapeKind::Map { value, .. } => Some(value),
            ShapeKind::List(item) => Some(item),
            _ => None,
        }
    }

    /// Its name in messages and in the reference.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.kind {
            ShapeKind::Object(_) | ShapeKind::Map { .. } => "a map of keys".to_owned(),
            ShapeKind::List(of) => match &of.kind {
                ShapeKind::Text | ShapeKind::Path | ShapeKind::Secret => "a list of texts".to_owned(),
                ShapeKind::Integer { .. } => "a list of whole numbers".to_owned(),
                ShapeKind::Object(_) | ShapeKind::Map { .. } | ShapeKind::OneOf(_) => {
                    "a list of maps".to_owned()
                }
                _ => "a list".to_owned(),
            },
            ShapeKind::OneOf(keys) => {
                let keys: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
                format!("a map with one of the keys {}", keys.join(" and "))
            }
            ShapeKind::Duration => "a duration".to_owned(),
            ShapeKind::BoundedDuration { longest, .. } => format!("a duration of at most {longest}"),
            ShapeKind::Dollars { .. } => "an amount of dollars".to_owned(),
            ShapeKind::Bytes => "a size".to_owned(),
            ShapeKind::UidRange => "a range of uids".to_owned(),
            ShapeKind::SocketAddress => "an IP address with a port".to_owned(),
            ShapeKind::Integer { min, max } => match (*min, *max) {
                (min, max) if max >= i128::from(u32::MAX) => format!("a whole number of at least {min}"),
                (min, max) => format!("a whole number from {min} to {max}"),
            },
            ShapeKind::Number { max } => format!("a number from 0 to {max}"),
            ShapeKind::Bool => "true or false".to_owned(),
            ShapeKind::Text | ShapeKind::Secret => "a text".to_owned(),
            ShapeKind::Path | ShapeKind::Program => "a path".to_owned(),
            ShapeKind::Choice(choices) => {
                let words: Vec<String> = choices.iter().map(|choice| choice.value.to_string()).collect();
                match words.split_last() {
                    Some((last, [])) => last.clone(),
                    Some((last, others)) => format!("{} or {last}", others.join(", ")),
                    None => String::new(),
                }
            }
            ShapeKind::Any => "anything".to_owned(),
        }
    }

    /// The fixed key with this name, or with this other spelling.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        match &self.kind {
            ShapeKind::Object(fields) | ShapeKind::OneOf(fields) => {
                let spelled = |field: &&Field| field.aliases.iter().any(|alias| alias == name);
                fields.iter().find(|field| field.name == name).or_else(|| fields.iter().find(spelled))
            }
            _ => None,
        }
    }
}
