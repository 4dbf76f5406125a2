//! A plugin: its tools and the other capabilities that it declares to a host.

use std::fmt;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use talon_proto::plugin::{GlossaryEntry, KnowledgeArticle, PluginCapabilities};

use crate::event_source::EventSource;
use crate::settings::Init;
use crate::{Notifier, Tool, ToolError};

/// How long calls in flight may continue after the host asked the plugin to end: as long as a host usually
/// waits before it kills. Change it with [`Plugin::grace`].
pub const DEFAULT_GRACE: Duration = Duration::from_secs(10);
/// The longest plugin and action names: both go into file names, socket paths and the tool names of model
/// APIs.
const MAX_NAME_LEN: usize = 64;

type Tools = Pin<Box<dyn Future<Output = Result<Vec<Tool>, ToolError>> + Send>>;
pub(crate) type Refresh = dyn Fn() -> Tools + Send + Sync;

/// A plugin, made of tools, ready to [`serve`](Plugin::serve).
///
/// ```no_run
/// # use std::process::ExitCode;
/// # use talon_sdk::{Plugin, Tool};
/// # fn greet() -> Tool { unreachable!() }
/// fn main() -> ExitCode {
///     Plugin::new("hello").description("Greets people.").tool(greet()).serve()
/// }
/// ```
#[must_use = "a plugin does nothing until it is served"]
pub struct Plugin {
    pub(crate) name: String,
    pub(crate) tools: Vec<Tool>,
    pub(crate) metadata: PluginMetadata,
    pub(crate) init: Init,
    pub(crate) refresh: Option<Arc<Refresh>>,
    pub(crate) notifier: Notifier,
    pub(crate) events: Option<EventSource>,
    pub(crate) grace: Duration,
    /// `None`: the thread that called [`Plugin::serve`].
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) logging: bool,
    pub(crate) log_filter: &'static str,
}

/// The most threads that serve calls; no machine runs more of one plugin at once.
const MAX_THREADS: usize = 64;

/// What the capabilities hold besides actions.
#[derive(Default, Clone)]
pub(crate) struct PluginMetadata {
    description: String,
    system_prompt_addition: String,
    glossary: Vec<GlossaryEntry>,
    knowledge: Vec<KnowledgeArticle>,
}

