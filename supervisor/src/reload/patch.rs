//! Changes of the overlay while the supervisor runs: checked whole, then in force at once, as after a reload.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use talon_config_json::message;

use super::overlay_write::OverlayWrite;
use super::reloader::{NextConfig, Reloader};
use super::trigger::ReloadTrigger;
use crate::blocking::blocking;
use crate::config::overlay::{
    Edit, History, KeyChange, MAX_OVERLAY_BYTES, OverlayDocument, OverlayFile, OverlayKeys, StorageError,
};
use crate::config::{self, LoadOptions, OverlayUse};

/// What somebody wants changed.
#[derive(Debug, Clone)]
pub(crate) struct OverlayPatch {
    pub(crate) edits: Vec<Edit>,
    /// Only says what would be done.
    pub(crate) dry_run: bool,
    /// The revision that was seen; `None` for whatever it is.
    pub(crate) revision: Option<String>,
    /// Who wants it, for the history.
    pub(crate) by: String,
}

/// What became of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PatchOutcome {
    /// Whether it is in force, or would be.
    pub(crate) accepted: bool,
    pub(crate) problems: Vec<PatchProblem>,
    pub(crate) warnings: Vec<String>,
    pub(crate) changed: Vec<String>,
    pub(crate) needs_restart: Vec<String>,
    /// The number in the history; 0 if nothing was changed.
    pub(crate) number: u64,
}

/// Why it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatchProblem {
    /// The key, or empty for the whole.
    pub(crate) key: String,
    pub(crate) message: String,
}

/// Why it was not even tried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PatchError {
    #[error("the overlay is ignored: start talon without --no-overlay to change configuration while it runs")]
    NoOverlay,
    #[error("the configuration is not the one that was read: it is of revision {0} now; read it again")]
    OtherRevision(String),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("{0}")]
    Unreadable(String),
}

impl Reloader {
    /// A text that changes whenever a value of the configuration does.
    pub(crate) fn revision(&self) -> String {
        let loaded = self.loaded();
        let values = |config: &config::Config| serde_json::to_vec(config).unwrap_or_default();
        let digest = Sha256::new()
            .chain_update(values(&self.config()))
            .chain_update(values(&loaded.config))
            .finalize();
        hex::encode(&digest[..8])
    }

    /// The changes that were made, newest first; none if the overlay is ignored.
    pub(crate) async fn config_changes(&self) -> Vec<talon_proto::host::ConfigChange> {
        let Some(path) = self.loaded().overlay.clone() else { return Vec::new() };
        blocking(move || History::beside(&path).read()).await
    }

    /// Changes the overlay. It runs to its end even if the caller stops waiting. What is refused changes nothing.
    ///
    /// # Errors
    /// [`PatchError`]. That the configuration would be wrong is a normal result.
    pub(crate) async fn patch(&self, patch: OverlayPatch) -> Result<PatchOutcome, PatchError> {
        let reloader = self.clone();
        match tokio::spawn(async move { reloader.patch_now(patch).await }).await {
            Ok(patched) => patched,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    async fn patch_now(&self, patch: OverlayPatch) -> Result<PatchOutcome, PatchError> {
        let _turn = self.turn().await;
        let OverlayPatch { edits, dry_run, revision, by } = patch;
        let Some(path) = self.loaded().overlay.clone() else { return Err(PatchError::NoOverlay) };
        let current = self.revision();
        if revision.is_some_and(|revision| revision != current) {
            return Err(PatchError::OtherRevision(current));
        }
        let refused = |problems| Ok(PatchOutcome { problems, ..PatchOutcome::default() });
        let not_allowed = self.refused_edits(&edits);
        if !not_allowed.is_empty() {
            return refused(not_allowed);
        }
        let file = OverlayFile::at(path);
        let reading = file.clone();
        let text = blocking(move || reading.read()).await?;
        let before = OverlayDocument::parse(&text, file.path()).map_err(|problems| {
            PatchError::Unreadable(problems.first().map(ToString::to_string).unwrap_or_default())
        })?;
        let mut after = before.clone();
        edits.iter().for_each(|edit| after.apply(edit));
        if after == before {
            return Ok(PatchOutcome { accepted: true, ..PatchOutcome::default() });
        }
        let whole = |message| PatchProblem { key: String::new(), message };
        let changes = changes(&edits, &before, &after);
        let written: Arc<str> = after.text().into();
        if written.len() > MAX_OVERLAY_BYTES {
            let message = format!(
                "the overlay would have more than {MAX_OVERLAY_BYTES} bytes: write these values in the config file"
            );
            return refused(vec![whole(message)]);
        }
        let options = LoadOptions {
            overlay: OverlayUse::Candidate(Arc::clone(&written)),
            ..self.parts().options.clone()
        };
        let loaded = match self.reader().read(move || config::load(&options)).await {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(errors)) => return refused(problems(&errors)),
            Err(stuck) => return refused(vec![whole(stuck.to_string())]),
        };
        let write = OverlayWrite::new(file.clone(), written, text.into());
        let next = NextConfig::Read(Box::new(loaded));
        let outcome = self.take_over(next, dry_run, ReloadTrigger::Overlay, Some(write)).await;
        let mut patched = PatchOutcome {
            accepted: outcome.accepted,
            problems: outcome.problems.into_iter().map(whole).collect(),
            warnings: outcome.warnings,
            changed: outcome.changed,
            needs_restart: outcome.needs_restart,
            number: 0,
        };
        if patched.accepted && !dry_run {
            let history = History::beside(file.path());
            match blocking(move || history.add(by, changes)).await {
                Ok(number) => patched.number = number,
                // It is in force, and in the audit log.
                Err(error) => {
                    patched.warnings.push(format!("the change is in force and not in the history: {error}"))
                }
            }
        }
        Ok(patched)
    }

    /// The edits that the overlay may not have.
    fn refused_edits(&self, edits: &[Edit]) -> Vec<PatchProblem> {
        let keys = OverlayKeys::new(&self.config().gateway.config_keys);
        let refused = |edit: &Edit| {
            // What is removed only gives way to the file.
            let message = keys.refusal(&edit.key, edit.value.as_ref()?)?;
            Some(PatchProblem { key: edit.key.to_string(), message })
        };
        edits.iter().filter_map(refused).collect()
    }
}

fn problems(errors: &config::ConfigErrors) -> Vec<PatchProblem> {
    let one = |problem: &config::Problem| {
        let help = problem.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
        PatchProblem { key: problem.key.to_string(), message: format!("{}{help}", problem.message) }
    };
    errors.problems().iter().map(one).collect()
}

/// What differs at the edited keys.
fn changes(edits: &[Edit], before: &OverlayDocument, after: &OverlayDocument) -> Vec<KeyChange> {
    let one = |edit: &Edit| {
        let value = |document: &OverlayDocument| document.get(&edit.key).map(message);
        let (before, after) = (value(before), value(after));
        (before != after).then(|| KeyChange { key: edit.key.steps().to_vec(), before, after })
    };
    edits.iter().filter_map(one).collect()
}
