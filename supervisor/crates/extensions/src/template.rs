//! Arguments for actions that know nothing of roles: values of the configuration in which texts hold `{{ placeholders }}`.
//!
//! The language is that of minijinja's expressions: names, `.field`, `[index]`, `~` to join, comparisons and `… if … else …`.
//! There are no statements, so no loops, no filters, no functions and no other templates, and each text has a budget of
//! steps and bytes. A text that is one placeholder becomes the value itself, with its type; in any other text the values are
//! written into it. The result is data that is encoded as JSON afterwards, so no value can become structure.

use std::collections::BTreeSet;

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Map, Value};

use crate::limits::{MAX_RENDERED_BYTES, MAX_TEMPLATE_BYTES, MAX_TEMPLATE_DEPTH, TEMPLATE_FUEL};

/// Why arguments cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A text is too long.
    #[error("the text of {at} has {bytes} bytes, and {MAX_TEMPLATE_BYTES} are the most")]
    TooLong {
        /// The argument.
        at: String,
        /// How long it is.
        bytes: usize,
    },
    /// The value is nested too deep.
    #[error("{at} is nested deeper than {MAX_TEMPLATE_DEPTH} levels")]
    TooDeep {
        /// The argument.
        at: String,
    },
    /// A statement or a comment.
    #[error("{at} has {found}: only {{{{ placeholders }}}} are filled in")]
    Statement {
        /// The argument.
        at: String,
        /// The characters.
        found: &'static str,
    },
    /// A placeholder is wrong, or names a value that there is not.
    #[error("{at}: {why}")]
    Placeholder {
        /// The argument.
        at: String,
        /// Why.
        why: String,
    },
    /// There is more than any call may have.
    #[error("the arguments have more than {MAX_RENDERED_BYTES} bytes")]
    TooLarge,
}

/// The arguments with their placeholders filled in.
///
/// # Errors
/// [`TemplateError`], which names the argument.
pub fn render(args: &Map<String, Value>, variables: &Value) -> Result<Map<String, Value>, TemplateError> {
    let renderer = Renderer { variables: minijinja::Value::from(Serde(variables)) };
    let mut rendered = Map::new();
    for (name, value) in args {
        rendered.insert(name.clone(), renderer.value(name, value, 0)?);
    }
    // Each text is bounded, and so is their number, but not tightly.
    let mut limited = LimitedWriter { left: MAX_RENDERED_BYTES };
    serde_json::to_writer(&mut limited, &rendered).map_err(|_| TemplateError::TooLarge)?;
    Ok(rendered)
}

/// The names of the values that placeholders read, as `event.summary`. What cannot be read has none.
#[must_use]
pub fn names(args: &Map<String, Value>) -> BTreeSet<String> {
    fn of(value: &Value, depth: usize, names: &mut BTreeSet<String>) {
        match value {
            Value::String(text) if text.contains("{{") && text.len() <= MAX_TEMPLATE_BYTES => {
                if let Ok(template) = environment().template_from_str(text) {
                    names.extend(template.undeclared_variables(true));
                }
            }
            _ if depth >= MAX_TEMPLATE_DEPTH => {}
            Value::Array(items) => items.iter().for_each(|item| of(item, depth + 1, names)),
            Value::Object(fields) => fields.values().for_each(|field| of(field, depth + 1, names)),
            _ => {}
        }
    }
    let mut names = BTreeSet::new();
    args.values().for_each(|value| of(value, 0, &mut names));
    names
}

fn environment<'s>() -> Environment<'s> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment
}

struct Renderer {
    variables: minijinja::Value,
}

impl Renderer {
    fn value(&self, at: &str, value: &Value, depth: usize) -> Result<Value, TemplateError> {
        if depth >= MAX_TEMPLATE_DEPTH {
            return Err(TemplateError::TooDeep { at: at.to_owned() });
        }
        Ok(match value {
            Value::String(text) => self.text(at, text)?,
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items
                    .map(|(index, item)| self.value(&format!("{at}[{index}]"), item, depth + 1))
                    .collect::<Result<_, _>>()?
            }
            Value::Object(fields) => {
                let fields = fields.iter();
                let rendered = fields.map(|(name, value)| {
                    Ok::<_, TemplateError>((
                        name.clone(),
                        self.value(&format!("{at}.{name}"), value, depth + 1)?,
                    ))
                });
                Value::Object(rendered.collect::<Result<_, _>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    fn text(&self, at: &str, text: &str) -> Result<Value, TemplateError> {
        if text.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::TooLong { at: at.to_owned(), bytes: text.len() });
        }
        if let Some(found) = ["{%", "{#"].into_iter().find(|found| text.contains(found)) {
            return Err(TemplateError::Statement { at: at.to_owned(), found });
        }
        if !text.contains("{{") {
            return Ok(Value::String(text.to_owned()));
        }
        let failed = |why: String| TemplateError::Placeholder { at: at.to_owned(), why };
        // It lives as long as the text that it compiles.
        let environment = environment();
        if let Some(expression) = only_placeholder(text) {
            let compiled =
                environment.compile_expression(expression).map_err(|error| failed(said(&error)))?;
            let value = compiled.eval(self.variables.clone()).map_err(|error| failed(said(&error)))?;
            if value.is_undefined() {
                return Err(failed(format!("there is no value {expression}")));
            }
            // A lazy value may be as long as it likes to be.
            let mut bytes = Vec::new();
            let limited = LimitedBuffer { bytes: &mut bytes };
            serde_json::to_writer(limited, &value)
                .map_err(|error| failed(format!("{expression} is no data: {error}")))?;
            return serde_json::from_slice(&bytes)
                .map_err(|error| failed(format!("{expression} is no data: {error}")));
        }
        let rendered = environment.render_str(text, self.variables.clone());
        rendered.map(Value::String).map_err(|error| failed(said(&error)))
    }
}

/// The expression of a text that is one placeholder and nothing else.
fn only_placeholder(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("{{") && !inner.contains("}}")).then(|| inner.trim())
}

/// The library's message, bounded; it may repeat a part of a template, which is the operator's.
fn said(error: &minijinja::Error) -> String {
    const MOST: usize = 300;
    error.to_string().chars().take(MOST).collect()
}

struct LimitedWriter {
    left: usize,
}

impl std::io::Write for LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct LimitedBuffer<'b> {
    bytes: &'b mut Vec<u8>,
}

impl std::io::Write for LimitedBuffer<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_RENDERED_BYTES {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
