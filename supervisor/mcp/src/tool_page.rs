//! Pages of the list of tools.

use std::ops::Bound;

use rmcp::ErrorData;
use rmcp::model::Tool;

use crate::catalog::Catalog;

/// Tools per page of the list, and their total size. Large enough that hosts which read only the first page
/// miss tools only in the largest installations.
const PAGE_TOOLS: usize = 1000;
const PAGE_BYTES: usize = 4 << 20;
/// The prefix of a cursor, followed by a tool's name.
const CURSOR: &str = "after:";

/// A page of the list, and the cursor of the next one.
pub(crate) fn tool_page(
    catalog: &Catalog,
    cursor: Option<&str>,
) -> Result<(Vec<Tool>, Option<String>), ErrorData> {
    let after = match cursor {
        None => "",
        Some(cursor) => cursor.strip_prefix(CURSOR).ok_or_else(|| {
            ErrorData::invalid_params("this cursor is none of this server: list from the beginning", None)
        })?,
    };
    // The cursor is a name and not an index, so that a change between two pages does not skip tools.
    let rest = catalog.tools.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
    let (mut tools, mut bytes) = (Vec::<Tool>::new(), 0);
    for (_, offered) in rest {
        bytes += offered.bytes;
        if let Some(last) = tools.last()
            && (tools.len() == PAGE_TOOLS || bytes > PAGE_BYTES)
        {
            let next = format!("{CURSOR}{}", last.name);
            return Ok((tools, Some(next)));
        }
        tools.push(offered.tool.clone());
    }
    Ok((tools, None))
}

#[cfg(test)]
#[path = "tool_page_tests.rs"]
mod tests;
