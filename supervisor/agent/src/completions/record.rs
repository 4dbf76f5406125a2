//! What is counted, traced and logged of one completion, however it ends.

use std::sync::Arc;

use talon_llm::route::fallback::Answered;
use tokio::time::Instant;

use super::refusal::RefusalError;
use crate::metrics::Metrics;
use crate::traces::{OpenSpan, SpanContext, Tracer};

/// The outcome of a completion whose plugin let go of it before there was one.
const ABANDONED: &str = "cancelled";
/// The outcome of a completion with an answer.
const DONE: &str = "ok";

/// One completion, from its request to its end. Dropped without an outcome, it was abandoned.
pub(super) struct CompletionRecord {
    metrics: Arc<Metrics>,
    tracer: Arc<Tracer>,
    plugin: String,
    began: Instant,
    outcome: &'static str,
    span: Option<OpenSpan>,
}

impl CompletionRecord {
    /// Begins with the request.
    pub(super) fn begin(metrics: Arc<Metrics>, tracer: Arc<Tracer>, plugin: &str) -> Self {
        let began = Instant::now();
        Self { metrics, tracer, plugin: plugin.to_owned(), began, outcome: ABANDONED, span: None }
    }

    /// Begins its span, below that of the call that it is for.
    pub(super) fn trace(&mut self, call: Option<SpanContext>, session: &str) {
        self.span = call.map(|call| {
            OpenSpan::begin(call.child(), "chat".to_owned())
                .client()
                .text("gen_ai.operation.name", "chat")
                .text("gen_ai.conversation.id", session)
                .text("talon.plugin", self.plugin.as_str())
                .text("talon.purpose", "plugin")
        });
    }

    /// Notes who answered, and what it used.
    pub(super) fn answered(&mut self, answered: &Answered) {
        let Some(mut span) = self.span.take() else { return };
        let (model, usage) = (&answered.model, answered.charge.usage);
        span.rename(format!("chat {}", model.name));
        let span = span
            .text("gen_ai.provider.name", self.tracer.provider(&model.provider))
            .text("gen_ai.request.model", model.name.as_str())
            .number("gen_ai.usage.input_tokens", usage.input_tokens)
            .number("gen_ai.usage.output_tokens", usage.output_tokens)
            .number("talon.attempts", u64::try_from(answered.attempts.len()).unwrap_or(u64::MAX));
        self.span = Some(span);
    }

    /// Notes how it ended.
    pub(super) fn finish<T>(&mut self, made: &Result<T, RefusalError>) {
        self.outcome = made.as_ref().map_or_else(RefusalError::word, |_| DONE);
    }
}

impl Drop for CompletionRecord {
    fn drop(&mut self) {
        let seconds = self.began.elapsed().as_secs_f64();
        self.metrics.count_plugin_completion(&self.plugin, self.outcome, seconds);
        if let Some(span) = self.span.take() {
            let span = if self.outcome == DONE { span } else { span.failed(self.outcome) };
            span.end(&self.tracer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(metrics: &Metrics, outcome: &str) -> f64 {
        let families = metrics.families();
        let family = families.iter().find(|family| family.name == "talon_agent_plugin_completions_total");
        let samples = &family.expect("it is listed").samples;
        let found =
            samples.iter().find(|sample| sample.labels.get("outcome").is_some_and(|it| it == outcome));
        found.map_or(0.0, |sample| sample.value)
    }

    // Promises: EXT-179
    #[tokio::test]
    async fn a_completion_is_counted_and_traced_however_it_ends() {
        let (metrics, tracer) = (Arc::<Metrics>::default(), Arc::<Tracer>::default());
        tracer.set_sample(Some(1.0));
        let call = tracer.begin(None);
        let begin = || CompletionRecord::begin(Arc::clone(&metrics), Arc::clone(&tracer), "lua");
        let mut done = begin();
        done.trace(call, "s");
        done.finish(&Ok(()));
        drop(done);
        let mut refused = begin();
        refused.trace(call, "s");
        refused.finish::<()>(&Err(RefusalError::NoModel));
        drop(refused);
        let mut abandoned = begin();
        abandoned.trace(call, "s");
        drop(abandoned);
        for outcome in ["ok", "no_model", "cancelled"] {
            assert_eq!(counted(&metrics, outcome), 1.0, "{outcome}");
        }
        let spans = tracer.next().await.spans;
        let errors: Vec<Option<&str>> =
            spans.iter().map(|span| span.texts.get("error.type").map(String::as_str)).collect();
        assert_eq!(errors, [None, Some("no_model"), Some("cancelled")]);
        let parent = call.expect("it is traced").header();
        for span in &spans {
            let above: String = span.parent_span_id.iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(parent.contains(&above) && span.texts["talon.plugin"] == "lua", "{span:?}");
        }
        // On the plugin's own account there is no turn, and so no trace.
        begin().trace(None, "s");
        assert_eq!(counted(&metrics, "cancelled"), 2.0);
    }
}
