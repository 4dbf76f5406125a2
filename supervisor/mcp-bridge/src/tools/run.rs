//! What is done for a call of a tool: its request to the server, and the questions until there is an answer.

use std::collections::VecDeque;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, InputResponses};
use serde_json::{Value, json};
use talon_sdk::proto::{InputRequest, InputResponse};
use talon_sdk::{Context, Output, ToolError};
use tokio::sync::oneshot;

use super::arguments::ServerArguments;
use crate::elicitation::{AskedQuestion, CallPlace, Parked, ParkedCalls, Question, Refusal, result};
use crate::request::SentRequest;
use crate::results;
use crate::roots::Roots;
use crate::server::request_text::RawArguments;
use crate::server_handle::ServerHandle;

/// How often a tool may ask for something before it answers; the official libraries take as many rounds.
const MAX_ROUNDS: usize = 10;
/// How much a tool may ask for in one round: each is a question to a person.
const MAX_ASKED_AT_ONCE: usize = 8;

/// A call of a tool, from its first request to its result, over all questions in between.
pub(crate) struct Run {
    tool: String,
    params: CallToolRequestParams,
    raw: RawArguments,
    place: CallPlace,
    takes_questions: bool,
    rounds: usize,
    /// Why the last question that could not be asked was declined.
    declined: Option<Refusal>,
    step: Step,
}

/// What is next.
enum Step {
    /// The request has to be sent.
    Send,
    /// It was sent.
    Wait(SentRequest),
    /// Before it is sent again, these are asked.
    Collect { asked: VecDeque<(String, Question)>, answers: InputResponses },
    /// The request of the server waits for an answer, and ours for its result.
    Asked(SentRequest, oneshot::Sender<Value>),
    /// The question of this key waits for an answer.
    AskedFor { key: String, asked: VecDeque<(String, Question)>, answers: InputResponses },
}

impl Run {
    pub(super) fn new(tool: String, args: ServerArguments, place: CallPlace, takes_questions: bool) -> Self {
        let params = CallToolRequestParams::new(tool.clone()).with_arguments(args.object);
        Self {
            tool,
            params,
            raw: args.raw,
            place,
            takes_questions,
            rounds: 0,
            declined: None,
            step: Step::Send,
        }
    }

    /// Continues with a user's answer.
    pub(super) fn resume(mut self, response: &InputResponse) -> Self {
        let answer = result(response);
        self.step = match self.step {
            Step::Asked(sent, waiting) => {
                // The server may have taken its question back meanwhile.
                let _ = waiting.send(answer);
                Step::Wait(sent)
            }
            Step::AskedFor { key, asked, mut answers } => {
                answers.insert(key, answer);
                Step::Collect { asked, answers }
            }
            other => other,
        };
        self
    }

    /// Continues until there is an answer or a question.
    pub(super) async fn go_on(
        mut self,
        server: &ServerHandle,
        parked: &ParkedCalls<Self>,
        cx: &Context,
    ) -> Result<Output, ToolError> {
        loop {
            match std::mem::replace(&mut self.step, Step::Send) {
                Step::Send => {
                    let mut request = CallToolRequest::new(self.params.clone());
                    request.extensions.insert(self.raw.clone());
                    let request = ClientRequest::CallToolRequest(request);
                    self.step = Step::Wait(SentRequest::send(server, request).await?);
                }
                Step::Wait(mut sent) => {
                    let answered = tokio::select! {
                        answered = sent.answer(server, cx) => Ok(answered?),
                        asked = self.place.asked() => Err(asked),
                    };
                    match answered {
                        Err(AskedQuestion { question, answer }) => {
                            self.step = Step::Asked(sent, answer);
                            match self.park(parked, question) {
                                Ok(output) => return Ok(output),
                                Err(run) => self = run.decline(),
                            }
                        }
                        Ok(answer) => match self.next_round(&answer, server, cx).await? {
                            Some(step) => self.step = step,
                            None => return self.finish(answer),
                        },
                    }
                }
                Step::Collect { mut asked, answers } => match asked.pop_front() {
                    None => self.params.input_responses = Some(answers),
                    Some((key, question)) => {
                        self.step = Step::AskedFor { key, asked, answers };
                        match self.park(parked, question) {
                            Ok(output) => return Ok(output),
                            Err(run) => self = run.decline(),
                        }
                    }
                },
                // Only a parked run is there, and it is resumed first.
                waiting @ (Step::Asked(..) | Step::AskedFor { .. }) => {
                    self.step = waiting;
                    self = self.decline();
                }
            }
        }
    }

