use super::*;

// Promises: AGENT-64
#[test]
fn frugal_has_the_founding_numbers_whatever_the_window() {
    for window in [32_000, 128_000, 1_000_000] {
        let sections = ContextPlan::frugal().sections(Window(window), 750);
        assert_eq!(sections, Sections::default());
        let Sections { system, summary, recent, tool_results, tools, .. } = sections;
        assert_eq!([system, summary, recent, tool_results, tools], [500, 800, 2_000, 500, 1_500]);
    }
}

// Promises: AGENT-64
#[test]
fn balanced_is_the_default_and_its_sections_are_shares_of_what_may_be_used_without_a_warning() {
    let plan = ContextPlan::default();
    assert_eq!(plan.profile, ContextProfile::Balanced);
    let room = 96_000 - 750;
    let sections = plan.sections(Window(128_000), 750);
    assert_eq!((sections.recent, sections.tool_results), (room, room));
    assert_eq!((sections.system, sections.summary, sections.tools), (9_520, 4_760, 9_520));
    // Of a large window it uses 200,000; `full` all of it.
    assert_eq!(plan.sections(Window(1_000_000), 0).recent, 168_000);
    let full = ContextPlan { profile: ContextProfile::Full, ..plan };
    assert_eq!(full.sections(Window(1_000_000), 0).recent, 968_000);
    // A small window keeps the shares.
    assert_eq!(plan.sections(Window(8_000), 0).recent, 6_000);
    assert_eq!(plan.sections(Window(0), 750).recent, 0);
}

#[test]
fn each_number_can_be_set_and_none_is_beyond_the_window() {
    let keys = ContextKeys {
        window: Some(50_000),
        system: Some(1_000),
        tools: Some(1_000_000),
        turns: Some(20),
        min_result: Some(200),
        ..ContextKeys::default()
    };
    let sections = ContextPlan::from(&keys).sections(Window(128_000), 0);
    assert_eq!((sections.system, sections.tools, sections.recent), (1_000, 37_500, 37_500));
    assert_eq!((sections.turns, sections.min_result), ((20, 5), 200));
}
