use super::*;

fn drop_table() -> ConfirmPattern {
    ConfirmPattern {
        name: "drop table".to_owned(),
        pattern: r"(?i)\bdrop\s+table\b".to_owned(),
        unless: Some(r"(?i)\btemp_".to_owned()),
        matches: vec![
            "DROP TABLE users".to_owned(),
            r#"["psql", "-c", "drop /* all */ table t"]"#.to_owned(),
        ],
        no_match: vec!["drop table temp_1".to_owned(), "select 1".to_owned()],
    }
}

fn error(change: impl FnOnce(&mut ConfirmPattern)) -> String {
    let mut pattern = drop_table();
    change(&mut pattern);
    let file = ConfirmPatternFile { patterns: vec![drop_table(), pattern] };
    file.compile().expect_err("one is wrong").to_string()
}

// Promises: AGENT-83
#[test]
fn a_pattern_holds_to_its_examples_or_is_refused_with_the_one_that_it_misses() {
    let file = ConfirmPatternFile { patterns: vec![drop_table()] };
    let compiled = file.compile().expect("it holds to its examples");
    assert!(compiled[0].finds("drop table temp_1; drop table t"), "each statement counts");
    for (error, wanted) in [
        (
            error(|one| one.matches.push("DROP  VIEW v".to_owned())),
            "does not find its example \"DROP  VIEW v\"",
        ),
        (error(|one| one.no_match.push("drop table t".to_owned())), "finds its example \"drop table t\""),
        (error(|one| one.matches.clear()), "at least one example"),
        (error(|one| one.name.clear()), "needs a name"),
        (error(|one| one.pattern = "(".to_owned()), "has the expression \"(\""),
        (error(|one| one.unless = Some("(?=x)".to_owned())), "look-around"),
    ] {
        assert!(error.starts_with("pattern 2 (") && error.contains(wanted), "{error}");
    }
    let many = ConfirmPatternFile { patterns: vec![drop_table(); MAX_FILE_PATTERNS + 1] };
    assert!(many.compile().is_err());
}
