//! The pages of `docs/extensions`: one a role, written from the types. A test keeps them true.

use std::fmt::Write as _;

use schemars::Schema;

use crate::{Role, contract};

/// The file name of a role's page.
#[must_use]
pub fn file_name(role: Role) -> String {
    format!("{}.md", role.as_str().replace('_', "-"))
}

/// A role's page.
#[must_use]
pub fn page(role: Role) -> String {
    let Texts { title, about, example, verdicts } = texts(role);
    let (arguments, answer) = contract::schemas(role);
    let (name, list, caller, when) = (role.as_str(), role.list(), role.caller(), role.when());
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "# {title}\n\n<!-- Written from supervisor/crates/extensions/src. Change the types there, not this page. -->\n\n\
         {about}\n\n\
         | | |\n|---|---|\n| role | `{name}` |\n| list | `extensions.{list}` |\n| called by | `{caller}` |\n| when | {when} |\n\n\
         ```yaml\n{example}```\n\n\
         The keys of an entry are in [configuration.md](../configuration.md), arguments for an action that does not declare \
         the role in [templates.md](templates.md).\n\n{verdicts}\n\n\
         ## Arguments\n\n```json\n{}\n```\n\n## Structured answer\n\n```json\n{}\n```\n",
        pretty(&arguments),
        pretty(&answer),
    );
    page
}

struct Texts {
    title: &'static str,
    about: &'static str,
    example: &'static str,
    verdicts: &'static str,
}

const VERDICTS: &str = "\
## What becomes of the verdict

| verdict | needs | effect |
|---|---|---|
| `pass` | | the message goes on byte for byte |
| `annotate` | `may: [annotate]` | the message goes on byte for byte; `metadata` is noted in the journal, and given to later entries that list the keys |
| `replace` | `may: [replace]` | `message` takes its place, sanitized as every text of a plugin; the original stays in the journal |
| `drop` | `may: [drop]` | it goes no further, and the person is told the reason |

A verdict that the entry does not allow, an answer that is none, was cut or left out, an error of the plugin and a passed
deadline are failures: with `on_failure: closed` the turn ends with the error `hook_failed`, with `open` it goes on as if the
entry were not there, and a notice says so. A text can grant nothing: it is a message, whatever stands in it.";

fn texts(role: Role) -> Texts {
    match role {
        Role::Filter => Texts {
            title: "Filter",
            about: "A filter looks at every message before everything else, and lets it pass, annotates it or drops it. It never changes \
                    it. A dropped message reaches no model, no memory and no other hook.",
            example: "extensions:\n  filters:\n    - { action: spam.check, may: [drop] }\n",
            verdicts: VERDICTS,
        },
        Role::RequestHook => Texts {
            title: "Request hook",
            about: "A request hook looks at every message before the agent works on it. It may annotate it, put a refined one in its \
                    place, or drop it. Hooks run in the order of the configuration, each on what the one before made of it.",
            example: "extensions:\n  request_hooks:\n    - { action: pii.scan, may: [annotate, replace, drop], deadline: 2s }\n",
            verdicts: VERDICTS,
        },
        Role::ResponseHook => Texts {
            title: "Response hook",
            about: "A response hook looks at the model's final answer before the person gets it. It may annotate it, put another one in \
                    its place, or drop it. While one may still change or take the answer, its text is held back, unless the entry says \
                    `stream: through`. A JSON Schema that the person asked for is checked again after the last hook.",
            example: "extensions:\n  response_hooks:\n    - { action: words.polish, may: [replace], on_failure: open }\n",
            verdicts: VERDICTS,
        },
    }
}

fn pretty(schema: &Schema) -> String {
    // A schema is JSON already.
    serde_json::to_string_pretty(schema.as_value()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    // Promises: EXT-4
    #[test]
    fn the_pages_are_those_of_the_types() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/extensions");
        for role in Role::ALL {
            let (path, page) = (directory.join(file_name(role)), page(role));
            if std::env::var_os("TALON_REWRITE_DOCS").is_some() {
                std::fs::write(&path, &page).expect("written");
            }
            let written = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(written, page, "{}: run the test with TALON_REWRITE_DOCS=1", path.display());
        }
    }

    #[test]
    fn the_examples_are_configurations() {
        #[derive(serde::Deserialize)]
        struct File {
            extensions: crate::Extensions,
        }
        for role in Role::ALL {
            let file: File = serde_saphyr::from_str(texts(role).example).expect("an example");
            assert_eq!(file.extensions.entries().next().map(|entry| entry.role), Some(role));
        }
    }
}
