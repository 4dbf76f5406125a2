use talon_proto::plugin::{Action, PluginCapabilities};

use super::*;
use crate::patterns::Filter;
use crate::tools::of_plugin;

fn catalog(count: usize, description: &str) -> Catalog {
    let action =
        |n| Action { name: format!("a{n:04}"), description: description.to_owned(), ..Action::default() };
    let capabilities =
        PluginCapabilities { actions: (0..count).map(action).collect(), ..PluginCapabilities::default() };
    let tools = of_plugin("p", &capabilities, &Filter::default());
    let tools = tools.into_iter().map(|offered| (offered.tool.name.to_string(), offered)).collect();
    Catalog { tools, settled: true, known: true, ..Catalog::default() }
}

fn pages(catalog: &Catalog) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = None;
    loop {
        let (tools, next) = tool_page(catalog, cursor.as_deref()).unwrap();
        pages.push(tools.into_iter().map(|tool| tool.name.to_string()).collect());
        if next.is_none() {
            return pages;
        }
        cursor = next;
    }
}

#[test]
fn a_list_is_paged_by_number_and_by_weight_and_nothing_is_lost() {
    let sizes = |catalog: &Catalog| pages(catalog).iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(sizes(&catalog(0, "")), [0]);
    assert_eq!(sizes(&catalog(PAGE_TOOLS, "")), [PAGE_TOOLS]);
    let many = catalog(2 * PAGE_TOOLS + 1, "");
    assert_eq!(sizes(&many), [PAGE_TOOLS, PAGE_TOOLS, 1]);
    assert!(pages(&many).concat().iter().eq(many.tools.keys()));
    let heavy = catalog(9, &"x".repeat(PAGE_BYTES / 4));
    assert_eq!(sizes(&heavy), [3, 3, 3]);
}

#[test]
fn a_tool_that_is_heavier_than_a_page_has_one_of_its_own() {
    let heavy = catalog(3, &"x".repeat(PAGE_BYTES + 1));
    assert_eq!(pages(&heavy).iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn a_cursor_outlives_a_change_and_a_strange_one_is_refused() {
    let before = catalog(PAGE_TOOLS + 2, "");
    let (_, next) = tool_page(&before, None).unwrap();
    let mut after = before.clone();
    let gone: Vec<String> = after.tools.keys().take(PAGE_TOOLS + 1).cloned().collect();
    after.tools.retain(|name, _| !gone.contains(name));
    let (tools, next) = tool_page(&after, next.as_deref()).unwrap();
    assert_eq!((tools.len(), next), (1, None));
    assert!(tool_page(&after, Some("3")).is_err());
}
