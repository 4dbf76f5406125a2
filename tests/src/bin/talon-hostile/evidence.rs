//! All results of a run.

use std::collections::BTreeMap;

use crate::column::Column;
use crate::expected::Attack;
use crate::jails::ENFORCED;
use crate::record::Record;

/// All results of the run.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) records: BTreeMap<(String, String), Record>,
    pub(crate) skipped: BTreeMap<String, String>,
    pub(crate) reports: Vec<(String, Vec<(String, String)>)>,
}

impl Evidence {
    /// Whether a control group limits the memory of what a column starts, as the jail's own report says.
    pub(crate) fn grouped(&self, column: &Column) -> bool {
        self.reports.iter().filter(|(name, _)| *name == column.name).any(|(_, lines)| {
            lines.iter().any(|(protection, status)| protection == "memory-group" && status == ENFORCED)
        })
    }

    pub(crate) fn record(&self, attack: &Attack, column: &Column) -> Option<&Record> {
        self.records.get(&(attack.name.clone(), column.name.clone()))
    }
}
