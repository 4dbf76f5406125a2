//! Prepared answers from a file: for the demonstration, for tests, and for trying a configuration out. No
//! model is asked, and every answer's model says so.

mod file;
mod gates;
mod matching;
mod play;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;

use crate::config::{Environment, FileLookupError, Timeouts};
use crate::model::{Answer, ErrorClass, ProviderError, Request};
use crate::provider::{ChunkListener, Provider};
use crate::remote::{Assembly, Failure, Quote};
use gates::Gates;
use matching::{Pattern, TranscriptPosition};

pub use file::{Fault, MatchCondition, Script, ScriptedAnswer, ScriptedCall};

/// The answers if there is no file.
const BUILT_IN: &str = include_str!("default.yaml");
/// What the model of every answer starts with.
const MODEL: &str = "scripted";

/// A provider that plays a script.
pub struct Scripted {
    name: String,
    /// Where the answers come from, for messages.
    source: String,
    timeouts: Timeouts,
    model: String,
    answers: Vec<LoadedAnswer>,
    probes: Vec<Fault>,
    probed: AtomicU32,
    gates: Gates,
}

/// An answer with its compiled condition.
struct LoadedAnswer {
    pattern: Pattern,
    prepared: ScriptedAnswer,
    played: AtomicU32,
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("the file with the answers: {0}")]
    File(#[from] FileLookupError),
    /// The file is not text.
    #[error("the file with the answers, {path}, holds no text: name one in YAML or JSON", path = .0.display())]
    NoText(PathBuf),
    /// The script is invalid.
    #[error("the answers in {place} cannot be played: {reason}")]
    Unreadable {
        /// Which.
        place: String,
        /// Why, and where.
        reason: String,
    },
}

impl Scripted {
    /// Reads a script from a file, YAML or JSON, or takes the one that is built in.
    ///
    /// # Errors
    /// [`ScriptError`]
    pub fn load(
        name: &str,
        file: Option<&Path>,
        timeouts: Timeouts,
        environment: &dyn Environment,
    ) -> Result<Self, ScriptError> {
        let Some(path) = file else {
            return Self::parse(name, "the built-in script", BUILT_IN, timeouts);
        };
        let bytes = environment.file(path)?;
        let text = std::str::from_utf8(bytes).map_err(|_| ScriptError::NoText(path.to_owned()))?;
        Self::parse(name, &path.display().to_string(), text, timeouts)
    }

    /// Reads a script from a text.
    ///
    /// # Errors
    /// [`ScriptError`]
    pub fn parse(name: &str, place: &str, text: &str, timeouts: Timeouts) -> Result<Self, ScriptError> {
        let script: Script = serde_saphyr::from_str(text).map_err(|error| ScriptError::Unreadable {
            place: place.to_owned(),
            reason: error.to_string(),
        })?;
        Self::new(name, place, script, timeouts)
    }

    /// A provider that plays a script.
    ///
    /// # Errors
    /// [`ScriptError`] if a pattern is none.
    pub fn new(name: &str, place: &str, script: Script, timeouts: Timeouts) -> Result<Self, ScriptError> {
        let ready = |(index, prepared): (usize, ScriptedAnswer)| {
            let pattern = Pattern::new(&prepared.when).map_err(|error| ScriptError::Unreadable {
                place: place.to_owned(),
                reason: format!("answer {}: {error}", index + 1),
            })?;
            Ok::<_, ScriptError>(LoadedAnswer { pattern, prepared, played: AtomicU32::new(0) })
        };
        Ok(Self {
            name: name.to_owned(),
            source: place.to_owned(),
            timeouts,
            model: script.model.map_or_else(|| MODEL.to_owned(), |model| format!("{MODEL}:{model}")),
            answers: script.answers.into_iter().enumerate().map(ready).collect::<Result<_, _>>()?,
            probes: script.probes,
            probed: AtomicU32::new(0),
            gates: Gates::default(),
        })
    }

    /// Releases every answer that waits for `name`, now and later.
    pub fn release(&self, name: &str) {
        self.gates.open(name);
    }

    /// The first answer that matches and is not used up.
    fn choose(&self, place: &TranscriptPosition<'_>) -> Option<&ScriptedAnswer> {
        let free = |ready: &&LoadedAnswer| {
            let Some(times) = ready.prepared.times else { return true };
            let more = |played| (played < times).then_some(played + 1);
            ready.played.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
        };
        self.answers.iter().filter(|ready| ready.pattern.fits(place)).find(free).map(|ready| &ready.prepared)
    }

    fn error(&self, failure: Failure) -> ProviderError {
        failure.into_error(&self.name, &[])
    }
}

#[async_trait]
impl Provider for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    async fn ask(
        &self,
        request: &Request,
        listener: &mut dyn ChunkListener,
    ) -> Result<Answer, ProviderError> {
        let place = TranscriptPosition::of(request);
        let Some(prepared) = self.choose(&place) else {
            let message = format!(
                "no answer in {} fits turn {}, step {}, after {}: add one, or configure a provider with a model",
                self.source,
                place.turn,
                place.step,
                Quote(place.user)
            );
            return Err(self.error(Failure::new(ErrorClass::Request, message)));
        };
        let mut assembly = Assembly::new(&self.name, request, listener);
        assembly.set_model(&self.model);
        play::play(&self.timeouts, &self.gates, prepared, request, &place, &mut assembly)
            .await
            .map_err(|failure| self.error(failure))?;
        Ok(assembly.finish())
    }

    async fn probe(&self) -> Result<(), ProviderError> {
        let turn = self.probed.fetch_add(1, Ordering::Relaxed) as usize;
        match self.probes.get(turn) {
            Some(fault) => Err(self.error(fault.failure())),
            None => Ok(()),
        }
    }
}
