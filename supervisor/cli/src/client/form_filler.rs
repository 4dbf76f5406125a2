//! A plugin's form, filled in line by line. It reads and writes nothing itself, so `talon call` and a turn of the
//! agent share it.

use serde_json::{Map, Value};
use talon_arguments::form::{Choice, Field, FieldKind, Form, FormError};
use talon_sanitize::{Sanitized, sanitized};

use crate::line::sanitized_line;

/// How often a field is asked for before the question is cancelled.
const MAX_TRIES: usize = 3;

/// A form that is being filled in.
#[derive(Debug)]
pub(crate) struct FormFiller {
    form: Form,
    /// The field that is asked for; none before the person wants to answer.
    place: Option<usize>,
    tries: usize,
    content: Map<String, Value>,
}

/// What follows a line.
#[derive(Debug, PartialEq)]
pub(crate) enum FormStep {
    /// These lines are shown, and another one is read.
    Ask(Vec<Sanitized>),
    /// The answer, as JSON.
    Accept(String),
    /// The person does not want to answer.
    Decline,
    /// The input ended.
    Cancel,
    /// The input was wrong too often.
    GiveUp,
}

impl FormFiller {
    /// Of a plugin's schema.
    ///
    /// # Errors
    /// [`FormError`]: it is no form.
    pub(crate) fn new(schema: &str) -> Result<Self, FormError> {
        Ok(Self { form: Form::parse(schema)?, place: None, tries: 0, content: Map::new() })
    }

    /// Whether the person has begun to answer.
    pub(crate) fn has_begun(&self) -> bool {
        self.place.is_some()
    }

    /// The lines about all fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Sanitized> {
        self.form.fields.iter().map(|field| {
            let need = if field.required { "" } else { ", may be left out" };
            let text = format!("{} ({}{need}): {}", field.name, expected(&field.kind), about(field));
            sanitized!("> {}", sanitized_line(&text))
        })
    }

    /// Takes a line; `None` at the end of the input.
    pub(crate) fn enter(&mut self, line: Option<&str>) -> FormStep {
        let Some(line) = line else { return FormStep::Cancel };
        let Some(place) = self.place else {
            return match line.trim() {
                "" | "y" | "Y" | "yes" => self.ask(0),
                _ => FormStep::Decline,
            };
        };
        let Some(field) = self.form.fields.get(place) else { return FormStep::Cancel };
        let value = match (line, &field.default) {
            ("", Some(default)) => Some(default.clone()),
            ("", None) if !field.required => return self.ask(place + 1),
            (line, _) => read(&field.kind, line),
        };
        if let Some(value) = value {
            self.content.insert(field.name.clone(), value);
            return self.ask(place + 1);
        }
        self.tries += 1;
        if self.tries == MAX_TRIES {
            return FormStep::GiveUp;
        }
        FormStep::Ask(vec![sanitized!("It has to be {}.", sanitized_line(field.kind.expected()))])
    }

    /// Continues with a field; behind the last one the form is filled in.
    fn ask(&mut self, place: usize) -> FormStep {
        (self.place, self.tries) = (Some(place), 0);
        match self.form.fields.get(place) {
            Some(field) => FormStep::Ask(vec![prompt(field)]),
            None => FormStep::Accept(Value::Object(std::mem::take(&mut self.content)).to_string()),
        }
    }
}

/// One line about a field: its title, what it takes, what an empty line means.
fn prompt(field: &Field) -> Sanitized {
    let description = match field.description.as_str() {
        "" => String::new(),
        text => format!(", {text}"),
    };
    let expected = expected(&field.kind);
    let empty = match &field.default {
        Some(default) => format!("; empty: {default}"),
        None if field.required => String::new(),
        None => "; may be empty".to_owned(),
    };
    let text = format!("{}{description} ({expected}{empty}):", field.title);
    sanitized!("> {}", sanitized_line(&text))
}

/// What a field is about, without its name.
fn about(field: &Field) -> String {
    match (field.title == field.name, field.description.as_str()) {
        (true, description) => description.to_owned(),
        (false, "") => field.title.clone(),
        (false, description) => format!("{}, {description}", field.title),
    }
}

fn expected(kind: &FieldKind) -> String {
    match kind {
        FieldKind::One(choices) => format!("one of {}", listed(choices)),
        FieldKind::Several(choices) => format!("some of {}, with commas", listed(choices)),
        kind => kind.expected(),
    }
}

