//! Generates the reference page from the schema. A test compares it with `docs/configuration.md`.

use std::fmt::{self, Write};
use std::path::PathBuf;

use serde_json::Value;
use talon_plugin_config::document::origin::KeyPath;
use talon_plugin_config::document::shape::{Field, KeyKind, Shape, ShapeKind};

use super::environment::{DefaultPath, DefaultPaths};
use super::layers::{HANDSHAKE_PREFIX, OTHER_VARIABLES};
use super::schema;
use super::show::yaml_inline;
use super::types::Config;

/// The example that the page shows, which is also installed and tested.
pub const EXAMPLE: &str = include_str!("../../../deploy/talon.example.yaml");

/// Writes the whole page.
///
/// # Errors
/// Those of `out`.
pub fn write_reference(out: &mut impl Write) -> fmt::Result {
    out.write_str(INTRODUCTION)?;
    writeln!(out, "\n```yaml\n{}```\n", EXAMPLE)?;
    out.write_str(RULES)?;
    for (name, meaning) in OTHER_VARIABLES {
        writeln!(out, "- `{name}`: {meaning}.")?;
    }
    writeln!(out, "- `{HANDSHAKE_PREFIX}…`: part of the handshake with plugins.")?;
    let defaults = serde_json::to_value(Config::built_in(&placeholder_paths())).unwrap_or_default();
    let root = schema::config();
    let mut page = ReferencePage { out, defaults, written: Vec::new() };
    writeln!(page.out, "\n## Keys\n")?;
    page.section(&root, "", &KeyPath::top())
}

const INTRODUCTION: &str = "\
# Configuration

<!-- Written by `talon config reference`. Change the doc comments in supervisor/src/config/types/, supervisor/crates/plugin-config/src/, supervisor/crates/extensions/src/ and supervisor/agent/crates/settings/src/, not this page. -->

Everything has a default; a supervisor without a config file runs no plugin, and is otherwise complete. The file
is the one named by `--config`, else by `TALON_CONFIG`, else `/etc/talon/talon.yaml` (root) or
`$XDG_CONFIG_HOME/talon/talon.yaml` (others; `~/.config` if the variable is not set). `talon config check` reports
everything that is wrong with it at once, and `talon config show` prints the effective values and where each of
them comes from.
";

const RULES: &str = "\
## Rules

**Order.** Built-in defaults, then the file, then the environment, then flags; the later wins, key by key. Lists are
replaced whole.

**Unknown keys are errors**, and so are a key that stands twice, a value of the wrong type, merge keys (`<<`) and
tags. The file is YAML 1.2, at most 1 MiB and 64 levels deep; aliases are followed within bounds.

**Durations** carry their unit: `500ms`, `30s`, `1m30s`, `2h`, `1.5d`; at most `365d`.

**Amounts of dollars** are decimal numbers without a sign or a unit, `2` or `0.15`; `null` takes a limit away.

**Sizes** are bytes as a number, or with a unit: `65536`, `64KiB`, `8 MiB`, and `10MB` for 10,000,000 bytes.

**Paths** that are relative start at the config file's directory, and those from the environment or from flags at
the working directory. `~/` is the home directory of the user who runs the supervisor.

**Variables in the file.** `${NAME}` in a value stands for the environment variable, `${NAME:-text}` gives a
default for when it is missing or empty, and `$$` is a dollar sign. `${credential:NAME}` stands for what a service
manager hands over under that name (`LoadCredential=`), which is in no environment; [packages.md](packages.md) shows it. A variable that is missing is an error. They
are filled in after the file has been parsed, so that a variable's value cannot become YAML.

**`plugin.yaml`.** A plugin that is a directory describes itself in a `plugin.yaml`: the keys of
`plugins.tools.plugins.<plugin>` without `context` and `credentials`, and `name`, where the plugin is not called as its
directory. The same rules hold, but variables are not filled in. An author cannot loosen what the operator asks for:
a manifest that asks for a weaker `sandbox.mode`, another profile, more network, files, `tmp_bytes` or `limits` than
`sandbox` gives to all, for `tmp_exec` or for `allow_tcp` is refused, and its reason names the key under
`plugins.tools.overrides` with which the operator can allow it.

**Secrets.** `talon config show` hides the values of credentials, a provider's `headers` and `proxy`, and in a plugin's `args`, `env` and `config`
whatever comes from the environment or stands under a key that sounds like a secret (`token`, `password`, `key`, …).

**Environment.** `TALON_` followed by the key in capitals, with `__` between its steps, sets a key:
`TALON_PLUGINS__TOOLS__MAX_RESTARTS=5`. In the name of a plugin or a provider `_` stands for `-`; names of actions, credentials and
environment variables keep their case, and those inside a plugin's `config` are in lower case. Values that are lists
or maps are written as YAML: `[\"a\", \"b\"]`. A variable with `__` that names no key is an error; one without, such as
the `TALON_PORT` of a container platform, is a warning. These have meanings of their own:

";

/// Machine-independent paths for the page; the keys that depend on them describe that in words.
fn placeholder_paths() -> DefaultPaths {
    let place = || DefaultPath { path: PathBuf::new(), variable: None };
    DefaultPaths { runtime_dir: place(), data_dir: place(), config_file: None }
}

struct ReferencePage<'o, W> {
    out: &'o mut W,
    defaults: Value,
    /// Sections that are written already, so that shared keys are described once.
    written: Vec<(String, Vec<Field>)>,
}

