//! Executes the commands of a chat.

use talon_proto::agent::{
    CompactSessionRequest, Cost, DecideRequest, GetCostsRequest, GetCostsResponse, ListModelsRequest,
    ListToolsRequest, NamedCost, Tool, ToolList, UndoTurnsRequest, UpdateSessionRequest,
};
use talon_sanitize::sanitized;

use super::command::{Command, Thinking};
use super::context;
use super::conversation::Conversation;
use super::help::print_help;
use super::setting_command::DEFAULT;
use crate::client::agent::formatting::{bounded_line, count, count_of, single_line, usd};
use crate::client::agent::model;
use crate::client::agent::session::{compact, show};
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Column, Table};

/// Bytes of a tool's description in the table.
const DESCRIPTION_BYTES: usize = 100;
/// Stands for all tools that the sender may use.
const ALL: &str = "all";

impl Conversation<'_> {
    pub(super) async fn execute(&mut self, command: Command) -> Result<(), Failure> {
        match command {
            Command::Empty | Command::Say(_) | Command::Exit => {}
            Command::Help => print_help(self.out),
            Command::Model(None) => self.print_models().await?,
            Command::Model(Some(name)) => {
                let name = if name == DEFAULT { String::new() } else { name };
                self.overrides.model = (!name.is_empty()).then(|| name.clone());
                self.update_session(UpdateSessionRequest {
                    model: Some(name),
                    ..UpdateSessionRequest::default()
                })
                .await?;
            }
            Command::Thinking(Thinking::Query) => {
                let shown = if self.thoughts { "shown" } else { "hidden" };
                let level = self.overrides.thinking.as_deref().unwrap_or("as configured");
                self.out.err_line(sanitized!("thinking: {}; its thoughts are {}", single_line(level), shown));
            }
            Command::Thinking(Thinking::Show(shown)) => {
                self.thoughts = shown;
                self.out.err_line(if shown { "thoughts are shown" } else { "thoughts are hidden" });
            }
            Command::Thinking(Thinking::Level(level)) => {
                self.overrides.thinking = (!level.is_empty()).then(|| level.clone());
                self.update_session(UpdateSessionRequest {
                    thinking: Some(level),
                    ..UpdateSessionRequest::default()
                })
                .await?;
            }
            Command::Setting(setting) => self.execute_setting(setting).await?,
            Command::Plan(command) => self.execute_plan(command).await?,
            Command::Tools(patterns) if patterns.is_empty() => self.print_available_tools().await?,
            Command::Tools(mut patterns) => {
                if patterns == [ALL] {
                    patterns.clear();
                }
                self.overrides.tools.clone_from(&patterns);
                let tools = Some(ToolList { tools: patterns });
                self.update_session(UpdateSessionRequest { tools, ..UpdateSessionRequest::default() })
                    .await?;
            }
            Command::Approve(id, scope) => {
                let scope = scope.word().to_owned();
                self.decide(id, DecideRequest { approve: true, scope, ..DecideRequest::default() }).await?;
            }
            Command::Deny(id, reason) => {
                self.decide(id, DecideRequest { reason, ..DecideRequest::default() }).await?;
            }
            Command::Cost => self.print_session_costs().await?,
            Command::Context => context::print(self.context.as_ref(), self.out),
            Command::Session(None) => match self.session_id.clone() {
                Some(id) => show::print_facts(&self.session(&id).await?, self.out),
                None => self.out.err_line("no session yet: it begins with your first message"),
            },
            Command::Session(Some(id)) => self.resume(id).await?,
            Command::Resume => {
                if let Some(id) = self.pick_session().await? {
                    self.resume(id).await?;
                }
            }
            Command::Undo(turns) => self.undo(turns).await?,
            Command::Compact(keep) => self.compact(keep).await?,
            Command::Clear => {
                if let Some(id) = self.session_id.take() {
                    self.out.err_line(sanitized!(
                        "session {} is kept; a new one begins with your next message",
                        single_line(&id)
                    ));
                }
            }
            Command::Wrong(why) => return Err(Failure::usage(why)),
        }
        Ok(())
    }

    /// Updates the session, or if there is none yet, what it will start with.
    pub(super) async fn update_session(&mut self, request: UpdateSessionRequest) -> Result<(), Failure> {
        if let Some(id) = &self.session_id {
            let request = UpdateSessionRequest { session_id: id.clone(), ..request };
            self.connection.send_once(async move |mut agent| agent.update_session(request).await).await?;
        }
        self.out.err_line("from your next message on");
        Ok(())
    }

    async fn print_models(&mut self) -> Result<(), Failure> {
        let answer = self
            .connection
            .query(|mut agent| async move { agent.list_models(ListModelsRequest {}).await })
            .await?;
        model::print(&answer, self.out);
        let pinned = match &self.session_id {
            Some(id) => self.session(id).await?.model,
            None => self.overrides.model.clone().unwrap_or_default(),
        };
        if !pinned.is_empty() {
            self.out.err_line(sanitized!(
                "this session asks {}; /model default lets the agent choose",
                single_line(&pinned)
            ));
        }
        Ok(())
    }

    async fn print_available_tools(&mut self) -> Result<(), Failure> {
        let session_id = self.session_id.clone().unwrap_or_default();
        let answer = self
            .connection
            .query(|mut agent| {
                let request = ListToolsRequest { session_id: session_id.clone() };
                async move { agent.list_tools(request).await }
            })
            .await?;
        print_tools(&answer.tools, self.out);
        Ok(())
    }

    async fn print_session_costs(&mut self) -> Result<(), Failure> {
        let session_id = self.session_id.clone().unwrap_or_default();
        let answer = self
            .connection
            .query(|mut agent| {
                let request = GetCostsRequest { session_id: session_id.clone() };
                async move { agent.get_costs(request).await }
            })
            .await?;
        print_costs(&answer, self.out);
        Ok(())
    }

    async fn compact(&mut self, keep: Option<u32>) -> Result<(), Failure> {
        let Some(session_id) = self.session_id.clone() else {
            self.out.err_line("no session yet, and nothing to summarize");
            return Ok(());
        };
        let request = CompactSessionRequest { session_id, keep_turns: keep.unwrap_or_default() };
        let response =
            self.connection.send_once(async move |mut agent| agent.compact_session(request).await).await?;
        self.out.err_line(compact::outcome(&response));
        Ok(())
    }

    /// Takes turns back, and offers the message that began them for another wording.
    async fn undo(&mut self, turns: u32) -> Result<(), Failure> {
        let Some(session_id) = self.session_id.clone() else {
            self.out.err_line("no session yet, and nothing to undo");
            return Ok(());
        };
        let request = UndoTurnsRequest { session_id, turns };
        let undone =
            self.connection.send_once(async move |mut agent| agent.undo_turns(request).await).await?;
        self.out.err_line(sanitized!(
            "{} taken back: the model sees nothing of it any more; `talon session show` does",
            count_of(undone.turns.into(), "turn")
        ));
        if undone.calls > 0 {
            self.out.err_line(sanitized!(
                "note: {} had been made in it, and what was done stays done",
                count_of(undone.calls.into(), "call")
            ));
        }
        self.typed.draft = undone.text;
        Ok(())
    }
}

