//! Calls that wait for a user's answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_arguments::form::Form;
use talon_sdk::ToolError;
use talon_sdk::proto::InputResponse;

/// How long a call waits for an answer: a person reads, looks something up, and answers. After that it is cancelled at
/// the server.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// How many calls wait at most. With one question for each call of a server there is rarely a second one; further
/// questions are declined.
const MAX_PARKED: usize = 64;
/// The random bytes of an id: 128 bits, so that only who was asked can answer.
const ID_BYTES: usize = 16;

/// A call that waits.
pub(crate) struct Parked<R> {
    /// The tool that was called.
    pub(crate) tool: String,
    /// What an answer has to fit.
    pub(crate) form: Form,
    /// What the call was doing.
    pub(crate) run: R,
}

/// All of them, by the ids of their questions. Clones share them.
pub(crate) struct ParkedCalls<R> {
    calls: Arc<Mutex<HashMap<String, Parked<R>>>>,
}

impl<R> Clone for ParkedCalls<R> {
    fn clone(&self) -> Self {
        Self { calls: Arc::clone(&self.calls) }
    }
}

impl<R> Default for ParkedCalls<R> {
    fn default() -> Self {
        Self { calls: Arc::default() }
    }
}

impl<R: Send + 'static> ParkedCalls<R> {
    /// Parks a call, and returns the id of its question. It is dropped without an answer in time.
    ///
    /// # Errors
    /// The call, if too many wait, or there are no random numbers.
    pub(crate) fn park(&self, call: Parked<R>) -> Result<String, Box<Parked<R>>> {
        let mut random = [0; ID_BYTES];
        if getrandom::fill(&mut random).is_err() {
            return Err(Box::new(call));
        }
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        {
            let mut calls = self.calls.lock();
            if calls.len() >= MAX_PARKED {
                return Err(Box::new(call));
            }
            calls.insert(id.clone(), call);
        }
        let (calls, late) = (self.clone(), id.clone());
        tokio::spawn(async move {
            tokio::time::sleep(MAX_WAIT).await;
            let call = calls.calls.lock().remove(&late);
            if call.is_some() {
                tracing::info!(
                    "a question had no answer for {} s: the call is cancelled at the MCP server",
                    MAX_WAIT.as_secs()
                );
            }
        });
        Ok(id)
    }

    /// Takes the call that an answer is for. One that does not fit leaves it parked.
    ///
    /// # Errors
    /// There is none, or the answer does not fit; as the caller reads it.
    pub(crate) fn take(&self, tool: &str, response: &InputResponse) -> Result<R, ToolError> {
        let mut calls = self.calls.lock();
        let Some(call) = calls.get(&response.id).filter(|call| call.tool == tool) else {
            return Err(ToolError::new(format!(
                "this question is not open any more: it was answered, had no answer for {} s, or the MCP server was started \
                 again; call the tool anew",
                MAX_WAIT.as_secs()
            )));
        };
        if response.action == "accept"
            && let Err(error) = call.form.check(&response.content_json)
        {
            return Err(ToolError::new(format!(
                "the answer does not fit the question: {error}; the question is still open"
            )));
        }
        match calls.remove(&response.id) {
            Some(call) => Ok(call.run),
            None => Err(ToolError::new("this question is not open any more")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(run: u32) -> Parked<u32> {
        let form = r#"{"properties": {"a": {"type": "string"}}, "required": ["a"]}"#;
        Parked { tool: "t".to_owned(), form: Form::parse(form).unwrap(), run }
    }

    fn answer(id: &str, content: &str) -> InputResponse {
        let (action, content_json) = if content.is_empty() { ("decline", "") } else { ("accept", content) };
        InputResponse { id: id.to_owned(), action: action.to_owned(), content_json: content_json.to_owned() }
    }

    // Promises: MCP-42
    #[tokio::test(start_paused = true)]
    async fn a_parked_call_is_resumed_once_by_an_answer_that_fits() {
        let calls = ParkedCalls::default();
        let id = calls.park(parked(1)).map_err(drop).unwrap();
        let says = |refused: Result<u32, ToolError>| refused.unwrap_err().message().to_owned();
        assert!(says(calls.take("other", &answer(&id, ""))).contains("not open any more"));
        assert!(says(calls.take("t", &answer("guess", ""))).contains("not open any more"));
        assert!(says(calls.take("t", &answer(&id, "{}"))).contains("\"a\" is missing"));
        assert_eq!(calls.take("t", &answer(&id, r#"{"a":"x"}"#)).unwrap(), 1);
        assert!(calls.take("t", &answer(&id, "")).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_bounded_in_number_and_time() {
        let calls = ParkedCalls::default();
        let ids: Vec<String> = (0..64).map(|run| calls.park(parked(run)).map_err(drop).unwrap()).collect();
        assert_eq!(calls.park(parked(64)).map_err(|call| call.run), Err(64));
        // The clock is paused: the calls' own timers are due.
        tokio::time::sleep(MAX_WAIT * 2).await;
        assert!(calls.take("t", &answer(&ids[0], "")).is_err());
        assert!(calls.park(parked(65)).is_ok());
    }
}
