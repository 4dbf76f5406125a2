//! Why no model can be asked about observations.

use talon_agent_settings::Settings;
use talon_agent_settings::catalog::Catalog;

/// Why the loop can ask no model, with what to do; `None` if it can.
pub(crate) fn model_problem(settings: &Settings) -> Option<String> {
    let (keys, models) = (&settings.shadow, &settings.models);
    let providers = &models.providers.0;
    if providers.is_empty() {
        return Some(
            "no model can be asked: name a provider under models.providers, and its models under models.catalog".to_owned(),
        );
    }
    let which = match (keys.local_only, models.local_only) {
        (true, _) => "shadow.local_only",
        (false, true) => "models.local_only",
        (false, false) => return None,
    };
    if !providers.values().any(|entry| entry.is_local()) {
        return Some(format!(
            "{which} is set, and no provider of models.providers is on this machine: name one that is, such as ollama, or turn it off"
        ));
    }
    let model = keys.model.as_deref()?;
    let provider = provider_of(settings, model)?;
    let is_local = providers.get(&provider).is_some_and(|entry| entry.is_local());
    (!is_local).then(|| {
        format!(
            "{which} is set, and shadow.model is {model}, whose provider {provider} is not on this machine: name a model of a provider that is"
        )
    })
}

/// The provider of a model, by whatever name the configuration has for it.
fn provider_of(settings: &Settings, model: &str) -> Option<String> {
    let providers = settings.models.providers.0.keys().cloned().collect();
    // What is wrong with the catalog is told with the configuration.
    let catalog = Catalog::new(&settings.models.catalog, &providers).ok()?;
    catalog.find(model).ok().map(|entry| entry.id.provider.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(shadow: &str) -> Option<String> {
        let text = format!(
            "models:
  providers:
    cloud: {{ kind: openai, base_url: 'https://example.org/v1' }}
    home: {{ kind: openai, base_url: 'http://127.0.0.1:8080/v1' }}
  catalog:
    cloud/gpt: {{ alias: large, tier: premium, context_window: 1000, free: true }}
    home/small: {{ tier: cheap, context_window: 1000, free: true }}
shadow: {{ {shadow} }}"
        );
        model_problem(&serde_saphyr::from_str(&text).expect("settings"))
    }

    // Promises: SHADOW-36
    #[test]
    fn a_model_elsewhere_is_told_where_only_this_machine_may_be_asked() {
        assert_eq!(problem(""), None);
        assert_eq!(problem("model: large"), None);
        assert_eq!(problem("local_only: true"), None);
        for local in ["small", "home/small"] {
            assert_eq!(problem(&format!("local_only: true, model: {local}")), None);
        }
        for model in ["large", "cloud/gpt"] {
            let said = problem(&format!("local_only: true, model: {model}")).expect("a problem");
            assert!(said.contains("whose provider cloud is not on this machine"), "{said}");
        }
        let none = model_problem(&Settings::default()).expect("a problem");
        assert!(none.contains("models.providers"), "{none}");
    }
}