fn print_tools(tools: &[Tool], out: &mut Output) {
    if tools.is_empty() {
        out.line("no tools: no plugin is ready, or none of their actions is allowed here");
        return;
    }
    let mut table = Table::of(&[
        Column::text("TOOL", 0),
        Column::text("ASKS FIRST", 1),
        Column::text("READ ONLY", 3),
        Column::prose("DESCRIPTION", 2),
    ]);
    for tool in tools {
        table.row(vec![
            format!("{}.{}", tool.plugin, tool.action).into(),
            asks_first(tool).into(),
            if tool.read_only { "yes" } else { "" }.into(),
            bounded_line(&tool.description, DESCRIPTION_BYTES).into(),
        ]);
    }
    table.fit(out.columns());
    out.table(&table);
}

/// Whether calls of this tool need an approval, for the table column.
fn asks_first(tool: &Tool) -> &str {
    match (tool.confirm.as_str(), tool.destructive) {
        _ if tool.read_only => "never",
        // Dangerous-looking arguments need an approval whatever the action declares.
        ("destructive", Some(false)) => "on pattern",
        ("destructive", _) => "yes",
        (policy, _) => policy,
    }
}

fn print_costs(costs: &GetCostsResponse, out: &mut Output) {
    let mut table = Table::of(&[
        Column::text("OF", 0),
        Column::number("COST", 0),
        Column::number("ESTIMATED", 4),
        Column::number("BUDGET", 3),
        Column::number("ANSWERS", 1),
        Column::number("FAILURES", 5),
        Column::number("TOKENS", 2),
        Column::number("CACHED", 6),
    ]);
    let mut row = |what: String, cost: &Cost, budget: Option<u64>| {
        table.row(vec![
            what.into(),
            usd(cost.cost_pico_usd).into(),
            usd(cost.estimated_pico_usd).into(),
            budget.map(usd).unwrap_or_default().into(),
            count(cost.answers).into(),
            count(cost.failures).into(),
            count(cost.input_tokens + cost.output_tokens).into(),
            count(cost.cached_input_tokens).into(),
        ]);
    };
    if let Some(session) = &costs.session {
        row("this session".to_owned(), session, costs.session_budget_pico_usd);
    }
    if let Some(today) = &costs.today {
        row("today".to_owned(), today, costs.day_budget_pico_usd);
    }
    for NamedCost { name, cost } in costs.by_provider.iter().chain(&costs.by_model) {
        row(name.clone(), &cost.unwrap_or_default(), None);
    }
    for NamedCost { name, cost } in &costs.by_plugin {
        row(format!("plugin {name}"), &cost.unwrap_or_default(), None);
    }
    table.fit(out.columns());
    out.table(&table);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_tool_asks_first_is_a_word_for_people() {
        for (confirm, destructive, read_only, word) in [
            ("destructive", Some(false), false, "on pattern"),
            ("destructive", Some(true), false, "yes"),
            ("destructive", None, false, "yes"),
            ("always", Some(false), false, "always"),
            ("never", None, false, "never"),
            ("never", None, true, "never"),
        ] {
            let tool = Tool { confirm: confirm.into(), destructive, read_only, ..Tool::default() };
            assert_eq!(asks_first(&tool), word, "{tool:?}");
        }
    }
}
