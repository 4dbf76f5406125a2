//! The pages of `docs/extensions`: one a role, written from the types. A test keeps them true.

mod texts;

use std::fmt::Write as _;

use schemars::Schema;

use self::texts::{Texts, texts};
use crate::{Role, contract};

/// The file name of a role's page.
#[must_use]
pub fn file_name(role: Role) -> String {
    format!("{}.md", role.as_str().replace('_', "-"))
}

/// A role's page.
#[must_use]
pub fn page(role: Role) -> String {
    let Texts { title, about, example, answers } = texts(role);
    let (arguments, answer) = contract::schemas(role);
    let (name, list, caller, when) = (role.as_str(), role.list(), role.caller(), role.when());
    let (list, keys) = match role {
        Role::StorageBackend => (
            list.to_owned(),
            "The keys are in [configuration.md](../configuration.md). The action has to declare the role.",
        ),
        Role::Channel => (
            format!("extensions.{list}"),
            "The keys of an entry are in [configuration.md](../configuration.md). The action has to declare the role.",
        ),
        _ => (
            format!("extensions.{list}"),
            "The keys of an entry are in [configuration.md](../configuration.md), arguments for an action that does not declare \
             the role in [templates.md](templates.md).",
        ),
    };
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "# {title}\n\n<!-- Written from supervisor/crates/extensions/src. Change the types there, not this page. -->\n\n\
         {about}\n\n\
         | | |\n|---|---|\n| role | `{name}` |\n| list | `{list}` |\n| called by | `{caller}` |\n| when | {when} |\n\n\
         ```yaml\n{example}```\n\n\
         {keys}\n\n{answers}\n\n\
         ## Arguments\n\n```json\n{}\n```\n\n## Structured answer\n\n```json\n{}\n```\n",
        pretty(&arguments),
        pretty(&answer),
    );
    page
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
        for role in Role::ALL.into_iter().filter(|role| *role != Role::StorageBackend) {
            let file: File = serde_saphyr::from_str(texts(role).example).expect("an example");
            assert_eq!(file.extensions.entries().next().map(|entry| entry.role), Some(role));
        }
    }
}