impl Plugin {
    /// A plugin without tools yet. `name` is 1 to 64 of `a-z 0-9 -` and does not start with `-`; usually the
    /// name of the binary.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tools: Vec::new(),
            metadata: PluginMetadata::default(),
            init: Init::default(),
            refresh: None,
            notifier: Notifier::new(),
            events: None,
            grace: DEFAULT_GRACE,
            threads: None,
            logging: true,
            log_filter: "info",
        }
    }

    /// One or two sentences about the plugin, for people and models.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.metadata.description = text.into();
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Declares the settings the plugin takes: `T` is read from the JSON object that the host sends at
    /// `Init`, and tools get it from [`Context::config`](crate::Context::config). A config that does not fit
    /// is refused with its reason, and the plugin does not become ready.
    ///
    /// A plugin that declares no settings refuses any that are not empty, so that an operator learns about a
    /// setting without effect.
    ///
    /// `#[serde(deny_unknown_fields)]` on `T` catches misspelt keys.
    pub fn config<T: DeserializeOwned + Send + Sync + 'static>(mut self) -> Self {
        self.init.add(|config: T| std::future::ready(Ok(config)));
        self
    }

    /// Like [`config`](Plugin::config), and builds a value from the settings that all calls share: a
    /// connection pool, an opened directory. Tools get it from [`Context::shared`](crate::Context::shared).
    /// Its error goes to the operator, cause included.
    pub fn init<C, S, F, Fut>(mut self, make: F) -> Self
    where
        C: DeserializeOwned + Send + 'static,
        S: Send + Sync + 'static,
        F: Fn(C) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, ToolError>> + Send + 'static,
    {
        self.init.add(make);
        self
    }

    /// Answers the host's `RefreshCapabilities` with the complete new list of tools. Without it the method is
    /// UNIMPLEMENTED, which hosts take for "nothing changed".
    ///
    /// A plugin without a tool also builds its list when the host first asks for capabilities, so what a
    /// plugin offers may depend on its [config](Plugin::init).
    pub fn refresh<F, Fut>(mut self, tools: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Tool>, ToolError>> + Send + 'static,
    {
        self.refresh = Some(Arc::new(move || Box::pin(tools())));
        self
    }

    /// Lets `notifier` notify the host when the plugin's capabilities changed. Use it together with
    /// [`refresh`](Plugin::refresh), which returns the new tools.
    pub fn notifier(mut self, notifier: Notifier) -> Self {
        self.notifier = notifier;
        self
    }

    /// Lets `events` tell the host what happens elsewhere.
    pub fn events(mut self, events: EventSource) -> Self {
        self.events = Some(events);
        self
    }

    /// Text that the plugin would like a model to read. Hosts treat it as untrusted; Talon does not show it
    /// to models.
    pub fn system_prompt_addition(mut self, text: impl Into<String>) -> Self {
        self.metadata.system_prompt_addition = text.into();
        self
    }

    /// Adds a term of the plugin's field.
    pub fn glossary_entry(mut self, entry: GlossaryEntry) -> Self {
        self.metadata.glossary.push(entry);
        self
    }

    /// Adds an article about the plugin's field.
    pub fn knowledge_article(mut self, article: KnowledgeArticle) -> Self {
        self.metadata.knowledge.push(article);
        self
    }

    /// How long calls in flight may continue after the host asked the plugin to end; [`DEFAULT_GRACE`] unless
    /// set.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How many additional threads serve calls. Unless set there are none and calls run on the thread that
    /// called [`serve`](Plugin::serve): many plugins share a machine, and threads that wake each other make
    /// each call half as much more expensive. At most 64, and 0 counts as one. Use more threads for tools
    /// that compute for a long time between two `.await`s and would delay the other calls; blocking work has
    /// separate threads in any case: [`Context::blocking`](crate::Context::blocking).
    /// `tokio::task::block_in_place` needs at least one.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(NonZeroUsize::new(threads.min(MAX_THREADS)).unwrap_or(NonZeroUsize::MIN));
        self
    }

    /// Serves on the thread that called [`serve`](Plugin::serve). This is the default unless
    /// [`threads`](Plugin::threads) is set.
    pub fn single_threaded(mut self) -> Self {
        self.threads = None;
        self
    }

    /// Leaves logging to the plugin. Otherwise [`serve`](Plugin::serve) sends `tracing` events to stderr in a
    /// form whose levels the host keeps, unless the plugin has installed a subscriber.
    pub fn without_logging(mut self) -> Self {
        self.logging = false;
        self
    }

    /// Which `tracing` events are logged when `TALON_LOG` is not set, in the same syntax; `info` by default.
    /// For plugins whose libraries log more than an operator wants to read.
    pub fn log_filter(mut self, filter: &'static str) -> Self {
        self.log_filter = filter;
        self
    }

    /// The capabilities that the plugin declares to the host.
    #[must_use]
    pub fn capabilities(&self) -> PluginCapabilities {
        self.metadata.capabilities(&self.name, &self.tools)
    }

    /// Checks whether the plugin can be served: names are valid, no two tools share one, arguments can be
    /// described. [`serve`](Plugin::serve) calls this first; a unit test may too.
    ///
    /// # Errors
    /// All defects at once.
    pub fn check(&self) -> Result<(), Defects> {
        let mut defects = check_tools(&self.tools);
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let valid = self.name.len() <= MAX_NAME_LEN
            && self.name.bytes().next().is_some_and(plain)
            && self.name.bytes().all(|byte| plain(byte) || byte == b'-');
        if !valid {
            defects.push(format!(
                "plugin name {:?}: use 1 to {MAX_NAME_LEN} characters of a-z, 0-9 and '-', the first not '-'",
                self.name
            ));
        }
        if self.tools.is_empty() && self.refresh.is_none() {
            defects.push("the plugin has no tools: add one with Plugin::tool".to_owned());
        }
        Defects::of(defects)
    }
}

