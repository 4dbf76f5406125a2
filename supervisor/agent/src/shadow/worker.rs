//! Asks models, one question at a time, and has time pass.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use talon_llm::route::cost::Day;
use talon_llm::route::fallback::{AnswerEvent, Attempt, ChainRequest};
use talon_llm::route::router::Pins;
use talon_llm::route::{Money, Task};
use talon_proto::agent::{GetGhostResponse, Ghost, GhostAction, Observation, ShadowLogEntry};
use tokio::time::{Instant, sleep};

use super::account::QuestionAccount;
use super::goal::begin_turns;
use super::observation::trigger_line;
use super::pending_question::PendingQuestion;
use super::question::{Proposal, Question, proposal, question};
use super::record::{saturated, unix_ms};
use super::shadow_loop::{ASKING, FAILED, WAITING};
use super::views::STORE_PAUSE;
use crate::agent::{Agent, Setup};
use crate::costs::shadow_session;

/// How often it is looked what time has changed, if nothing is known to be due earlier.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// How long a question may take. 60 s: later the person does something else.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(60);

/// Asks models what observations mean, begins the turns of approved ghosts, and has ghosts expire, for as long as it is
/// polled.
pub(crate) async fn watch_over(agent: Arc<Agent>) {
    // Who was asked for last: the others come first.
    let mut last = String::new();
    loop {
        let mut refused = false;
        let mut have_begun;
        // What people decided and what is over does not wait for everybody's questions.
        loop {
            if let Err(error) = agent.shadow.tidy().await {
                let error = talon_error_chain::error_chain(&error);
                tracing::warn!(error, "what time changes of ghosts cannot be stored");
                refused = true;
            }
            have_begun = begin_turns(&agent).await;
            if refused {
                break;
            }
            let Some(pending) = agent.shadow.next_question(&last).await else { break };
            last.clone_from(&pending.sender);
            if let Err(error) = answer(&agent, pending).await {
                let error = talon_error_chain::error_chain(&error);
                tracing::warn!(error, "what became of an observation cannot be stored");
                refused = true;
                break;
            }
        }
        if refused {
            sleep(STORE_PAUSE).await;
            continue;
        }
        let due = agent.shadow.next_change().await.map(|at| at.saturating_sub(unix_ms()));
        let longest = if have_begun { LOOK_INTERVAL } else { STORE_PAUSE };
        let wait = due.map_or(longest, |ms| Duration::from_millis(ms.max(1)).min(longest));
        tokio::select! {
            () = agent.shadow.wake.notified() => {}
            () = sleep(wait) => {}
        }
    }
}

/// Asks one question, and notes what came of it.
async fn answer(agent: &Agent, pending: PendingQuestion) -> Result<(), talon_store::Error> {
    let setup = agent.setup();
    let mut entry = ShadowLogEntry {
        id: pending.entry.clone(),
        sender: pending.sender.clone(),
        unix_ms: unix_ms(),
        observation_id: pending.observation.id.clone(),
        trigger: pending.observation.trigger.clone(),
        outcome: ASKING.to_owned(),
        redactions: pending.observation.redactions,
        ..ShadowLogEntry::default()
    };
    if let Some(known) = agent.shadow.answered_entry(&pending.entry).await {
        return agent.shadow.settle(pending, known, None).await;
    }
    if !setup.settings.shadow.enabled {
        entry.outcome = FAILED.to_owned();
        entry.note = "the shadow loop was turned off".to_owned();
        return agent.shadow.settle(pending, entry, None).await;
    }
    let asked = question(&pending.observation, &setup.environment.sanitizer);
    entry.sent.clone_from(&asked.sent);
    if !agent.shadow.note(entry.clone()).await? {
        // The person was forgotten: what was seen of them is not sent.
        return Ok(());
    }
    let ghost = ask(&setup, &pending, &asked, &mut entry).await.map(|found| {
        entry.ghost_id.clone_from(&entry.id);
        ghost(&setup, &pending, found, &entry)
    });
    agent.shadow.settle(pending, entry, ghost).await
}