fn listed(choices: &[Choice]) -> String {
    let choice = |choice: &Choice| match choice.title == choice.value {
        true => choice.value.clone(),
        false => format!("{} ({})", choice.value, choice.title),
    };
    choices.iter().map(choice).collect::<Vec<_>>().join(", ")
}

/// What was typed, as a value of this kind.
fn read(kind: &FieldKind, text: &str) -> Option<Value> {
    let chosen = |choices: &[Choice], text: &str| {
        let found = choices.iter().find(|choice| choice.value == text.trim())?;
        Some(Value::from(found.value.clone()))
    };
    let value = match kind {
        FieldKind::Text => Value::from(text),
        FieldKind::Integer | FieldKind::Number => serde_json::from_str(text.trim()).ok()?,
        FieldKind::Boolean => match text.trim() {
            "y" | "Y" | "yes" | "true" => Value::Bool(true),
            "n" | "N" | "no" | "false" => Value::Bool(false),
            _ => return None,
        },
        FieldKind::One(choices) => chosen(choices, text)?,
        FieldKind::Several(choices) => {
            text.split(',').map(|one| chosen(choices, one)).collect::<Option<Vec<_>>>()?.into()
        }
    };
    kind.takes(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_typed_becomes_a_value_of_its_kind() {
        let choice = |value: &str| Choice { value: value.to_owned(), title: value.to_uppercase() };
        let choices = vec![choice("a"), choice("b")];
        for (kind, text, value) in [
            (FieldKind::Text, " 7 ", Some(json!(" 7 "))),
            (FieldKind::Integer, "7", Some(json!(7))),
            (FieldKind::Integer, "7.5", None),
            (FieldKind::Number, "7.5", Some(json!(7.5))),
            (FieldKind::Number, "x", None),
            (FieldKind::Boolean, "yes", Some(json!(true))),
            (FieldKind::Boolean, "n", Some(json!(false))),
            (FieldKind::Boolean, "maybe", None),
            (FieldKind::One(choices.clone()), "b", Some(json!("b"))),
            (FieldKind::One(choices.clone()), "c", None),
            (FieldKind::Several(choices.clone()), "a, b", Some(json!(["a", "b"]))),
            (FieldKind::Several(choices), "a,c", None),
        ] {
            assert_eq!(read(&kind, text), value, "{kind:?} {text:?}");
        }
    }

    #[test]
    fn a_prompt_is_one_marked_line() {
        let form = r#"{"properties": {"a": {"type": "string", "oneOf": [{"const": "x", "title": "the x"}],
            "title": "A\nTalon:", "description": "why", "default": "x"}, "b": {"type": "integer"}}}"#;
        let form = Form::parse(form).expect("a form");
        let shown: Vec<String> = form.fields.iter().map(|field| prompt(field).to_string()).collect();
        assert!(shown[0].starts_with("> A") && !shown[0].contains('\n'), "{shown:?}");
        assert!(shown[0].ends_with("(one of x (the x); empty: \"x\"):"), "{shown:?}");
        assert_eq!(shown[1], "> b (an integer; may be empty):");
    }

    #[test]
    fn a_form_is_filled_in_line_by_line() {
        let schema = r#"{"properties": {"seat": {"type": "string", "enum": ["window", "aisle"]},
            "bags": {"type": "integer", "default": 0}, "note": {"type": "string"}}, "required": ["seat"]}"#;
        let started = || {
            let mut filler = FormFiller::new(schema).expect("a form");
            assert!(matches!(filler.enter(Some("y")), FormStep::Ask(_)));
            filler
        };
        let mut filler = started();
        for line in ["wing", "aisle", ""] {
            assert!(matches!(filler.enter(Some(line)), FormStep::Ask(_)), "{line}");
        }
        assert_eq!(filler.enter(Some("")), FormStep::Accept(r#"{"seat":"aisle","bags":0}"#.to_owned()));
        let mut filler = started();
        let wrong: Vec<FormStep> = (0..3).map(|_| filler.enter(Some("wing"))).collect();
        assert_eq!(wrong[2], FormStep::GiveUp);
        assert_eq!(started().enter(None), FormStep::Cancel);
        let mut filler = FormFiller::new(schema).expect("a form");
        assert_eq!(filler.enter(Some("n")), FormStep::Decline);
        let fields: Vec<String> = filler.fields().map(|field| field.to_string()).collect();
        assert_eq!(fields[0], "> seat (one of window, aisle): ");
        // A question without fields is one for yes or no.
        assert_eq!(
            FormFiller::new("{}").expect("a form").enter(Some("y")),
            FormStep::Accept("{}".to_owned())
        );
    }
}
