//! A tool: the action that it declares to a host, and the function that runs it.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use talon_arguments::Arguments;
use talon_proto::plugin::{Action, JobProposal, Parameter};
use talon_proto::roles::SCHEDULED_TASK;

use crate::args::{ToolArgs, decode};
use crate::context::Call;
use crate::output::IntoToolResult;
use crate::schema::{Field, Kind, NotFieldsError, fields};
use crate::text::shorten;
use crate::{Context, Output, ProposedJob, ToolError};

/// How much of an unknown argument's name is repeated, in bytes.
const MAX_SHOWN_BYTES: usize = 64;

type Answer = Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send>>;
type Handler = dyn Fn(BTreeMap<String, String>, Context) -> Answer + Send + Sync;

/// One action of a plugin. [`#[tool]`](macro@crate::tool) makes one of an async function; [`Tool::new`] makes
/// one of a closure.
///
/// ```
/// use talon_sdk::{Context, Tool, ToolError};
///
/// #[talon_sdk::args]
/// struct Add { a: i64, b: i64 }
///
/// let add = Tool::new("add", "Adds two numbers.", |args: Add, _cx: Context| async move {
///     let sum = args.a.checked_add(args.b);
///     sum.map(|sum| sum.to_string()).ok_or_else(|| ToolError::new("the sum is too large"))
/// })
/// .read_only();
/// assert_eq!(add.name(), "add");
/// ```
#[derive(Clone)]
pub struct Tool {
    name: String,
    description: String,
    fields: Vec<Field>,
    inject: Vec<String>,
    read_only: bool,
    user_only: bool,
    always_include: bool,
    destructive: Option<bool>,
    output_schema: String,
    takes_further_arguments: bool,
    media: Vec<String>,
    roles: Vec<String>,
    proposed_jobs: Vec<JobProposal>,
    handler: Arc<Handler>,
    /// Why it cannot be served. Builders do not fail; `Plugin::check` and `serve` report it.
    defect: Option<NotFieldsError>,
}

impl Tool {
    /// A tool from a closure `|args: A, cx: Context| async move { … }`.
    ///
    /// `name` is the action's name, 1 to 64 of `a-z A-Z 0-9 _ -`; a model chooses the action by its
    /// `description`. `A` is a struct with named fields, or `()`. [`Plugin::check`](crate::Plugin::check)
    /// reports invalid ones.
    pub fn new<A, F, Fut>(name: &str, description: &str, function: F) -> Self
    where
        A: ToolArgs,
        F: Fn(A, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolResult> + Send + 'static,
    {
        let (fields, defect) = match fields::<A>() {
            Ok(fields) => (fields, None),
            Err(defect) => (Vec::new(), Some(defect)),
        };
        let kinds: BTreeMap<String, Kind> =
            fields.iter().map(|field| (field.parameter.name.clone(), field.kind)).collect();
        let handler = move |args, cx: Context| -> Answer {
            match decode::<A>(args, cx.arguments(), &kinds) {
                Ok(args) => {
                    let answer = function(args, cx);
                    Box::pin(async move { answer.await.into_tool_result() })
                }
                Err(error) => Box::pin(std::future::ready(Err(ToolError::new(error.to_string())))),
            }
        };
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            fields,
            inject: Vec::new(),
            read_only: false,
            user_only: false,
            always_include: false,
            destructive: None,
            output_schema: String::new(),
            takes_further_arguments: false,
            media: Vec::new(),
            roles: Vec::new(),
            proposed_jobs: Vec::new(),
            handler: Arc::new(handler),
            defect,
        }
    }

    /// A tool that is described by data instead of types: for plugins that learn only at run time what they
    /// offer, such as bridges to other protocols. The function gets the arguments as texts, by name;
    /// [`Context::arguments`] has them as JSON, if the caller sent it. Arguments that `action` does not declare are refused before, as for every tool, unless it
    /// declares that it takes further ones.
    pub fn dynamic<F, Fut>(action: Action, function: F) -> Self
    where
        F: Fn(BTreeMap<String, String>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolResult> + Send + 'static,
    {
        let fields = action.parameters.into_iter().map(Field::of);
        let handler = move |args, cx| -> Answer {
            let answer = function(args, cx);
            Box::pin(async move { answer.await.into_tool_result() })
        };
        Self {
            name: action.name,
            description: action.description,
            fields: fields.collect(),
            inject: action.inject_context_args,
            read_only: action.read_only,
            user_only: action.user_only,
            always_include: action.always_include,
            destructive: action.destructive,
            output_schema: action.output_schema,
            takes_further_arguments: action.takes_further_arguments,
            media: action.media,
            roles: action.roles,
            proposed_jobs: action.proposed_jobs,
            handler: Arc::new(handler),
            defect: None,
        }
    }

    /// Declares that the action changes nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Declares whether the action may destroy data; hosts may ask a person first.
    #[must_use]
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.destructive = Some(destructive);
        self
    }

