//! The command line.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// What is run.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    /// Where the page is written. Nowhere: the results are only printed.
    pub(crate) table: Option<PathBuf>,
    servers: bool,
    clients: bool,
    only: Vec<String>,
}

impl Choice {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut choice = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| anyhow::anyhow!("{word} needs a value"));
            match word.as_str() {
                "--table" => choice.table = Some(value()?.into()),
                "--only" => choice.only = value()?.split(',').map(str::to_owned).collect(),
                "--servers" => choice.servers = true,
                "--clients" => choice.clients = true,
                _ => bail!("{word}: talon-interop [--table FILE] [--servers] [--clients] [--only NAME,…]"),
            }
        }
        if choice.table.is_some() && (choice.servers || choice.clients || !choice.only.is_empty()) {
            bail!("--table writes the whole page: leave --servers, --clients and --only out");
        }
        Ok(choice)
    }

    pub(crate) fn has_server(&self, name: &str) -> bool {
        (self.servers || !self.clients) && self.has(name)
    }

    pub(crate) fn has_client(&self, name: &str) -> bool {
        (self.clients || !self.servers) && self.has(name)
    }

    fn has(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}