    /// Parks it until the user has answered. If that cannot be, it is given back.
    fn park(self, calls: &ParkedCalls<Self>, question: Question) -> Result<Output, Box<Self>> {
        let Question { text, schema, form } = question;
        let parked = Parked { tool: self.tool.clone(), form, run: self };
        match calls.park(parked) {
            Ok(id) => Ok(Output::question(text, InputRequest { id, schema })),
            Err(parked) => {
                tracing::warn!("too many calls wait for an answer of their user: a question is declined");
                Err(Box::new(parked.run))
            }
        }
    }

    fn decline(self) -> Self {
        self.resume(&InputResponse { action: "decline".to_owned(), ..InputResponse::default() })
    }

    /// What has to be done before the request is sent again; nothing if the answer is a result, or asks for what there
    /// is not.
    async fn next_round(
        &mut self,
        answer: &Value,
        server: &ServerHandle,
        cx: &Context,
    ) -> Result<Option<Step>, ToolError> {
        let granted = server.sampling.is_granted();
        let Some(Requirements { asked, mut answers, sampled, declined }) =
            Requirements::of(answer, &server.roots, self.takes_questions, granted)
        else {
            return Ok(None);
        };
        self.declined = declined.or_else(|| self.declined.take());
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Err(ToolError::new(format!(
                "the tool asked for something {MAX_ROUNDS} times without an answer: it is given up"
            )));
        }
        for (key, params) in sampled {
            let completion = server.sampling.answer(&params, cx.call_id()).await.map_err(|error| {
                ToolError::new(format!("the tool asked a model for something, and got nothing: {error}"))
            })?;
            answers.insert(key, completion);
        }
        self.params.request_state = answer.get("requestState").and_then(Value::as_str).map(str::to_owned);
        Ok(Some(Step::Collect { asked, answers }))
    }

    /// The answer. What was not asked is said in it, because the server only learns that it was declined.
    fn finish(self, answer: Value) -> Result<Output, ToolError> {
        let output = results::answer(answer)?;
        match self.declined.or_else(|| self.place.declined()) {
            None => Ok(output),
            Some(why) => note(
                output,
                &format!("[The tool asked its user something, and it was declined at once: {why}.]"),
            ),
        }
    }
}

/// What a tool of the current revision needs in place of its result.
#[derive(Debug, PartialEq)]
struct Requirements {
    /// What only the user can answer.
    asked: VecDeque<(String, Question)>,
    /// What is answered already.
    answers: InputResponses,
    /// What models are asked.
    sampled: Vec<(String, Value)>,
    /// Why one of the questions is not asked.
    declined: Option<Refusal>,
}

impl Requirements {
    /// Nothing if it is a result, or needs what there is not: then it is an error.
    fn of(answer: &Value, roots: &Roots, takes_questions: bool, sampling: bool) -> Option<Self> {
        if answer.get("resultType")?.as_str()? != "input_required" {
            return None;
        }
        let (mut asked, mut answers, mut declined) = (VecDeque::new(), InputResponses::new(), None);
        let mut sampled = Vec::new();
        let none = serde_json::Map::new();
        let requests = answer.get("inputRequests").map_or(Some(&none), Value::as_object)?;
        if requests.len() > MAX_ASKED_AT_ONCE || (requests.is_empty() && answer.get("requestState").is_none())
        {
            return None;
        }
        for (key, request) in requests {
            match request.get("method")?.as_str()? {
                "roots/list" => {
                    answers.insert(key.clone(), roots.answer()?);
                }
                "sampling/createMessage" if sampling => {
                    sampled.push((key.clone(), request.get("params")?.clone()));
                }
                "elicitation/create" if takes_questions => match Question::of(request.get("params")?) {
                    Ok(question) => asked.push_back((key.clone(), question)),
                    Err(why) => {
                        tracing::info!("the MCP server asks its user something: declined, because {why}");
                        declined = Some(why);
                        answers.insert(key.clone(), json!({ "action": "decline" }));
                    }
                },
                _ => return None,
            }
        }
        Some(Self { asked, answers, sampled, declined })
    }
}

/// The answer with a note of the bridge below its text.
fn note(output: Output, note: &str) -> Result<Output, ToolError> {
    let text = format!("{}\n\n{note}", output.content());
    let noted = match output.structured_content() {
        Some(structured) => Output::text(text).structured(structured)?,
        None => Output::text(text),
    };
    Ok(output.media().iter().cloned().fold(noted, Output::with_media))
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
