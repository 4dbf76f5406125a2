//! Applies changes of files.

use futures_util::future::join_all;
use talon_plugin::{DownPolicy, EventKind, NewEvent};
use talon_plugin_config::PluginName;
use talon_plugin_config::discover::RejectedPlugin;
use talon_sanitize::Raw;

use super::subject::{Subject, SubjectState};
use super::watch::Watch;
use crate::config::lua;
use crate::discover;
use crate::reload::{ReloadTrigger, Reloader};

impl Watch {
    /// Applies all changes concurrently, so that a slow one does not delay the others. A changed
    /// configuration comes first, because it determines what the others should be.
    pub(super) async fn apply(&self, settled: Vec<(Subject, SubjectState)>) {
        if settled.iter().any(|(subject, _)| *subject == Subject::Config) {
            tracing::info!("the config file changed: it is read anew");
            self.reloader.reload_automatically(ReloadTrigger::FileChange).await;
        } else if settled.iter().any(|(subject, _)| *subject == Subject::LuaScripts) {
            tracing::info!("there are other Lua scripts: the configuration is read anew");
            self.reloader.reload_automatically(ReloadTrigger::FileChange).await;
        }
        let acts = settled.into_iter().map(|(subject, now)| async move {
            match (subject, now) {
                (Subject::Config | Subject::LuaScripts, _) => {}
                (Subject::LuaDirectory, now) => lua_directory(&self.reloader, &now).await,
                (Subject::Unregistered(path), SubjectState::Refused(reason)) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    let refused = RejectedPlugin { name, path, reason };
                    discover::report_refused(&[refused], self.reloader.registry().events());
                }
                (Subject::Unregistered(_), _) => {}
                (Subject::PluginDir, now) => plugin_dir(&self.reloader, &now),
                (Subject::Plugin(name), now) => plugin(&self.reloader, &name, now).await,
            }
        });
        join_all(acts).await;
    }
}

fn plugin_dir(reloader: &Reloader, now: &SubjectState) {
    let message = match now {
        SubjectState::Refused(reason) => {
            format!("{}; its plugins go on as they are", Raw::from(reason).line())
        }
        SubjectState::Present(_) | SubjectState::Gone | SubjectState::Unknown => {
            "plugin_dir can be read again".to_owned()
        }
    };
    tracing::warn!("{message}");
    reloader.registry().events().emit(NewEvent::new(EventKind::Supervisor, message));
}

/// The plugin that runs scripts begins anew in a jail that shows the other directory. While there is none, it goes on.
async fn lua_directory(reloader: &Reloader, now: &SubjectState) {
    let Ok(name) = PluginName::new(lua::PLUGIN) else { return };
    let is_there = reloader.registry().get(lua::PLUGIN).is_some();
    if is_there && matches!(now, SubjectState::Present(_)) {
        plugin(reloader, &name, now.clone()).await;
    }
}

async fn plugin(reloader: &Reloader, name: &PluginName, now: SubjectState) {
    let registry = reloader.registry();
    let is_there = registry.get(name.as_str()).is_some();
    let tools = &reloader.config().plugins.tools;
    match now {
        SubjectState::Present(_) if is_there => {
            tracing::info!(plugin = %name, "its files changed: it is replaced");
            // Errors are reported where they occur, and shown with the plugin.
            let replaced = reloader.replace(name, DownPolicy::StayDown).await;
            if let Err(error) = &replaced {
                tracing::warn!(plugin = %name, "{error}");
            }
            let problem = replaced.err().map(|error| error.to_string());
            reloader.record("reload", name.as_str(), problem.as_deref());
        }
        SubjectState::Present(_) => {
            tracing::info!(plugin = %name, "new in plugin_dir");
            if let Err(refused) = reloader.add(name).await {
                discover::report_refused(&[refused], registry.events());
            }
        }
        SubjectState::Gone if is_there && tools.watch && !tools.plugins.contains_key(name.as_str()) => {
            tracing::info!(plugin = %name, "gone from plugin_dir: it is stopped and removed");
            registry.deregister(name).await;
        }
        SubjectState::Gone => {
            registry.record_refused_replacement(name, &"its file is gone; the running process stays".into())
        }
        SubjectState::Unknown => {}
        SubjectState::Refused(reason) => {
            registry.record_refused_replacement(name, &Raw::from(&reason).line())
        }
    }
}
