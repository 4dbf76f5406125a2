use proptest::prelude::*;
use serde_json::json;

use super::*;

fn structured(output: &Output) -> Value {
    output.structured_content().cloned().expect("a list is structured")
}

/// A server with these pages, read to its end by our cursors; what was listed, and how many were left out.
fn read(list: List, pages: &[Vec<Value>]) -> (Vec<Value>, u64) {
    let (mut listed, mut left_out, mut cursor) = (Vec::new(), 0, None::<String>);
    loop {
        let place = Position::parse(cursor.as_deref()).unwrap();
        let at: usize = place.cursor.as_deref().unwrap_or("0").parse().unwrap();
        let mut answer = json!({ list.key(): pages[at] });
        if at + 1 < pages.len() {
            answer["nextCursor"] = json!((at + 1).to_string());
        }
        let page = structured(&page(list, &place, &answer).unwrap());
        assert!(page.to_string().len() <= MAX_PAGE_BYTES + 16 * 1024, "one item more at most");
        listed.extend(page[list.key()].as_array().unwrap().clone());
        left_out += page["leftOut"].as_u64().unwrap_or(0);
        match page["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return (listed, left_out),
        }
    }
}

proptest! {
    // Promises: MCP-33
    #[test]
    fn nothing_is_lost_between_pages(sizes in prop::collection::vec(prop::collection::vec(0_usize..3000, 0..40), 1..4)) {
        let mut number = 0;
        let pages: Vec<Vec<Value>> = sizes
            .iter()
            .map(|sizes| {
                sizes
                    .iter()
                    .map(|size| {
                        number += 1;
                        json!({"uri": format!("x:{number}"), "name": "n", "description": "d".repeat(*size)})
                    })
                    .collect()
            })
            .collect();
        let (listed, left_out) = read(List::Resources, &pages);
        let uris = |items: &[Value]| items.iter().map(|item| item["uri"].clone()).collect::<Vec<_>>();
        prop_assert_eq!(uris(&listed), uris(&pages.concat()));
        prop_assert_eq!(left_out, 0);
    }
}

#[test]
fn what_cannot_be_asked_for_is_left_out_and_counted() {
    let long = "x".repeat(3000);
    let resources =
        vec![json!({"uri": long, "name": "a"}), json!(7), json!({"name": "b"}), json!({"uri": "x:1"})];
    let (listed, left_out) = read(List::Resources, &[resources]);
    assert_eq!((listed, left_out), (vec![json!({"uri": "x:1"})], 3));
    let arguments = vec![json!({"name": "a"}); 33];
    let prompts = vec![json!({"name": "p", "arguments": arguments}), json!({"name": "q", "title": "Q"})];
    let (listed, left_out) = read(List::Prompts, &[prompts]);
    assert_eq!((listed, left_out), (vec![json!({"name": "q", "title": "Q", "arguments": []})], 1));
}

#[test]
fn a_list_that_names_its_own_page_or_a_foreign_cursor_ends() {
    let place = Position { cursor: Some("again".to_owned()), listed: 0 };
    let answer = json!({"prompts": [], "nextCursor": "again"});
    assert!(structured(&page(List::Prompts, &place, &answer).unwrap()).get("nextCursor").is_none());
    let answer = json!({"prompts": [], "nextCursor": "c".repeat(MAX_CURSOR_BYTES + 1)});
    assert!(structured(&page(List::Prompts, &place, &answer).unwrap()).get("nextCursor").is_none());
    assert!(page(List::Prompts, &place, &json!({"prompts": "none"})).is_err());
    for bad in ["", "x", "x:y", "-1:"] {
        assert!(Position::parse(Some(bad)).is_err(), "{bad}");
    }
}
