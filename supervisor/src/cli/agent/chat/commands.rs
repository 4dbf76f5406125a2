//! Executes the commands of a chat.

use std::time::SystemTime;

use talon_proto::agent::{
    Approval, CompactSessionRequest, Cost, DecideRequest, GetCostsRequest, GetCostsResponse,
    ListModelsRequest, ListToolsRequest, NamedCost, Tool, ToolList, UpdateSessionRequest,
};
use talon_sanitize::inert;
use tokio::signal::unix::{SignalKind, signal};

use super::super::super::ask;
use super::super::super::failure::Failure;
use super::super::super::output::Out;
use super::super::super::table::{Column, Table};
use super::super::approval::find;
use super::super::model;
use super::super::session::{compact, show};
use super::super::turn::approval::{Reply, lines};
use super::super::turn::{Typed, forget};
use super::super::words::{count, one, usd, within};
use super::command::{COMMANDS, Command, Thinking};
use super::talk::Talk;
use crate::exit;

/// Bytes of a tool's description in the table.
const DESCRIPTION_BYTES: usize = 100;
/// Stands for the configured value.
const DEFAULT: &str = "default";
/// Stands for all tools that the sender may use.
const ALL: &str = "all";

impl Talk<'_> {
    pub(super) async fn performs(&mut self, command: Command) -> Result<(), Failure> {
        match command {
            Command::Nothing | Command::Say(_) | Command::Exit => {}
            Command::Help => help(self.out),
            Command::Model(None) => self.models().await?,
            Command::Model(Some(name)) => {
                let name = if name == DEFAULT { String::new() } else { name };
                self.wishes.model = (!name.is_empty()).then(|| name.clone());
                self.wants(UpdateSessionRequest { model: Some(name), ..UpdateSessionRequest::default() })
                    .await?;
            }
            Command::Thinking(Thinking::Tell) => {
                let shown = if self.thoughts { "shown" } else { "hidden" };
                let level = self.wishes.thinking.as_deref().unwrap_or("as configured");
                self.out.say(inert!("thinking: {}; its thoughts are {}", one(level), shown));
            }
            Command::Thinking(Thinking::Show(shown)) => {
                self.thoughts = shown;
                self.out.say(if shown { "thoughts are shown" } else { "thoughts are hidden" });
            }
            Command::Thinking(Thinking::Level(level)) => {
                self.wishes.thinking = (!level.is_empty()).then(|| level.clone());
                self.wants(UpdateSessionRequest { thinking: Some(level), ..UpdateSessionRequest::default() })
                    .await?;
            }
            Command::Tools(patterns) if patterns.is_empty() => self.tools().await?,
            Command::Tools(mut patterns) => {
                if patterns == [ALL] {
                    patterns.clear();
                }
                self.wishes.tools.clone_from(&patterns);
                let tools = Some(ToolList { tools: patterns });
                self.wants(UpdateSessionRequest { tools, ..UpdateSessionRequest::default() }).await?;
            }
            Command::Approve(id) => self.decides(id, true, String::new()).await?,
            Command::Deny(id, reason) => self.decides(id, false, reason).await?,
            Command::Cost => self.costs().await?,
            Command::Session(None) => match self.session_id.clone() {
                Some(id) => show::facts(&self.session(&id).await?, self.out),
                None => self.out.say("no session yet: it begins with your first message"),
            },
            Command::Session(Some(id)) => self.goes_on_with(id).await?,
            Command::Compact(keep) => self.compacts(keep).await?,
            Command::Clear => {
                if let Some(id) = self.session_id.take() {
                    self.out
                        .say(inert!("session {} is kept; a new one begins with your next message", one(&id)));
                }
            }
            Command::Wrong(why) => return Err(Failure::usage(why)),
        }
        Ok(())
    }

    /// Updates the session, or if there is none yet, what it will start with.
    async fn wants(&mut self, request: UpdateSessionRequest) -> Result<(), Failure> {
        if let Some(id) = &self.session_id {
            let request = UpdateSessionRequest { session_id: id.clone(), ..request };
            self.reach.once(async move |mut agent| agent.update_session(request).await).await?;
        }
        self.out.say("from your next message on");
        Ok(())
    }

    async fn models(&mut self) -> Result<(), Failure> {
        let answer =
            self.reach.ask(|mut agent| async move { agent.list_models(ListModelsRequest {}).await }).await?;
        model::print(&answer, self.out);
        let pinned = match &self.session_id {
            Some(id) => self.session(id).await?.model,
            None => self.wishes.model.clone().unwrap_or_default(),
        };
        if !pinned.is_empty() {
            self.out.say(inert!("this session asks {}; /model default lets the agent choose", one(&pinned)));
        }
        Ok(())
    }

    async fn tools(&mut self) -> Result<(), Failure> {
        let session_id = self.session_id.clone().unwrap_or_default();
        let answer = self
            .reach
            .ask(|mut agent| {
                let request = ListToolsRequest { session_id: session_id.clone() };
                async move { agent.list_tools(request).await }
            })
            .await?;
        tools(&answer.tools, self.out);
        Ok(())
    }

    async fn costs(&mut self) -> Result<(), Failure> {
        let session_id = self.session_id.clone().unwrap_or_default();
        let answer = self
            .reach
            .ask(|mut agent| {
                let request = GetCostsRequest { session_id: session_id.clone() };
                async move { agent.get_costs(request).await }
            })
            .await?;
        costs(&answer, self.out);
        Ok(())
    }

    async fn compacts(&mut self, keep: Option<u32>) -> Result<(), Failure> {
        let Some(session_id) = self.session_id.clone() else {
            self.out.say("no session yet, and nothing to summarize");
            return Ok(());
        };
        let request = CompactSessionRequest { session_id, keep_turns: keep.unwrap_or_default() };
        let response = self.reach.once(async move |mut agent| agent.compact_session(request).await).await?;
        self.out.say(compact::outcome(&response));
        Ok(())
    }

    /// Decides the named call, or the only pending one, and follows the turn that continues after it.
    async fn decides(&mut self, id: Option<String>, approve: bool, reason: String) -> Result<(), Failure> {
        let approval = match id {
            Some(id) => find::one(self.reach, &id).await?,
            None => self.only_one(approve).await?,
        };
        // A person may only approve what this chat has shown; anything else is shown first.
        if approve && !self.seen.has(&approval) {
            for line in lines(&approval, SystemTime::now()) {
                self.out.say(line);
            }
            self.seen.saw([&approval]);
            if ask::can_be_asked() && !self.confirms().await? {
                self.out.say("nothing was decided");
                return Ok(());
            }
        }
        let request = DecideRequest { id: approval.id, approve, digest: approval.digest, reason };
        let decided = self.reach.once(async move |mut agent| agent.decide(request).await).await?;
        self.out.say(inert!("{} {}", one(&decided.state), one(&decided.id)));
        if self.session_id.as_deref() == Some(decided.session_id.as_str()) {
            self.attaches(decided.session_id).await?;
        }
        Ok(())
    }

    /// Asks for confirmation of what was just shown.
    async fn confirms(&mut self) -> Result<bool, Failure> {
        let failed = |error| Failure::failed(format!("cannot ask: {error}"));
        let mut interrupts = signal(SignalKind::interrupt()).map_err(failed)?;
        forget();
        self.out.say("Run it, exactly as shown? [y/N]");
        self.out.flush();
        let mut typed = Typed::begin().map_err(failed)?;
        let line = tokio::select! {
            line = typed.line() => line.map_err(failed)?,
            _ = interrupts.recv() => None,
        };
        Ok(line.is_some_and(|line| Reply::of(&line) == Reply::Approve))
    }

    async fn only_one(&self, approve: bool) -> Result<Approval, Failure> {
        let mut waiting = match &self.session_id {
            Some(id) => self.waiting(id).await?,
            None => Vec::new(),
        };
        let command = if approve { "approve" } else { "deny" };
        match waiting.len() {
            1 => Ok(waiting.remove(0)),
            0 => Err(Failure::new(exit::REFUSED, "no call of this session waits for an approval")),
            _ => {
                let ids: Vec<String> = waiting.iter().map(|one| format!("  /{command} {}", one.id)).collect();
                Err(Failure::new(
                    exit::REFUSED,
                    format!("several calls wait, so say which:\n{}", ids.join("\n")),
                ))
            }
        }
    }
}

