use super::*;

fn job(name: &str, every: &str) -> JobProposal {
    JobProposal { name: name.to_owned(), every: every.to_owned(), ..JobProposal::default() }
}

fn action(name: &str, roles: &[&str], jobs: Vec<JobProposal>) -> Action {
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    Action { name: name.to_owned(), roles, proposed_jobs: jobs, ..Action::default() }
}

fn declared(plugin: &str, actions: Vec<Action>) -> Declared {
    Declared::of(vec![Declaration { plugin: plugin.to_owned(), actions: Some(actions) }])
}

// Promises: EXT-159
#[test]
fn what_can_be_a_job_is_proposed_and_the_rest_is_said() {
    let actions = vec![
        action("tidy", &["scheduled_task"], vec![job("", "1h"), job("weekly", "7d"), job("bad", "soon")]),
        action("tool", &[], vec![job("", "1h")]),
        action("other", &["scheduled_task"], vec![job("weekly", "1d")]),
    ];
    let found = declared("files", actions);
    let ids: Vec<&str> = found.proposals.keys().map(String::as_str).collect();
    assert_eq!(ids, ["files.tidy", "files.weekly"]);
    assert_eq!(found.proposals["files.weekly"].action, "files.tidy");
    let problems: Vec<(&str, &str)> =
        found.invalid.iter().map(|one| (one.job.as_str(), one.problem.as_str())).collect();
    assert_eq!(problems.len(), 3);
    assert!(problems[0].0 == "files.bad" && problems[0].1.contains("is no interval"), "{problems:?}");
    assert!(problems[1].1.contains("does not declare the role"), "{problems:?}");
    assert!(problems[2].1.contains("two jobs of this name"), "{problems:?}");
}

// Promises: EXT-160
#[test]
fn a_flood_of_proposals_is_bounded_and_said() {
    let jobs = (0..10_000).map(|number| job(&format!("j{number}"), "1h")).collect();
    let found = declared("files", vec![action("tidy", &["scheduled_task"], jobs)]);
    assert_eq!((found.proposals.len(), found.invalid.len()), (MAX_PROPOSALS, 1));
    assert!(found.invalid[0].problem.contains("proposes 10000 jobs, and 16 are the most"), "{found:?}");
    let huge = JobProposal { name: "x".repeat(1 << 20), cron: "*".repeat(1 << 20), ..JobProposal::default() };
    let found = declared("files", vec![action("tidy", &["scheduled_task"], vec![huge])]);
    assert!(found.invalid[0].job.len() < 100 && found.invalid[0].problem.len() < 600, "{found:?}");
    let many = (0..1000).map(|plugin| Declaration {
        plugin: format!("p{plugin}"),
        actions: Some(vec![action(
            "a",
            &["scheduled_task"],
            (0..16).map(|j| job(&format!("j{j}"), "1h")).collect(),
        )]),
    });
    let found = Declared::of(many.collect());
    assert_eq!(found.proposals.len(), MAX_DECLARED_PROPOSALS);
    assert!(found.invalid[0].problem.contains("all plugins together"), "{:?}", found.invalid[0]);
}

// Promises: EXT-164
#[test]
fn an_accepted_job_that_is_proposed_no_more_has_a_problem() {
    let found = declared("files", vec![action("tidy", &["scheduled_task"], vec![job("", "1h")])]);
    assert_eq!(found.problem_of("files.tidy", "files.tidy"), None);
    let gone = found.problem_of("files.other", "files.tidy").expect("a problem");
    assert!(gone.contains("talon schedule reject files.other"), "{gone}");
    assert!(found.problem_of("files.tidy", "files.moved").is_some());
    let silent = Declared { silent: vec!["files".to_owned()], ..Declared::default() };
    assert_eq!(silent.problem_of("files.tidy", "files.tidy"), None, "it may propose it in a moment");
    assert!(Declared::default().problem_of("files.tidy", "files.tidy").is_some());
}
