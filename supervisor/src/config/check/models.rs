//! Checks of `models`: how providers, models and limits fit together.

use std::collections::BTreeSet;

use talon_agent_settings::catalog::{Catalog, UnknownModelError};
use talon_agent_settings::{Budget, EmbeddingKeys, ModelKeys, ProviderEntry, ProviderKind};
use talon_plugin_config::document::origin::KeyPath;

use super::Check;

/// As the agent takes at most.
const MAX_DIMENSIONS: u32 = 8192;

impl Check<'_> {
    /// Returns the catalog, if it is valid, for checks of model names.
    pub(super) fn models(&mut self, models: &ModelKeys, path: &KeyPath) -> Option<Catalog> {
        let ModelKeys {
            providers,
            catalog,
            fallback,
            budget,
            default,
            summaries,
            embeddings,
            local_only,
            thinking: _,
        } = models;
        for (name, entry) in &providers.0 {
            let path = path.key("providers").key(name);
            for wrong in entry.problems(name).into_iter().chain(entry.base_url_problem()) {
                let path = wrong.key.map_or_else(|| path.clone(), |key| path.key(key));
                self.problem(&path, wrong.message, wrong.help);
            }
        }
        let names: BTreeSet<String> = providers.0.keys().cloned().collect();
        let catalog = match Catalog::new(catalog, &names) {
            Ok(catalog) => Some(catalog),
            Err(problems) => {
                for wrong in problems.0 {
                    let path = wrong.path.iter().fold(path.key("catalog"), |path, key| path.key(key));
                    self.problem(&path, wrong.message, &wrong.help);
                }
                None
            }
        };
        for sentence in fallback.problems() {
            let (key, message) = sentence.split_once(": ").unwrap_or(("models.fallback", &sentence));
            let (message, help) = message.split_once(": ").unwrap_or((message, "correct it"));
            let path = key.split('.').fold(KeyPath::top(), |path, key| path.key(key));
            self.problem(&path, message, help);
        }
        let Budget { per_session, per_day } = budget;
        if let (Some(session), Some(day)) = (per_session, per_day)
            && session > day
        {
            let message =
                format!("{session} for one session is more than per_day ({day}) gives to all of them");
            self.found.warning(&path.key("budget").key("per_session"), message, "lower it, or raise per_day");
        }
        for (key, name) in [("default", default), ("summaries", summaries)] {
            if let Some(name) = name {
                self.model(name, catalog.as_ref(), &path.key(key));
            }
        }
        if *local_only && !providers.0.is_empty() && !providers.0.values().any(ProviderEntry::is_local) {
            let help = "add a provider on this machine, or say local: true for one of yours";
            self.found.warning(
                &path.key("local_only"),
                "no provider is on this machine, so no model is asked",
                help,
            );
        }
        if let Some(embeddings) = embeddings {
            self.embeddings(embeddings, models, &path.key("embeddings"));
        }
        catalog
    }

    /// Checks that the provider of vectors is there, has them, and may be asked.
    fn embeddings(&mut self, embeddings: &EmbeddingKeys, models: &ModelKeys, path: &KeyPath) {
        let EmbeddingKeys { provider, model, dimensions, .. } = embeddings;
        if model.is_empty() {
            self.problem(&path.key("model"), "it names no model", "write the provider's name of one");
        }
        if dimensions.is_some_and(|dimensions| !(1..=MAX_DIMENSIONS).contains(&dimensions)) {
            let message = format!("a vector has 1 to {MAX_DIMENSIONS} numbers");
            self.problem(&path.key("dimensions"), message, "leave it out for the model's own");
        }
        let path = path.key("provider");
        let Some(entry) = models.providers.0.get(provider) else {
            let message = format!("no provider is called {provider:?}");
            return self.problem(&path, message, "list it under models.providers");
        };
        if !matches!(entry.kind, ProviderKind::Openai | ProviderKind::Ollama) {
            let message = format!("{provider} makes no vectors of texts");
            return self.problem(&path, message, "name a provider of the kind openai or ollama");
        }
        if models.local_only && !entry.is_local() {
            let message = format!("{provider} is not on this machine, so with local_only it is never asked");
            self.found.warning(&path, message, "name one on this machine, or leave models.embeddings out");
        }
    }

    /// Checks that a name refers to a model. Without a valid catalog this is unknown, and not reported.
    pub(super) fn model(&mut self, name: &str, catalog: Option<&Catalog>, path: &KeyPath) {
        let Some(Err(unknown)) = catalog.map(|catalog| catalog.find(name)) else { return };
        let UnknownModelError { requested, ambiguous, nearest } = unknown;
        if !ambiguous.is_empty() {
            let message = format!("several models are called {requested:?}: {}", ambiguous.join(", "));
            return self.problem(path, message, "write the provider with it");
        }
        let list = || "list it under models.catalog".to_owned();
        let help = nearest.first().map_or_else(list, |near| format!("did you mean {near}?"));
        self.problem(path, format!("no model is called {requested:?}"), &help);
    }
}
