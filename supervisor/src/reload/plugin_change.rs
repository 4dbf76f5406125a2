//! Changes of single plugins under the configuration that is in force.

use talon_plugin::{DownPolicy, Replacement};
use talon_plugin_config::PluginName;
use talon_plugin_config::discover::RejectedPlugin;
use talon_sanitize::Raw;

use super::outcome::ReplaceFailure;
use super::reloader::Reloader;
use crate::blocking::blocking;
use crate::discover;

impl Reloader {
    /// Scans a plugin's files, and replaces it by its new version under the active configuration.
    ///
    /// # Errors
    /// `ReplaceFailure`; then the running version stays.
    pub async fn replace(
        &self,
        name: &PluginName,
        if_down: DownPolicy,
    ) -> Result<Replacement, ReplaceFailure> {
        let (config, plugin) = (self.config(), name.clone());
        let found = blocking(move || discover::find_one(&config, &plugin)).await;
        let plugin = || name.clone();
        match found {
            Ok(Some(spec)) => Ok(self.parts().registry.replace(spec, if_down).await?),
            Ok(None) => Err(ReplaceFailure::Gone { plugin: plugin() }),
            Err(refused) => {
                let reason = Raw::from(&refused.reason).line();
                self.parts().registry.record_refused_replacement(name, &reason);
                Err(ReplaceFailure::Refused { plugin: plugin(), reason })
            }
        }
    }

    /// Registers a new plugin from the plugin directory.
    ///
    /// # Errors
    /// [`Refused`] if it does not pass its checks. That it has vanished again is not an error.
    pub(crate) async fn add(&self, name: &PluginName) -> Result<(), RejectedPlugin> {
        let (config, plugin) = (self.config(), name.clone());
        let Some(spec) = blocking(move || discover::find_one(&config, &plugin)).await? else { return Ok(()) };
        let path = spec.program.clone();
        match self.registry().register(spec) {
            Ok(_) => Ok(()),
            Err(error) => Err(RejectedPlugin { name: name.to_string(), path, reason: error.to_string() }),
        }
    }
}
