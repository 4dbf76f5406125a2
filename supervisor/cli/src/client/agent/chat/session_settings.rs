//! Executes the commands for what a session wants otherwise than the configuration.

use talon_proto::agent::{Sampling, Session, UpdateSessionRequest};
use talon_sanitize::sanitized;

use super::conversation::Conversation;
use super::setting_command::SettingCommand;
use crate::client::agent::formatting::single_line;
use crate::client::agent::session_overrides::sampling_text;
use crate::failure::Failure;

impl Conversation<'_> {
    pub(super) async fn execute_setting(&mut self, setting: SettingCommand) -> Result<(), Failure> {
        match setting {
            SettingCommand::ShowSampling => {
                let sampling = self.sampling().await?;
                let said = sampling_text(sampling.as_ref());
                let said = if said.is_empty() { "as configured".to_owned() } else { said.join(", ") };
                self.out.err_line(sanitized!("answers: {}", single_line(&said)));
            }
            SettingCommand::Temperature(temperature) => {
                self.change_sampling(|sampling| sampling.temperature = temperature).await?;
            }
            SettingCommand::TopP(top_p) => {
                self.change_sampling(|sampling| sampling.top_p = top_p).await?;
            }
            SettingCommand::MaxTokens(max_tokens) => {
                self.change_sampling(|sampling| sampling.max_tokens = max_tokens).await?;
            }
            SettingCommand::ShowVerbosity => {
                let verbosity = match self.current_session().await? {
                    Some(session) => session.verbosity,
                    None => self.overrides.verbosity.clone().unwrap_or_default(),
                };
                let verbosity = if verbosity.is_empty() { "as the model does" } else { &verbosity };
                self.out.err_line(sanitized!("how detailed answers are: {}", single_line(verbosity)));
            }
            SettingCommand::Verbosity(verbosity) => {
                self.overrides.verbosity = Some(verbosity.clone()).filter(|word| !word.is_empty());
                let request =
                    UpdateSessionRequest { verbosity: Some(verbosity), ..UpdateSessionRequest::default() };
                self.update_session(request).await?;
            }
            SettingCommand::ShowVerbose => {
                let verbose = match self.current_session().await? {
                    Some(session) => session.verbose,
                    None => self.overrides.verbose.unwrap_or(false),
                };
                let shown = if verbose { "on" } else { "off" };
                self.out.err_line(sanitized!(
                    "channels show arguments and results of calls: {}",
                    single_line(shown)
                ));
            }
            SettingCommand::Verbose(verbose) => {
                self.overrides.verbose = Some(verbose);
                let request =
                    UpdateSessionRequest { verbose: Some(verbose), ..UpdateSessionRequest::default() };
                self.update_session(request).await?;
            }
            SettingCommand::ShowMetadata => {
                let metadata = match self.current_session().await? {
                    Some(session) => session.metadata.into_iter().collect(),
                    None => self.overrides.metadata.clone(),
                };
                if metadata.is_empty() {
                    self.out.err_line("nothing is noted about this session");
                }
                for (key, value) in metadata {
                    self.out.err_line(sanitized!("{}={}", single_line(&key), single_line(&value)));
                }
            }
            SettingCommand::Metadata(entries) => {
                self.overrides.metadata.retain(|(key, _)| entries.iter().all(|(changed, _)| changed != key));
                let set = entries.iter().filter(|(_, value)| !value.is_empty()).cloned();
                self.overrides.metadata.extend(set);
                let metadata = entries.into_iter().collect();
                self.update_session(UpdateSessionRequest { metadata, ..UpdateSessionRequest::default() })
                    .await?;
            }
        }
        Ok(())
    }

    /// The session, if there is one yet.
    async fn current_session(&self) -> Result<Option<Session>, Failure> {
        match &self.session_id {
            Some(id) => self.session(id).await.map(Some),
            None => Ok(None),
        }
    }

    async fn sampling(&self) -> Result<Option<Sampling>, Failure> {
        Ok(match self.current_session().await? {
            Some(session) => session.sampling,
            None => self.overrides.sampling(),
        })
    }

    /// Changes a part of the sampling; the request replaces all of it.
    async fn change_sampling(&mut self, change: impl FnOnce(&mut Sampling)) -> Result<(), Failure> {
        let mut sampling = self.sampling().await?.unwrap_or_default();
        change(&mut sampling);
        self.overrides.set_sampling(sampling);
        let sampling = Some(sampling);
        self.update_session(UpdateSessionRequest { sampling, ..UpdateSessionRequest::default() }).await
    }
}