/// Asks the models; fills in what it cost, and how it ended.
async fn ask(
    setup: &Setup,
    pending: &PendingQuestion,
    asked: &Question,
    entry: &mut ShadowLogEntry,
) -> Option<Proposal> {
    let keys = &setup.settings.shadow;
    let local_only = keys.local_only || setup.settings.models.local_only;
    let pins = Pins { request: keys.model.clone(), local_only, ..Pins::default() };
    let spent = Money::from_picodollars(pending.spent_pico_usd.into());
    let account = QuestionAccount::new(keys.budget.per_day, spent);
    let session = shadow_session(&pending.sender);
    let request = ChainRequest {
        request: &asked.request,
        task: Task::Summarization,
        complexity: None,
        input_tokens: asked.input_tokens,
        vision: false,
        pins: &pins,
        session: &session,
        plugin: None,
        account: Some(&account),
        day: Day::of(SystemTime::now()),
        deadline: Some(Instant::now() + QUESTION_TIMEOUT),
    };
    let answered = setup.environment.chain.ask(&request, &mut |_: AnswerEvent| {}).await;
    let attempts: &[Attempt] = match &answered {
        Ok(answered) => &answered.attempts,
        Err(exhausted) => &exhausted.attempts,
    };
    entry.models = attempts.iter().map(|attempt| format!("{}/{}", attempt.provider, attempt.model)).collect();
    entry.models.sort();
    entry.models.dedup();
    let is_local = |provider: &str| {
        setup
            .settings
            .models
            .providers
            .0
            .get(provider)
            .is_some_and(talon_agent_settings::ProviderEntry::is_local)
    };
    entry.local = attempts.iter().all(|attempt| is_local(&attempt.provider));
    entry.cost_pico_usd = saturated(attempts.iter().map(|attempt| attempt.cost.picodollars()).sum());
    if attempts.is_empty() {
        // Nothing left.
        entry.sent.clear();
    }
    let answered = match answered {
        Ok(answered) => answered,
        Err(exhausted) => {
            entry.input_tokens = account.tokens();
            entry.outcome = FAILED.to_owned();
            entry.note = exhausted.to_string();
            return None;
        }
    };
    entry.output_tokens = answered.charge.usage.output_tokens;
    entry.input_tokens = account.tokens().saturating_sub(entry.output_tokens);
    match proposal(&answered.answer) {
        Ok(Some(found)) => {
            entry.outcome = "ghost".to_owned();
            Some(found)
        }
        Ok(None) => {
            entry.outcome = "nothing".to_owned();
            None
        }
        Err(note) => {
            entry.outcome = FAILED.to_owned();
            entry.note = note;
            None
        }
    }
}

fn ghost(
    setup: &Setup,
    pending: &PendingQuestion,
    found: Proposal,
    entry: &ShadowLogEntry,
) -> GetGhostResponse {
    let Observation { repository, directory, trigger: rule, .. } = &pending.observation;
    let keys = &setup.settings.shadow;
    let no_act = unseen(keys.visible.as_deref(), repository, directory);
    let built_in = |label: &str, kind: &str| GhostAction {
        label: label.to_owned(),
        r#type: kind.to_owned(),
        payload_json: String::new(),
    };
    let mut actions = Vec::new();
    if no_act.is_empty() {
        actions.push(built_in("Do it", "approve"));
        actions.extend(found.actions);
    }
    actions.push(built_in("Dismiss", "dismiss"));
    let created_unix_ms = unix_ms();
    let lifetime = talon_agent_settings::milliseconds(keys.expires_after.get());
    let observation =
        if found.observation.is_empty() { pending.observation.finding.clone() } else { found.observation };
    GetGhostResponse {
        ghost: Some(Ghost {
            id: pending.entry.clone(),
            trigger: trigger_line(&pending.observation),
            observation,
            proposal: found.proposal,
            confidence: found.confidence,
            actions,
            state: WAITING.to_owned(),
            created_unix_ms,
            expires_unix_ms: created_unix_ms.saturating_add(lifetime),
            sender: pending.sender.clone(),
            repository: repository.clone(),
            directory: directory.clone(),
            rule: rule.clone(),
            no_act,
            ..Ghost::default()
        }),
        source: Some(pending.observation.clone()),
        passed: passed(setup),
        sent: Some(entry.clone()),
    }
}

/// Which rules of the policy it passed, with their limits.
fn passed(setup: &Setup) -> Vec<String> {
    let keys = &setup.settings.shadow;
    let mut passed = vec![
        "the same finding was not told of before".to_owned(),
        "the loop does not rest, and the repository is not muted".to_owned(),
        "the rate of the trigger let it through".to_owned(),
    ];
    if keys.boundaries_only {
        passed.push("a piece of work had ended".to_owned());
    }
    if let Some(hours) = keys.quiet() {
        passed.push(format!("it is outside of the quiet hours {hours}"));
    }
    passed.push(format!("the last ghost is at least {:?} old", keys.cooldown));
    passed.push(format!("there were fewer than {} ghosts within the hour", keys.max_ghosts_per_hour));
    passed.push("tokens and money of the day were left".to_owned());
    passed
}

/// Why a ghost about this place offers no act; empty if it may.
fn unseen(visible: Option<&[PathBuf]>, repository: &str, directory: &str) -> String {
    let place = if directory.is_empty() { repository } else { directory };
    let Some(visible) = visible.filter(|_| !place.is_empty()) else { return String::new() };
    let seen = |place: &str| visible.iter().any(|root| Path::new(place).starts_with(root));
    if seen(place) {
        return String::new();
    }
    format!(
        "no tool can see {place}: grant a plugin the directory (sandbox.fs), or name it in shadow.visible"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-12
    #[test]
    fn what_no_tool_can_see_is_said() {
        let roots = [PathBuf::from("/srv/code"), PathBuf::from("/home/ada/work")];
        assert_eq!(unseen(Some(&roots), "/srv/code/app", "/srv/code/app/src"), "");
        assert_eq!(unseen(Some(&roots), "", "/home/ada/work"), "");
        assert_eq!(unseen(None, "", "/anywhere"), "");
        assert_eq!(unseen(Some(&[]), "", ""), "");
        for place in ["/srv/code-2", "/srv", "/home/ada"] {
            assert!(unseen(Some(&roots), "", place).starts_with(&format!("no tool can see {place}:")));
        }
    }
}
