//! The configuration of providers.

mod build;
mod proxy;

#[cfg(test)]
mod docs_tests;
#[cfg(test)]
mod tests;

pub use build::{Problem, Providers, providers};
pub(crate) use proxy::proxy;
pub use talon_agent_settings::{
    Dialect, Environment, ProviderEntry, ProviderKeys as Config, ProviderKind, SettingsBundle, TimeSpan,
    Timeouts,
};
