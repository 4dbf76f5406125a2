//! Jobs that plugins propose.

use talon_store::limits::{MAX_DECLARED_PROPOSALS, MAX_PROPOSAL_BYTES, MAX_REJECTED_PROPOSALS};
use talon_store::{
    DeclaredProposals, JobProposal, NewProposal, ProposalDecision, ProposalState, Store, Timestamp,
};

use crate::support::{Fixture, cases};

cases![
    a_proposal_is_there_as_long_as_it_is_declared,
    a_plugin_that_has_said_nothing_keeps_its_proposals,
    a_decision_is_for_one_text,
    a_rejected_text_is_not_proposed_again,
    rejected_texts_are_bounded,
    decided_proposals_are_imported_once,
    what_no_proposal_can_be_is_refused,
];

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + seconds * 1000)
}

fn digest(text: &str) -> String {
    format!("{:0>64}", text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn new(job: &str, text: &str) -> NewProposal {
    let plugin = job.split('.').next().unwrap().to_owned();
    NewProposal { job: job.to_owned(), digest: digest(text), plugin, proposal: text.to_owned() }
}

fn decision(job: &str, text: &str, accept: bool) -> ProposalDecision {
    ProposalDecision { job: job.to_owned(), digest: digest(text), accept }
}

async fn declare(store: &Store, proposals: &[(&str, &str)], silent: &[&str], now: i64) -> Vec<String> {
    let declared = DeclaredProposals {
        proposals: proposals.iter().map(|(job, text)| new(job, text)).collect(),
        silent: silent.iter().map(|plugin| (*plugin).to_owned()).collect(),
    };
    let new = store.job_proposals().declare(declared, at(now)).await.unwrap();
    new.into_iter().map(|one| one.proposal).collect()
}

/// Every text with its state.
async fn all(store: &Store) -> Vec<(String, &'static str)> {
    let all = store.job_proposals().list().await.unwrap();
    all.into_iter().map(|one| (one.proposal, one.state.word())).collect()
}

async fn a_proposal_is_there_as_long_as_it_is_declared(Fixture { store, .. }: Fixture) {
    assert_eq!(declare(&store, &[("a.x", "1"), ("b.y", "2")], &[], 10).await, ["1", "2"]);
    assert!(declare(&store, &[("a.x", "1"), ("b.y", "2")], &[], 20).await.is_empty(), "it is not new");
    let stored = store.job_proposals().list().await.unwrap();
    assert_eq!((stored[0].job.as_str(), stored[0].plugin.as_str()), ("a.x", "a"));
    assert_eq!((stored[0].proposed_at, stored[0].decided_at), (at(10), None));
    assert_eq!(declare(&store, &[("b.y", "3")], &[], 30).await, ["3"]);
    assert_eq!(all(&store).await, [("3".to_owned(), "proposed")]);
    assert!(declare(&store, &[], &[], 40).await.is_empty());
    assert!(all(&store).await.is_empty());
}

async fn a_plugin_that_has_said_nothing_keeps_its_proposals(Fixture { store, .. }: Fixture) {
    declare(&store, &[("a.x", "1"), ("b.y", "2")], &[], 10).await;
    assert!(declare(&store, &[], &["a"], 20).await.is_empty());
    assert_eq!(all(&store).await, [("1".to_owned(), "proposed")]);
}

async fn a_decision_is_for_one_text(Fixture { store, .. }: Fixture) {
    declare(&store, &[("a.x", "1")], &[], 10).await;
    let proposals = store.job_proposals();
    assert_eq!(proposals.decide(decision("a.x", "other", true), at(20)).await.unwrap(), None);
    assert_eq!(proposals.decide(decision("b.x", "1", true), at(20)).await.unwrap(), None);
    let accepted = proposals.decide(decision("a.x", "1", true), at(30)).await.unwrap().unwrap();
    assert_eq!((accepted.state, accepted.decided_at), (ProposalState::Accepted, Some(at(30))));
    // A changed one is proposed beside it, and it stays when it is not declared any more.
    assert_eq!(declare(&store, &[("a.x", "2")], &[], 40).await, ["2"]);
    let both = [("1".to_owned(), "accepted"), ("2".to_owned(), "proposed")];
    assert_eq!(all(&store).await, both);
    assert!(proposals.decide(decision("a.x", "2", true), at(50)).await.unwrap().is_some());
    assert_eq!(all(&store).await, [("2".to_owned(), "accepted")]);
    // Accepted once more, nothing changes.
    let again = proposals.decide(decision("a.x", "2", true), at(60)).await.unwrap().unwrap();
    assert_eq!(again.decided_at, Some(at(50)));
    assert!(declare(&store, &[], &[], 70).await.is_empty());
    assert_eq!(all(&store).await, [("2".to_owned(), "accepted")]);
}

async fn a_rejected_text_is_not_proposed_again(Fixture { store, .. }: Fixture) {
    let proposals = store.job_proposals();
    declare(&store, &[("a.x", "1")], &[], 10).await;
    assert!(proposals.decide(decision("a.x", "1", false), at(20)).await.unwrap().is_some());
    assert!(declare(&store, &[], &[], 30).await.is_empty());
    assert!(declare(&store, &[("a.x", "1")], &[], 40).await.is_empty());
    assert_eq!(all(&store).await, [("1".to_owned(), "rejected")]);
    assert_eq!(declare(&store, &[("a.x", "2")], &[], 50).await, ["2"]);
    // The operator may think better of it, also the other way.
    assert!(proposals.decide(decision("a.x", "1", true), at(60)).await.unwrap().is_some());
    assert!(proposals.decide(decision("a.x", "1", false), at(70)).await.unwrap().is_some());
    assert_eq!(all(&store).await, [("1".to_owned(), "rejected"), ("2".to_owned(), "proposed")]);
}

async fn rejected_texts_are_bounded(Fixture { store, .. }: Fixture) {
    let proposals = store.job_proposals();
    let texts: Vec<String> = (0..=MAX_REJECTED_PROPOSALS).map(|number| format!("{number:05}")).collect();
    let declared: Vec<(&str, &str)> = texts.iter().map(|text| ("a.x", text.as_str())).collect();
    declare(&store, &declared, &[], 10).await;
    // All but the last, without a request for each.
    for (second, text) in texts.iter().enumerate().take(MAX_REJECTED_PROPOSALS as usize) {
        let rejected = JobProposal {
            job: "b.x".to_owned(),
            digest: digest(text),
            plugin: "b".to_owned(),
            state: ProposalState::Rejected,
            proposal: text.clone(),
            proposed_at: at(0),
            decided_at: Some(at(second as i64)),
        };
        assert!(proposals.import(rejected).await.unwrap());
    }
    let last = texts.last().unwrap();
    assert!(proposals.decide(decision("a.x", last, false), at(100_000)).await.unwrap().is_some());
    let rejected: Vec<JobProposal> = proposals
        .list()
        .await
        .unwrap()
        .into_iter()
        .filter(|one| one.state == ProposalState::Rejected)
        .collect();
    assert_eq!(rejected.len(), MAX_REJECTED_PROPOSALS as usize);
    assert!(
        rejected.iter().any(|one| one.job == "a.x")
            && !rejected.iter().any(|one| one.decided_at == Some(at(0)))
    );
}

async fn decided_proposals_are_imported_once(Fixture { store, .. }: Fixture) {
    let proposals = store.job_proposals();
    declare(&store, &[("a.x", "1"), ("a.y", "2")], &[], 10).await;
    proposals.decide(decision("a.x", "1", true), at(20)).await.unwrap();
    proposals.decide(decision("a.y", "2", false), at(20)).await.unwrap();
    let exported = proposals.list().await.unwrap();
    for one in exported.clone() {
        assert!(!proposals.import(one).await.unwrap(), "it is there");
    }
    let other = JobProposal { digest: digest("3"), ..exported[0].clone() };
    assert!(!proposals.import(other.clone()).await.unwrap(), "another text of it is accepted");
    assert!(proposals.import(JobProposal { state: ProposalState::Rejected, ..other }).await.unwrap());
    let elsewhere = JobProposal { job: "c.x".to_owned(), ..exported[0].clone() };
    assert!(proposals.import(elsewhere).await.unwrap());
    assert_eq!(proposals.list().await.unwrap().len(), 4);
}

async fn what_no_proposal_can_be_is_refused(Fixture { store, .. }: Fixture) {
    let proposals = store.job_proposals();
    let large = "x".repeat(MAX_PROPOSAL_BYTES + 1);
    let refused = [
        vec![NewProposal { proposal: large, ..new("a.x", "1") }],
        vec![NewProposal { digest: "12".to_owned(), ..new("a.x", "1") }],
        vec![NewProposal { proposal: "\0".to_owned(), ..new("a.x", "1") }],
        vec![NewProposal { plugin: String::new(), ..new("a.x", "1") }],
        vec![new("a.x", "1"); MAX_DECLARED_PROPOSALS + 1],
    ];
    for proposed in refused {
        let declared = DeclaredProposals { proposals: proposed, silent: Vec::new() };
        assert!(proposals.declare(declared, at(10)).await.is_err());
    }
    let undecided = JobProposal {
        job: "a.x".to_owned(),
        digest: digest("1"),
        plugin: "a".to_owned(),
        state: ProposalState::Proposed,
        proposal: "1".to_owned(),
        proposed_at: at(0),
        decided_at: None,
    };
    assert!(proposals.import(undecided).await.is_err());
    assert!(proposals.list().await.unwrap().is_empty());
}
