//! The options of a run.

use std::path::PathBuf;

use anyhow::Context;

use crate::column;

/// The options of a run.
#[derive(Debug, Default, Clone)]
pub(crate) struct Choice {
    /// Attacks whose name contains this text, or one of several separated by commas.
    pub(crate) only: Option<String>,
    /// Columns whose name contains it.
    pub(crate) column: Option<String>,
    /// Where the table goes.
    pub(crate) table: Option<PathBuf>,
    /// The compiled attacks; without it they are compiled here.
    pub(crate) attacks: Option<PathBuf>,
    /// Whether each result is printed as it comes.
    pub(crate) verbose: bool,
}

impl Choice {
    pub(crate) fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut choice = Self::default();
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let mut value = || rest.next().cloned().with_context(|| format!("{option} needs a value"));
            match option.as_str() {
                "--only" => choice.only = Some(value()?),
                "--column" => choice.column = Some(value()?),
                "--table" => choice.table = Some(value()?.into()),
                "--attacks" => choice.attacks = Some(value()?.into()),
                "--verbose" => choice.verbose = true,
                other => {
                    anyhow::bail!(
                        "unknown option {other} (known: --only, --column, --table, --attacks, --verbose)"
                    )
                }
            }
        }
        Ok(choice)
    }

    /// The columns that were asked for.
    pub(crate) fn columns(&self) -> Vec<column::Column> {
        let wanted =
            |column: &column::Column| self.column.as_ref().is_none_or(|part| column.name.contains(part));
        column::all().into_iter().filter(wanted).collect()
    }

    /// Whether an attack was asked for.
    pub(crate) fn wants(&self, attack: &str) -> bool {
        self.only.as_ref().is_none_or(|parts| parts.split(',').any(|part| attack.contains(part)))
    }

    /// The same as arguments, for the child processes.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let option = |name: &str, value: &Option<String>| {
            value.iter().flat_map(|value| [name.to_owned(), value.clone()]).collect::<Vec<_>>()
        };
        let mut all = option("--only", &self.only);
        all.extend(option("--column", &self.column));
        if let Some(file) = &self.attacks {
            all.extend(["--attacks".into(), file.display().to_string()]);
        }
        if self.verbose {
            all.push("--verbose".into());
        }
        all
    }
}