fn help(out: &mut Out) {
    let mut table = Table::new(&[]);
    for (name, takes, does) in COMMANDS {
        table.row(vec![format!("/{name} {takes}").trim_end().into(), does.into()]);
    }
    out.table(&table);
    out.line("A line that ends in \\ continues on the next line, and so does text between two lines of ```.");
}

fn tools(tools: &[Tool], out: &mut Out) {
    if tools.is_empty() {
        out.line("no tools: no plugin is ready, or none of their actions is allowed here");
        return;
    }
    let mut table = Table::of(&[
        Column::text("TOOL", 0),
        Column::text("ASKS FIRST", 1),
        Column::text("READ ONLY", 3),
        Column::text("DESCRIPTION", 2),
    ]);
    for tool in tools {
        table.row(vec![
            format!("{}.{}", tool.plugin, tool.action).into(),
            asks_first(tool).into(),
            if tool.read_only { "yes" } else { "" }.into(),
            within(&tool.description, DESCRIPTION_BYTES).into(),
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

fn costs(costs: &GetCostsResponse, out: &mut Out) {
    let mut table = Table::of(&[
        Column::text("OF", 0),
        Column::number("COST", 0),
        Column::number("ESTIMATED", 4),
        Column::number("BUDGET", 3),
        Column::number("ANSWERS", 1),
        Column::number("FAILURES", 5),
        Column::number("TOKENS", 2),
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
