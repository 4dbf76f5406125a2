//! The configuration of providers.

mod build;
mod proxy;

#[cfg(test)]
mod docs_tests;
#[cfg(test)]
mod tests;

pub use build::{Problem, Providers, providers};
pub(crate) use proxy::{ProxyError, proxy};
pub use talon_agent_settings::{
    Dialect, Environment, FileLookupError, Protocol, ProviderEntry, ProviderKeys as Config, ProviderKind,
    SettingsBundle, TimeSpan, Timeouts,
};