impl PluginMetadata {
    pub(crate) fn capabilities(&self, name: &str, tools: &[Tool]) -> PluginCapabilities {
        PluginCapabilities {
            name: name.to_owned(),
            description: self.description.clone(),
            actions: tools.iter().map(Tool::action).collect(),
            system_prompt_addition: self.system_prompt_addition.clone(),
            glossary: self.glossary.clone(),
            knowledge_articles: self.knowledge.clone(),
            supports_callbacks: false,
        }
    }
}

/// The defects of a list of tools.
pub(crate) fn check_tools(tools: &[Tool]) -> Vec<String> {
    let mut defects = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let name = tool.name();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if name.is_empty() || name.len() > MAX_NAME_LEN || !name.bytes().all(plain) {
            defects.push(format!(
                "tool name {name:?}: use 1 to {MAX_NAME_LEN} characters of a-z, A-Z, 0-9, '_' and '-'"
            ));
        }
        if tools[..index].iter().any(|earlier| earlier.name() == name) {
            defects.push(format!("two tools are named `{name}`"));
        }
        if let Some(defect) = tool.defect() {
            defects.push(format!("tool `{name}`: {defect}"));
        }
    }
    defects
}

/// Why a plugin cannot be served: mistakes of its author, all at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defects(Vec<String>);

impl Defects {
    pub(crate) fn of(defects: Vec<String>) -> Result<(), Self> {
        if defects.is_empty() { Ok(()) } else { Err(Self(defects)) }
    }
}

impl fmt::Display for Defects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for Defects {}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("name", &self.name).field("tools", &self.tools).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    fn tool(name: &str) -> Tool {
        Tool::new(name, "Does nothing.", |(): (), _: Context| async { Ok::<_, ToolError>("") })
    }

    // Promises: SDK-5
    #[test]
    fn all_defects_come_at_once() {
        let strange = Tool::new("odd", "Odd.", |_: String, _: Context| async { Ok::<_, ToolError>("") });
        let plugin = Plugin::new("No_Name").tools([tool("a b"), tool("twice"), tool("twice"), strange]);
        let said = plugin.check().expect_err("refused").to_string();
        for part in
            ["\"No_Name\"", "\"a b\"", "two tools are named `twice`", "tool `odd`: the arguments type"]
        {
            assert!(said.contains(part), "expected {part:?} in {said:?}");
        }
        assert!(Plugin::new("empty").check().expect_err("refused").to_string().contains("no tools"));
        assert_eq!(Plugin::new("a-2").tool(tool("x")).check(), Ok(()));
    }

    #[test]
    fn capabilities_tell_all_that_was_declared() {
        let plugin = Plugin::new("p")
            .description("About.")
            .tool(tool("x").read_only().user_only().always_include().inject(["session_id"]))
            .system_prompt_addition("Be kind.")
            .glossary_entry(GlossaryEntry { term: "t".to_owned(), ..Default::default() })
            .knowledge_article(KnowledgeArticle { id: "k".to_owned(), ..Default::default() });
        let told = plugin.capabilities();
        assert_eq!((told.name.as_str(), told.description.as_str()), ("p", "About."));
        let action = &told.actions[0];
        assert!(action.read_only && action.user_only && action.always_include);
        assert_eq!(action.inject_context_args, ["session_id"]);
        assert_eq!((told.glossary.len(), told.knowledge_articles.len()), (1, 1));
        assert!(!told.supports_callbacks);
    }
}