    /// Declares the JSON Schema of the structured content of its answers, for hosts that pass it on.
    #[must_use]
    pub fn output_schema(mut self, schema: &serde_json::Value) -> Self {
        self.output_schema = schema.to_string();
        self
    }

    /// Declares the kinds of media that its answers may have: `image`, `audio`, `resource`, `link`. The operator
    /// grants them, and the agent shows a model no image that is not declared.
    #[must_use]
    pub fn media<K: Into<String>>(mut self, kinds: impl IntoIterator<Item = K>) -> Self {
        self.media.extend(kinds.into_iter().map(Into::into));
        self
    }

    /// Declares a role that the action would like to play, such as `request_hook`; an operator's entry under `extensions`
    /// makes it so. An action with roles is no tool and hidden from models, unless `tool` is one of them.
    #[must_use]
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.roles.push(role.into());
        self
    }

    /// Proposes a job that calls the action in the role `scheduled_task`, which it then declares, too. Nothing runs before the
    /// operator accepts it (`talon schedule accept`); an entry of `extensions.schedule` needs no proposal.
    #[must_use]
    pub fn propose_job(mut self, job: ProposedJob) -> Self {
        if !self.roles.iter().any(|role| role == SCHEDULED_TASK) {
            self.roles.push(SCHEDULED_TASK.to_owned());
        }
        self.proposed_jobs.push(job.into_declared());
        self
    }

    /// Only a person may call the action, never a model.
    #[must_use]
    pub fn user_only(mut self) -> Self {
        self.user_only = true;
        self
    }

    /// A host that offers a model only some of its actions always offers this one.
    #[must_use]
    pub fn always_include(mut self) -> Self {
        self.always_include = true;
        self
    }

    /// Asks the host for values of the caller's session context, such as `session_id`. The operator decides
    /// which are granted. They arrive in [`Context::injected`], and in a field of the same name if there is
    /// one; such a field is not offered to the caller as a parameter.
    #[must_use]
    pub fn inject<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.inject.extend(names.into_iter().map(Into::into));
        self
    }

    /// The action's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The action as it is declared to the host.
    #[must_use]
    pub fn action(&self) -> Action {
        Action {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.offered().cloned().collect(),
            user_only: self.user_only,
            inject_context_args: self.inject.clone(),
            always_include: self.always_include,
            read_only: self.read_only,
            destructive: self.destructive,
            output_schema: self.output_schema.clone(),
            takes_further_arguments: self.takes_further_arguments,
            media: self.media.clone(),
            roles: self.roles.clone(),
            proposed_jobs: self.proposed_jobs.clone(),
        }
    }

    pub(crate) fn defect(&self) -> Option<&NotFieldsError> {
        self.defect.as_ref()
    }

    /// The parameters that a caller fills: all fields except those that the host injects.
    fn offered(&self) -> impl Iterator<Item = &Parameter> {
        self.fields
            .iter()
            .map(|field| &field.parameter)
            .filter(|parameter| !self.inject.contains(&parameter.name))
    }

    /// Runs the action. Dropping the future cancels it.
    pub(crate) fn run(
        &self,
        mut args: BTreeMap<String, String>,
        mut call: Call,
    ) -> impl Future<Output = Result<Output, ToolError>> + Send + '_ {
        for name in &self.inject {
            let is_field = self.fields.iter().any(|field| field.parameter.name == *name);
            let value = if is_field { args.get(name).cloned() } else { args.remove(name) };
            if let Some(arguments) = call.arguments.as_mut().filter(|_| !is_field) {
                arguments.remove(name);
            }
            if let Some(value) = value {
                call.injected.insert(name.clone(), value);
            }
        }
        let typed = call.arguments.iter().flat_map(Arguments::iter).map(|(name, _)| name);
        let known = self.refuse_unknown(args.keys().map(String::as_str).chain(typed));
        // Threads that the tool started may keep the token; dropping the future must cancel them too.
        let guard = call.cancelled.clone().drop_guard();
        async move {
            let _guard = guard;
            known?;
            (self.handler)(args, Context::new(call)).await
        }
    }

    fn refuse_unknown<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> Result<(), ToolError> {
        if self.takes_further_arguments {
            return Ok(());
        }
        let known = |name: &str| self.fields.iter().any(|field| field.parameter.name == name);
        let Some(unknown) = names.find(|name| !known(name)) else { return Ok(()) };
        let takes: Vec<&str> = self.offered().map(|parameter| parameter.name.as_str()).collect();
        let takes = if takes.is_empty() { "no arguments".to_owned() } else { takes.join(", ") };
        let shown = shorten(unknown, MAX_SHOWN_BYTES);
        Err(ToolError::new(format!("unknown argument `{shown}`; {} takes {takes}", self.name)))
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("action", &self.action())
            .field("defect", &self.defect)
            .finish_non_exhaustive()
    }
}
