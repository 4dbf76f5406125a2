//! What the agent's own tools cost: they go with every question.

use std::sync::Arc;

use talon_agent_settings::{ParallelCalls, SubAgentKeys};
use talon_guard::Sanitizer;
use talon_proto::plugin::Action;
use talon_store::{Engine, StoreOptions};

use crate::context::{ContextPlan, choose};
use crate::driver::{BuiltinTools, Caller, Driver, own_actions};
use crate::recall::MemoryTools;
use crate::subagent::{SubAgentContext, SubAgents};
use crate::tokens::counter_for;
use crate::tools::{Offer, TURN_PLUGIN, ask_action, plan_action};

// Promises: AGENT-98
#[tokio::test]
async fn the_agents_own_tools_take_less_than_400_tokens() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("agent/agent.db");
    let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a directory of our own");
    let sanitizer = Arc::new(Sanitizer::default());
    let memory =
        MemoryTools::new(store.memory(), Arc::clone(&sanitizer)).with_sessions(store.sessions(), |_| false);
    let context = SubAgentContext {
        rules: Vec::new(),
        plan: ContextPlan::frugal(),
        summaries: None,
        allow: std::collections::BTreeMap::new(),
        sanitizer,
        parallel: ParallelCalls::default(),
    };
    let (keys, runner) = (SubAgentKeys::default(), Arc::new(Driver::new()));
    let (subagents, problems) = SubAgents::new(&keys, runner, Arc::new(|| None), context);
    assert_eq!(problems, [""; 0]);
    let caller = Caller {
        session: "S".to_owned(),
        turn: 1,
        sender: "alice".to_owned(),
        channel: "cli".to_owned(),
        subagent: String::new(),
        correlation_id: String::new(),
        member: String::new(),
    };
    let builtin = [memory.capabilities(&caller), subagents.capabilities(&caller)].map(Option::unwrap);
    let actions = builtin.iter().flat_map(|own| own.actions.iter().map(|action| (own.name.as_str(), action)));
    let asks = ask_action();
    let always = tokens(actions.chain([(TURN_PLUGIN, &asks)]));
    let names = |tools: &[(String, usize)]| tools.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(
        names(&always),
        ["memory__conversations", "memory__save", "memory__search", "subagent__run", "talon__ask_user"]
    );
    let at_times = own_actions();
    let at_times = tokens(at_times.iter().map(|(plugin, action)| (*plugin, action)));
    assert_eq!(names(&at_times), ["talon__read_more", "talon__wait", "tools__search"]);
    let total = |tools: &[(String, usize)]| tools.iter().map(|(_, tokens)| tokens).sum::<usize>();
    assert!(total(&always) < 400, "{always:?}");
    assert!(total(&at_times) < 200, "{at_times:?}");
    let plan = plan_action();
    assert!(total(&tokens([(TURN_PLUGIN, &plan)].into_iter())) < 120);
}

/// The tools of these actions, and what each takes, by the tokenizer of a model that is known to have it.
fn tokens<'a>(actions: impl Iterator<Item = (&'a str, &'a Action)>) -> Vec<(String, usize)> {
    let counter = counter_for("gpt-5");
    let offer = Offer::new(actions);
    offer.tools().map(|tool| (tool.spec.name.clone(), choose::tokens(&tool.spec, counter))).collect()
}
