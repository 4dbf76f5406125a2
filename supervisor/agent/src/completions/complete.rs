//! One completion.

use std::sync::Arc;
use std::time::SystemTime;

use talon_llm::model::Finish;
use talon_llm::route::Task;
use talon_llm::route::cost::{AccountError, Day};
use talon_llm::route::fallback::{AnswerEvent, Answered, ChainRequest, ExhaustedError, ExhaustedReason};
use talon_proto::model::{self, CompleteRequest, CompleteResponse};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::payer::Payer;
use super::plugin::{Limits, PluginModels};
use super::record::CompletionRecord;
use super::refusal::RefusalError;
use super::request::Prompt;
use crate::agent::{Agent, Setup};

/// Makes a completion. Dropping the future cancels it, as do the end of its call and `closed`.
pub(super) async fn complete(
    agent: &Agent,
    plugin: &Arc<PluginModels>,
    request: CompleteRequest,
    closed: &CancellationToken,
) -> Result<CompleteResponse, RefusalError> {
    let mut record =
        CompletionRecord::begin(Arc::clone(&agent.metrics), Arc::clone(&agent.tracer), &plugin.name);
    let made = answer(agent, plugin, request, closed, &mut record).await;
    record.finish(&made);
    made
}

async fn answer(
    agent: &Agent,
    plugin: &Arc<PluginModels>,
    request: CompleteRequest,
    closed: &CancellationToken,
    record: &mut CompletionRecord,
) -> Result<CompleteResponse, RefusalError> {
    let (limits, setup) = (plugin.limits(), agent.setup());
    let prompt = Prompt::parse(request, &limits.grant, &setup.environment.sanitizer)?;
    let local_only = setup.settings.models.local_only;
    let calls = &setup.environment.plugin_calls;
    let payer = Payer::find(plugin, &limits.grant, &prompt.call_id, calls, &agent.costs, local_only).await?;
    let (ended, session) = (payer.ended(), payer.session());
    record.trace(payer.trace(), session);
    let made = ask(&setup, plugin, &limits, &prompt, &payer);
    let made = tokio::select! {
        biased;
        () = ended.cancelled() => Err(RefusalError::CallEnded),
        () = closed.cancelled() => Err(RefusalError::Ending),
        made = made => made,
    };
    match &made {
        Ok(answered) => {
            record.answered(answered);
            let model = answered.model.to_string();
            tracing::info!(target: "agent", plugin = plugin.name, session, model, "a plugin's completion was made");
        }
        Err(error) => {
            tracing::info!(target: "agent", plugin = plugin.name, session, %error, "a plugin's completion was not made");
        }
    }
    made.map(|answered| response(*answered, &prompt))
}

/// Waits for a place, and asks the models.
async fn ask(
    setup: &Setup,
    plugin: &PluginModels,
    limits: &Limits,
    prompt: &Prompt,
    payer: &Payer,
) -> Result<Box<Answered>, RefusalError> {
    let timeout = limits.grant.timeout;
    let deadline = Instant::now() + timeout;
    // The semaphore is never closed, so an error is a missed deadline.
    let _place = match timeout_at(deadline, limits.places.acquire()).await {
        Ok(Ok(place)) => place,
        Ok(Err(_)) | Err(_) => return Err(RefusalError::TimedOut(timeout)),
    };
    payer.check_budget()?;
    let pins = payer.pins(&prompt.alias);
    let ask = ChainRequest {
        request: &prompt.request,
        task: Task::Subagent,
        complexity: None,
        input_tokens: prompt.input_tokens,
        vision: false,
        pins: &pins,
        session: payer.session(),
        plugin: Some(&plugin.name),
        account: Some(payer),
        day: Day::of(SystemTime::now()),
        deadline: Some(deadline),
    };
    match setup.environment.chain.ask(&ask, &mut |_: AnswerEvent| {}).await {
        Ok(answered) => Ok(Box::new(answered)),
        Err(exhausted) => {
            tracing::warn!(target: "agent", plugin = plugin.name, %exhausted, "no model answered a plugin");
            Err(refused(&exhausted, timeout))
        }
    }
}

fn response(answered: Answered, prompt: &Prompt) -> CompleteResponse {
    let Answered { answer, model, charge, .. } = answered;
    let mut text = answer.text;
    let finish = match (prompt.cut(&mut text), answer.finish) {
        (true, _) => "stop_sequence",
        // Without tools there is nothing to call.
        (false, Finish::Stop | Finish::ToolCalls) => "stop",
        (false, Finish::Length) => "length",
        (false, Finish::Filtered) => "filtered",
        (false, Finish::Refused) => "refused",
    };
    let usage = model::Usage {
        input_tokens: charge.usage.input_tokens,
        output_tokens: charge.usage.output_tokens,
        estimated: charge.estimated,
    };
    CompleteResponse { text, model: model.to_string(), finish: finish.to_owned(), usage: Some(usage) }
}

/// What the plugin is told. Names of other models, and what providers say, are in the log.
fn refused(exhausted: &ExhaustedError, timeout: std::time::Duration) -> RefusalError {
    match exhausted.reason {
        ExhaustedReason::OverBudget(_) => RefusalError::SharedBudget,
        ExhaustedReason::Account(AccountError::OverBudget { budget, left, most }) => {
            RefusalError::OwnBudget { budget, left, most }
        }
        ExhaustedReason::Account(AccountError::TooManyRequests { most }) => {
            RefusalError::TooManyToday { most }
        }
        ExhaustedReason::DeadlineExceeded { .. } => RefusalError::TimedOut(timeout),
        ExhaustedReason::NoRoute(_)
        | ExhaustedReason::Final(_)
        | ExhaustedReason::AllFailed
        | ExhaustedReason::CannotWithdraw(_) => RefusalError::NoModel,
    }
}
