//! The images of a turn, and what people are notified of.

use talon_llm::model::{Image, Message, Request, ShownImages};
use talon_llm::route::fallback::Answered;
use talon_llm::route::router::RejectionReason;
use talon_proto::plugin::Media;

use super::drive::TurnRun;
use crate::media::{PluginImages, of_result};
use crate::tools::Tool;

/// The most models that a notice names; it counts the rest.
const MAX_NAMED: usize = 5;

impl TurnRun<'_> {
    /// Loads the bytes of the images that a question shows.
    pub(super) async fn load_images(&self, messages: &[Message]) -> ShownImages {
        let images: Vec<&Image> = images(messages).collect();
        self.environment.images.load(&self.spec.caller.session, &images).await
    }

    /// Stores the images that a tool returned. Without a store the model is informed.
    pub(super) async fn plugin_images(&self, tool: &Tool, media: Vec<Media>) -> PluginImages {
        let limits = self.environment.images.limits();
        let (plugin, action) = (&tool.plugin, &tool.action);
        let (told, shown) = of_result(plugin, action, media, tool.returns_images, &limits);
        if shown.is_empty() {
            return told;
        }
        match self.environment.images.add(&self.spec.caller.session, &shown).await {
            Ok(()) => told,
            Err(error) => {
                tracing::warn!(target: "agent", session = %self.spec.caller.session, %plugin, %action, %error, "images of a tool are not stored");
                self.notice(
                    "warn",
                    format!(
                        "The images that {plugin}.{action} returned are not shown to the model: {error}."
                    ),
                );
                told
            }
        }
    }

    /// Notifies people, once in a turn, of models that are not asked since they cannot look at pictures.
    pub(super) fn notify_vision(&mut self) {
        if self.spec.images.is_empty() || std::mem::replace(&mut self.account.warned_vision, true) {
            return;
        }
        let request = Request::default();
        let Ok((_, route)) = self.environment.chain.route(&self.routing_request(&request, 0)) else { return };
        let without = route.passed_over.iter().filter(|skipped| skipped.why == RejectionReason::NoVision);
        let without: Vec<String> = without.map(|skipped| skipped.model.to_string()).collect();
        if without.is_empty() {
            return;
        }
        let named = without[..without.len().min(MAX_NAMED)].join(", ");
        let more = match without.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.notice(
            "info",
            format!("Your message has images, so models that cannot look at pictures are not asked: {named}{more}."),
        );
    }

    /// Notifies people, once in a turn, of images that the answering model was not shown.
    pub(super) fn notify_unseen_images(&mut self, answered: &Answered, images: usize) {
        let sees =
            |model: &_| self.environment.chain.catalog().get(model).is_none_or(|entry| entry.model.vision);
        if images == 0 || sees(&answered.model) || std::mem::replace(&mut self.account.warned_unseen, true) {
            return;
        }
        let text = format!(
            "{} cannot look at pictures: {} described to it by type and size. If it can, write vision: true at its entry in \
             models.catalog.",
            answered.model,
            if images == 1 {
                "an image of this session was".to_owned()
            } else {
                format!("{images} images of this session were")
            },
        );
        self.notice("info", text);
    }
}

/// The images that messages refer to.
pub(crate) fn images(messages: &[Message]) -> impl Iterator<Item = &Image> {
    messages.iter().flat_map(|message| match message {
        Message::Images { images, .. } => images.as_slice(),
        _ => &[],
    })
}
