//! Searches for tools: by meaning, by words alone, and what may see them.

use std::sync::Arc;

use talon_llm::route::router::{Pins, Routing};
use talon_proto::agent;
use talon_proto::plugin::Action;

use super::setting::Setting;
use crate::context::ContextPlan;
use crate::driver::{SimilarityError, ToolSimilarity, TurnRunner as _, TurnSpec};

/// Finds one tool similar to every query.
struct Likes(&'static str, bool);

#[async_trait::async_trait]
impl ToolSimilarity for Likes {
    async fn compare(&self, query: &str, tools: &[String]) -> Result<Vec<f32>, SimilarityError> {
        if query.contains("late") {
            return Err(SimilarityError("e5/small made no vectors within 2s".to_owned()));
        }
        Ok(tools.iter().map(|tool| if tool == self.0 { 0.9 } else { 0.1 }).collect())
    }

    fn model(&self) -> String {
        "e5/small".to_owned()
    }

    fn is_local(&self) -> bool {
        self.1
    }
}

fn searching(query: &str, similarity: Likes) -> Setting {
    let mut setting = Setting::new(&format!(
        "
answers:
  - {{ times: 1, when: {{ step: 1 }}, call: [{{ tool: tools__search, arguments: {{ query: {query} }} }}] }}
  - say: done
"
    ));
    setting.plan = ContextPlan { tools: Some(800), ..ContextPlan::default() };
    let action = |name: String, description: &str| Action {
        name,
        description: description.to_owned(),
        read_only: true,
        ..Action::default()
    };
    let mut actions: Vec<Action> =
        (0..60).map(|n| action(format!("thing_{n}"), "does something with a thing")).collect();
    actions.push(action("paint_zebra".to_owned(), "Paints a zebra. At night, too."));
    setting.host.offers(vec![("p", actions)]);
    setting.similarity = Some(Arc::new(similarity));
    setting
}

const ZEBRA: &str = "p paint zebra: Paints a zebra";

// Promises: AGENT-112
#[tokio::test(start_paused = true)]
async fn a_search_in_another_language_finds_by_meaning() {
    let setting = searching("gestreiftes Pferd bemalen", Likes(ZEBRA, false));
    let end = setting.run("do things").await;
    assert!(setting.model.asked.lock()[1].tools.iter().any(|tool| tool.name == "p__paint_zebra"));
    assert!(end.models.contains(&"e5/small".to_owned()), "it saw the query: {:?}", end.models);
    assert!(!setting.heard.notices().iter().any(|notice| notice.text.contains("words alone")));
}

// Promises: AGENT-112
#[tokio::test(start_paused = true)]
async fn without_vectors_in_time_a_search_is_by_words_and_says_so() {
    let setting = searching("a late zebra", Likes(ZEBRA, false));
    setting.answer("do things").await;
    let result = setting.heard.results().pop().expect("a result");
    assert!(format!("{result:?}").contains("Found by words alone"), "{result:?}");
    let notices = setting.heard.notices();
    let is_told = |notice: &agent::Notice| notice.text.contains("by words alone: e5/small made no vectors");
    assert!(notices.iter().any(is_told), "{notices:?}");
}

// Promises: AGENT-112
#[tokio::test(start_paused = true)]
async fn a_pin_and_local_only_hold_for_queries_of_searches() {
    let run = async |setting: &Setting, pins: &Pins| {
        let mut environment = setting.environment();
        let chain = Arc::into_inner(environment.chain).expect("no other has it");
        let local = ["scripted", "scripted-two"].map(str::to_owned).into();
        environment.chain = Arc::new(chain.with_routing(Routing { local, ..Routing::default() }));
        let spec = TurnSpec { pins: pins.clone(), ..setting.spec("do things") };
        setting.driver().run(&environment, spec).await
    };
    let local_only = Pins { local_only: true, ..Pins::default() };
    let pinned = Pins { request: Some("scripted/one".to_owned()), ..Pins::default() };
    for (pins, says) in [(local_only, "(local_only)"), (pinned, "pinned")] {
        let setting = searching("a zebra", Likes(ZEBRA, false));
        let end = run(&setting, &pins).await;
        assert!(!end.models.contains(&"e5/small".to_owned()), "{:?}", end.models);
        let notices = setting.heard.notices();
        assert!(notices.iter().any(|notice| notice.text.contains(says)), "{notices:?} {:?}", end.outcome);
        let setting = searching("a zebra", Likes(ZEBRA, true));
        let end = run(&setting, &pins).await;
        assert!(end.models.contains(&"e5/small".to_owned()), "one on this machine may: {:?}", end.models);
    }
}
