//! A secret that the next commit would contain.

use talon_redact::secrets;

use crate::event::Added;

/// Names of files whose values are examples by convention.
const EXAMPLES: [&str; 7] =
    [".example", ".sample", ".template", ".dist", "testdata", "fixtures", "snapshots"];

/// A secret among lines that are added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StagedSecret {
    pub(crate) path: String,
    /// The line in the new file, from 1.
    pub(crate) line: usize,
    /// What kind it is.
    pub(crate) rule: &'static str,
}

/// The first secret in each file. Where only its name says so, files of examples are left out.
pub(crate) fn find(added: &[Added]) -> Vec<StagedSecret> {
    added.iter().filter_map(in_file).collect()
}

fn in_file(added: &Added) -> Option<StagedSecret> {
    let is_example = EXAMPLES.iter().any(|part| added.path.contains(part));
    let text: Vec<&str> = added.lines.iter().map(|(_, text)| text.as_str()).collect();
    let text = text.join("\n");
    let first = secrets(&text)
        .into_iter()
        .filter(|secret| secret.certain || !is_example)
        .min_by_key(|secret| (!secret.certain, secret.start))?;
    let index = text[..first.start].matches('\n').count();
    let line = added.lines.get(index).map_or(0, |(line, _)| *line);
    Some(StagedSecret { path: added.path.clone(), line, rule: first.rule })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn added(path: &str, text: &str) -> Added {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 10, line.to_owned())).collect();
        Added { path: path.to_owned(), lines }
    }

    // Promises: SHADOW-56
    #[test]
    fn a_secret_is_found_with_its_line_and_kind() {
        let key = format!("ghp_{}", "a1B2".repeat(9));
        let found = find(&[added("a.rs", "fn a() {}"), added("b.rs", &format!("one\nlet k = \"{key}\";"))]);
        let expected = StagedSecret { path: "b.rs".into(), line: 11, rule: "github token" };
        assert_eq!(found, [expected]);
    }

    // Promises: SHADOW-56
    #[test]
    fn examples_count_only_where_the_format_proves_a_secret() {
        let text = "DB_PASSWORD=hunter2hunter2";
        assert_eq!(find(&[added(".env", text)]).len(), 1);
        assert_eq!(find(&[added(".env.example", text)]), []);
        let key = format!("AKIA{}", "ABCD2345".repeat(2));
        assert_eq!(find(&[added(".env.example", &key)]).len(), 1);
    }

    proptest! {
        // Promises: SHADOW-56
        #[test]
        fn it_is_found_at_its_line_whatever_stands_before(before in "([a-z ]{0,12}\n){0,12}") {
            let key = format!("AKIA{}", "ABCD2345".repeat(2));
            let found = find(&[added("a", &format!("{before}{key}\n"))]);
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(found[0].line, before.lines().count() + 10);
        }
    }
}
