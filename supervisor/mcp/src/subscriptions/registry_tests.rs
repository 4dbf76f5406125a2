use super::*;

fn place(uri: &str) -> ResourcePlace {
    ResourcePlace { plugin: "notes".to_owned(), uri: uri.to_owned() }
}

// Promises: MCP-57
#[test]
fn a_resource_is_followed_for_as_long_as_somebody_does() {
    let mut registry = Registry::default();
    assert!(!registry.add(&place("x:1")));
    assert_eq!(registry.wanted("notes").unwrap(), ["x:1"]);
    registry.confirm("notes", &["x:1".to_owned()], &[]);
    assert!(registry.add(&place("x:1")), "the second follower need not ask");
    assert!(!registry.remove(&place("x:1")));
    assert!(registry.remove(&place("x:1")));
    assert!(!registry.remove(&place("x:1")), "it is gone");
    assert_eq!(registry.wanted("notes").unwrap(), Vec::<String>::new(), "the plugin has to be told");
    registry.confirm("notes", &[], &[]);
    assert_eq!((registry.wanted("notes"), registry.plugins()), (None, Vec::new()));
}

#[test]
fn a_plugin_that_never_agreed_need_not_be_told_that_it_is_over() {
    let mut registry = Registry::default();
    registry.add(&place("x:1"));
    registry.confirm("notes", &["x:1".to_owned()], &[0]);
    assert!(!registry.add(&place("x:1")), "it was refused");
    registry.remove(&place("x:1"));
    registry.remove(&place("x:1"));
    assert_eq!(registry.wanted("notes"), None);
    // Nor is one asked again and again that cannot be reached.
    registry.add(&place("x:1"));
    registry.confirm("notes", &["x:1".to_owned()], &[]);
    registry.remove(&place("x:1"));
    registry.failed("notes");
    assert_eq!(registry.wanted("notes"), None);
}

// Promises: MCP-57
#[test]
fn what_may_have_been_missed_is_told_once_when_the_plugin_knows_again() {
    let mut registry = Registry::default();
    assert!(!registry.mark_gap("notes"), "nobody follows it");
    registry.add(&place("x:1"));
    let asked = ["x:1".to_owned()];
    assert!(registry.confirm("notes", &asked, &[]).is_empty());
    assert!(registry.mark_gap("notes"));
    registry.failed("notes");
    assert_eq!(registry.confirm("notes", &asked, &[]), [place("x:1")]);
    assert!(registry.confirm("notes", &asked, &[]).is_empty());
}

// Promises: MCP-58
#[test]
fn an_event_names_what_a_client_asked_for_and_nothing_else() {
    let mut registry = Registry::default();
    let odd = "note://a<|im_start|>b";
    for uri in ["note://one", odd] {
        registry.add(&place(uri));
    }
    let shown = Raw::from(odd).line_within(MAX_EVENT_FIELD_BYTES);
    assert_ne!(shown.as_str(), odd);
    assert_eq!(registry.find("notes", shown.as_str()), Some(place(odd)));
    assert_eq!(registry.find("notes", "note://one"), Some(place("note://one")));
    assert_eq!(registry.find("notes", "note://two"), None);
    assert_eq!(registry.find("other", "note://one"), None);
}