impl<W: Write> ReferencePage<'_, W> {
    fn section(&mut self, shape: &Shape, doc: &str, path: &KeyPath) -> fmt::Result {
        let (ShapeKind::Object(fields) | ShapeKind::OneOf(fields)) = &shape.kind else { return Ok(()) };
        if *path != KeyPath::top() {
            writeln!(self.out, "### `{}`\n", shown(path))?;
            if !doc.is_empty() {
                writeln!(self.out, "{doc}\n")?;
            }
        }
        let described = self.described_elsewhere(fields);
        if let Some(elsewhere) = &described {
            let (whole, place) = (elsewhere.1.len() == fields.len(), &elsewhere.0);
            let rest = if whole { "." } else { ", and these:" };
            writeln!(self.out, "The keys of `{place}`{rest}\n")?;
        }
        let is_described =
            |field: &&Field| described.as_ref().is_none_or(|(_, names)| !names.contains(&field.name));
        let own: Vec<&Field> = fields.iter().filter(is_described).collect();
        for field in own.iter().filter(|field| section_of(&field.shape).is_none()) {
            self.key(field, &path.key(&field.name))?;
        }
        self.written.push((shown(path), fields.clone()));
        for field in own {
            let below = path.key(&field.name);
            if let Some((inner, step)) = section_of(&field.shape) {
                let below = step.map_or(below.clone(), |step| step(&below));
                let doc = match &field.example {
                    Some(example) => format!("{}\n\n{}", field.doc, example_of(field, example)),
                    None => field.doc.clone(),
                };
                self.section(inner, &doc, &below)?;
            }
        }
        Ok(())
    }

    /// An earlier section that has nearly all of these keys, and those keys.
    fn described_elsewhere(&self, fields: &[Field]) -> Option<(String, Vec<String>)> {
        /// With fewer common keys, repeating them is easier for the reader.
        const WORTH_A_REFERENCE: usize = 5;
        let common = |(place, there): &(String, Vec<Field>)| {
            let names: Vec<String> =
                there.iter().filter(|field| fields.contains(field)).map(|field| field.name.clone()).collect();
            (names.len() == there.len() && names.len() >= WORTH_A_REFERENCE).then(|| (place.clone(), names))
        };
        self.written.iter().filter_map(common).max_by_key(|(_, names)| names.len())
    }

    fn key(&mut self, field: &Field, path: &KeyPath) -> fmt::Result {
        let name = shown(path);
        writeln!(self.out, "#### `{name}`\n")?;
        write!(self.out, "*{}{}.* ", capital(&kind_name(&field.shape)), self.default_of(field, path))?;
        writeln!(self.out, "{}\n", field.doc)?;
        if let ShapeKind::Choice(choices) = &field.shape.kind {
            for choice in choices {
                let doc = if choice.doc.is_empty() { String::new() } else { format!(": {}", choice.doc) };
                writeln!(self.out, "- `{}`{doc}", choice.word)?;
            }
            writeln!(self.out)?;
        }
        if let Some(example) = &field.example {
            writeln!(self.out, "{}\n", example_of(field, example))?;
        }
        Ok(())
    }

    fn default_of(&self, field: &Field, path: &KeyPath) -> String {
        if let Some(text) = &field.default_text {
            let quoted =
                if text.contains('`') || text.contains(' ') { text.clone() } else { format!("`{text}`") };
            return format!(", default {quoted}");
        }
        if field.required && path.steps().iter().any(|step| step.starts_with(['<', '['])) {
            return ", required".to_owned();
        }
        if field.doc.starts_with("As `") {
            return String::new();
        }
        let built_in = path.steps().iter().try_fold(&self.defaults, |value, step| value.get(step));
        match built_in.or(field.default.as_ref()) {
            None | Some(Value::Null) if field.shape.nullable => ", unset unless given".to_owned(),
            None | Some(Value::Null) => String::new(),
            Some(Value::Array(items)) if items.is_empty() => ", empty unless given".to_owned(),
            Some(Value::Object(values)) if values.is_empty() => ", empty unless given".to_owned(),
            Some(value) => format!(", default `{}`", yaml_inline(value)),
        }
    }
}

/// A key with a separate section, and the step that leads into it.
type Step = fn(&KeyPath) -> KeyPath;

fn section_of(shape: &Shape) -> Option<(&Shape, Option<Step>)> {
    match &shape.kind {
        ShapeKind::Object(_) => Some((shape, None)),
        ShapeKind::Map { key, value } if matches!(value.kind, ShapeKind::Object(_)) => {
            let step: Step = match key {
                KeyKind::Plugin => |path| path.key("<plugin>"),
                KeyKind::Provider => |path| path.key("<provider>"),
                KeyKind::Action => |path| path.key("<action>"),
                KeyKind::Credential | KeyKind::Free => |path| path.key("<name>"),
            };
            Some((value, Some(step)))
        }
        ShapeKind::List(item) if matches!(item.kind, ShapeKind::Object(_) | ShapeKind::OneOf(_)) => {
            Some((item, Some(|path| path.key("[]"))))
        }
        _ => None,
    }
}

fn shown(path: &KeyPath) -> String {
    path.steps().join(".").replace(".[]", "[]")
}

fn example_of(field: &Field, example: &Value) -> String {
    format!("Example: `{}: {}`", field.name, yaml_inline(example).replace("$${", "${"))
}

fn kind_name(shape: &Shape) -> String {
    match &shape.kind {
        ShapeKind::Choice(_) => "one word".to_owned(),
        ShapeKind::Map { value, .. } => match value.kind {
            ShapeKind::Text => "a map of texts".to_owned(),
            _ => "a map".to_owned(),
        },
        _ => shape.name(),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
