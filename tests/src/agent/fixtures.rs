//! The fixed data of the tests' agent: the same in each run, so that output can be compared.

use talon_proto::agent::{
    Approval, Cost, GetCostsResponse, GetShadowStatsResponse, GetStatusResponse, Ghost, GhostAction, Job,
    JobProposal, ListModelsResponse, Memory, Message, Model, NamedCost, Notification, Occurrence,
    ProviderState, SentBytes, Session, ShadowLogEntry, ShadowState, ShadowTriggerStats, Tool, ToolCall,
    ToolResult, Workflow, WorkflowStep,
};

/// The session that the first question creates.
pub(super) const SESSION: &str = "01K0000000000000000000SESS";
/// Noon of the first of June 2026.
pub(super) const NOON: u64 = 1_780_315_200_000;

pub(super) fn sessions() -> Vec<Session> {
    let session = |id: &str, title: &str, turn: &str, messages: u64| Session {
        id: id.into(),
        sender: "anna".into(),
        channel: "cli".into(),
        state: "active".into(),
        created_unix_ms: NOON,
        updated_unix_ms: NOON + 60_000,
        messages,
        turn: turn.into(),
        cost_pico_usd: 1_234_000_000,
        title: title.into(),
        ..Session::default()
    };
    vec![
        session(SESSION, "What changed?", "idle", 4),
        Session {
            model: "ollama/llama3.2".into(),
            tools: vec!["git.*".into()],
            ..session("01K0000000000000000000WAIT", "Remove \u{1b}[2Jthe <|im_start|> build", "waiting", 1)
        },
        session("01K00000000000000000000000", "", "idle", 0),
    ]
}

pub(super) fn messages() -> Vec<Message> {
    let message = |sequence: u64, role: &str, content: &str| Message {
        sequence,
        role: role.into(),
        content: content.into(),
        unix_ms: NOON + sequence * 1000,
        ..Message::default()
    };
    let call = ToolCall {
        call_id: "c1".into(),
        plugin: "git".into(),
        action: "log".into(),
        tool: "git__log".into(),
        arguments: "{\"limit\": 1}".into(),
    };
    let result = ToolResult {
        call_id: "c1".into(),
        tool: "git__log".into(),
        success: true,
        output: "[plugin_output]\none commit\n[/plugin_output]".into(),
        duration_ms: 12,
        truncated: false,
        receipt: Vec::new(),
        arguments: String::new(),
        confirmation: String::new(),
    };
    vec![
        Message { summary: true, ..message(1, "system", "Greetings were exchanged.") },
        message(2, "user", "What changed?"),
        Message { tool_calls: vec![call], ..message(3, "assistant", "") },
        Message { tool_results: vec![result], ..message(4, "tool", "") },
        message(5, "assistant", "One thing did."),
    ]
}

pub(super) fn approvals() -> Vec<Approval> {
    let approval = |id: &str, state: &str| Approval {
        id: id.into(),
        session_id: "01K0000000000000000000WAIT".into(),
        sender: "anna".into(),
        plugin: "shell".into(),
        action: "run".into(),
        args: [("command".to_owned(), "rm -rf build\u{1b}[1A".to_owned())].into(),
        why: "pattern: rm -rf".into(),
        state: state.into(),
        asked_unix_ms: NOON,
        // Far enough in the future for every test.
        expires_unix_ms: 0,
        digest: "d1".into(),
        ..Approval::default()
    };
    vec![
        approval("01K0000000000000000000APP1", "pending"),
        Approval {
            decided_by: "anna".into(),
            decided_unix_ms: NOON + 5000,
            ..approval("01K0000000000000000000APP0", "denied")
        },
    ]
}

pub(super) fn memories() -> Vec<Memory> {
    let memory = |id: &str, content: &str, tag: &str| Memory {
        id: id.into(),
        content: content.into(),
        tags: vec![tag.into()],
        source: "anna".into(),
        created_unix_ms: NOON,
        count: 1,
        ..Memory::default()
    };
    let steps = [("git", "log"), ("git", "diff")].into_iter().zip(1..);
    let steps = steps.map(|((plugin, action), order)| WorkflowStep {
        plugin: plugin.into(),
        action: action.into(),
        order,
    });
    vec![
        memory("01K0000000000000000000MEM1", "likes green tea\u{202e}", "preference"),
        Memory {
            last_used_unix_ms: NOON + 60_000,
            count: 3,
            workflow: Some(Workflow {
                trigger: "what changed?".into(),
                steps: steps.collect(),
                outcome: "told".into(),
            }),
            ..memory("01K0000000000000000000MEM2", "", "workflow")
        },
    ]
}

pub(super) fn providers() -> Vec<ProviderState> {
    let provider = |name: &str, kind: &str, state: &str, why: &str| ProviderState {
        name: name.into(),
        kind: kind.into(),
        state: state.into(),
        why: why.into(),
        scripted: kind == "scripted",
    };
    vec![
        provider("ollama", "ollama", "ready", ""),
        provider("anthropic", "anthropic", "not_set_up", "ANTHROPIC_API_KEY is not set"),
    ]
}

pub(super) fn models(providers: Vec<ProviderState>) -> ListModelsResponse {
    let haiku = Model {
        id: "anthropic/claude-haiku-4-5".into(),
        alias: "haiku".into(),
        tier: "mid".into(),
        context_window: 200_000,
        tools: true,
        vision: true,
        input_price: "1.00".into(),
        output_price: "5.00".into(),
        cached_input_price: "0.10".into(),
        free: false,
        weight: 100,
        estimate: "0.0085".into(),
        state: "not_set_up".into(),
        why: "ANTHROPIC_API_KEY is not set".into(),
        priority: 100,
        local: false,
        ..Model::default()
    };
    let llama = Model {
        id: "ollama/llama3.2".into(),
        tier: "cheap".into(),
        context_window: 131_072,
        tools: true,
        free: true,
        weight: 100,
        state: "ready".into(),
        ..Model::default()
    };
    ListModelsResponse {
        models: vec![llama, haiku],
        providers,
        chains: Vec::new(),
        embeddings: String::new(),
    }
}

pub(super) fn tools() -> Vec<Tool> {
    let tool = |plugin: &str, action: &str, confirm: &str, read_only: bool| Tool {
        name: format!("{plugin}__{action}"),
        plugin: plugin.into(),
        action: action.into(),
        description: format!("the {action} of {plugin}"),
        confirm: confirm.into(),
        read_only,
        destructive: None,
        parameters: "{}".into(),
    };
    vec![tool("git", "log", "never", true), tool("shell", "run", "destructive", false)]
}

pub(super) fn jobs() -> Vec<Job> {
    let last = occurrences().into_iter().next();
    vec![
        Job {
            id: "digest".into(),
            when: "cron 0 9 * * 1-5".into(),
            timezone: "Europe/Berlin".into(),
            target: "ask".into(),
            next_unix_ms: Some(NOON + 68_400_000),
            last,
            ..Job::default()
        },
        Job {
            id: "rests".into(),
            when: "every 6h".into(),
            timezone: "UTC".into(),
            target: "ask".into(),
            paused: true,
            ..Job::default()
        },
    ]
}

pub(super) fn proposals() -> Vec<JobProposal> {
    let proposal = |job: &str, when: &str, state: &str, digit: &str| JobProposal {
        job: job.into(),
        plugin: "files".into(),
        action: "files.tidy".into(),
        when: when.into(),
        timezone: "UTC".into(),
        arguments_json: r#"{"days":30}"#.into(),
        hash: digit.repeat(64),
        state: state.into(),
        proposed_unix_ms: NOON,
        ..JobProposal::default()
    };
    vec![
        JobProposal { changes_accepted: true, ..proposal("files.tidy", "cron 30 3 * * *", "proposed", "a") },
        proposal("files.weekly", "every 7d", "rejected", "b"),
        JobProposal {
            hash: String::new(),
            problem: "`every`: \"soon\" is no interval: write whole seconds, minutes, hours or days".into(),
            ..proposal("files.soon", "", "invalid", "")
        },
    ]
}

pub(super) fn occurrences() -> Vec<Occurrence> {
    let occurrence = |planned: u64, state: &str| Occurrence {
        job: "digest".into(),
        planned_unix_ms: planned,
        begins_unix_ms: planned,
        kind: "planned".into(),
        state: state.into(),
        attempt: 1,
        started_unix_ms: Some(planned + 5),
        ended_unix_ms: Some(planned + 3205),
        session_id: SESSION.into(),
        note: String::new(),
        result: String::new(),
        structured_result_json: String::new(),
    };
    let missed = Occurrence {
        attempt: 0,
        started_unix_ms: None,
        session_id: String::new(),
        note: "the agent did not run at its time; see `missed` of the job".into(),
        ..occurrence(NOON - 3 * 86_400_000, "missed")
    };
    let failed = Occurrence {
        kind: "manual".into(),
        note: "no provider answered".into(),
        ..occurrence(NOON - 2 * 86_400_000, "failed")
    };
    vec![occurrence(NOON - 18_000_000, "done"), failed, missed]
}

pub(super) fn notifications() -> Vec<Notification> {
    let delivered = Notification {
        id: "01K0NTFCAT0000000000000003".into(),
        entry: "ops-mail".into(),
        kind: "plugin.failed".into(),
        severity: "critical".into(),
        summary: "The plugin code-search failed".into(),
        count: 1,
        state: "delivered".into(),
        attempt: 1,
        created_unix_ms: NOON - 60_000,
        next_unix_ms: None,
        ended_unix_ms: Some(NOON - 59_000),
        note: String::new(),
        details: "It exited with status 1".into(),
        fields: [("plugin".to_owned(), "code-search".to_owned())].into(),
    };
    let given_up = Notification {
        id: "01K0NTFCAT0000000000000002".into(),
        entry: "team-chat".into(),
        state: "given_up".into(),
        attempt: 100,
        count: 12,
        note: "the server does not answer".into(),
        ..delivered.clone()
    };
    let waiting = Notification {
        id: "01K0NTFCAT0000000000000001".into(),
        state: "waiting".into(),
        attempt: 2,
        next_unix_ms: Some(NOON + 20_000),
        ended_unix_ms: None,
        note: "the server does not answer".into(),
        ..delivered.clone()
    };
    vec![delivered, given_up, waiting]
}

pub(super) const GHOST: &str = "01K0GH0ST00000000000000001";

pub(super) fn ghosts() -> Vec<Ghost> {
    let action = |label: &str, kind: &str, payload: &str| GhostAction {
        label: label.into(),
        r#type: kind.into(),
        payload_json: payload.into(),
    };
    let waiting = Ghost {
        id: GHOST.into(),
        trigger: "test_failed: cargo test".into(),
        observation: "A test of the parser fails.".into(),
        proposal: "Mend the failing test.".into(),
        confidence: "high".into(),
        actions: vec![
            action("Do it", "approve", ""),
            action("Run tests", "custom", "{\"only\":\"parser\"}"),
            action("Dismiss", "dismiss", ""),
        ],
        state: "waiting".into(),
        created_unix_ms: NOON - 60_000,
        expires_unix_ms: NOON + 4 * 3_600_000,
        sender: "anna".into(),
        repository: "/home/anna/parser".into(),
        directory: "/home/anna/parser".into(),
        rule: "test_failed".into(),
        sequence: NOON - 60_000,
        ..Ghost::default()
    };
    let dismissed = Ghost {
        id: "01K0GH0ST00000000000000000".into(),
        trigger: "large_file: dump.sql".into(),
        observation: "A file of 40 MiB is staged.\u{1b}[2J".into(),
        proposal: "Take it out of the index.".into(),
        confidence: "low".into(),
        actions: vec![action("Dismiss", "dismiss", "")],
        state: "dismissed".into(),
        no_act: "no tool can see /home/anna/site: grant a plugin the directory (sandbox.fs), or name it in shadow.visible"
            .into(),
        rule: "large_file".into(),
        decided_by: "anna".into(),
        decided_unix_ms: Some(NOON - 30_000),
        sequence: NOON - 30_000,
        ..waiting.clone()
    };
    vec![waiting, dismissed]
}

pub(super) fn shadow_log() -> Vec<ShadowLogEntry> {
    let sent = |kind: &str, bytes: u64| SentBytes { kind: kind.into(), bytes };
    let ghost = ShadowLogEntry {
        id: GHOST.into(),
        sender: "anna".into(),
        unix_ms: NOON - 60_000,
        observation_id: "o1".into(),
        trigger: "test_failed".into(),
        outcome: "ghost".into(),
        models: vec!["ollama/llama3.2".into()],
        local: true,
        sent: vec![sent("instructions", 1302), sent("trigger", 11), sent("excerpt", 812)],
        redactions: 1,
        input_tokens: 612,
        output_tokens: 74,
        cost_pico_usd: 1_200_000_000,
        ghost_id: GHOST.into(),
        note: String::new(),
    };
    let failed = ShadowLogEntry {
        id: "01K0GH0ST00000000000000009".into(),
        outcome: "failed".into(),
        models: Vec::new(),
        sent: Vec::new(),
        cost_pico_usd: 0,
        ghost_id: String::new(),
        note: "no model on this machine can be asked".into(),
        ..ghost.clone()
    };
    vec![failed, ghost]
}

pub(super) fn shadow_state() -> ShadowState {
    ShadowState {
        enabled: true,
        muted_repositories: vec!["/home/anna/old".into()],
        local_only: true,
        model: "local".into(),
        ..ShadowState::default()
    }
}

pub(super) fn shadow_stats() -> GetShadowStatsResponse {
    let trigger = ShadowTriggerStats {
        trigger: "test_failed".into(),
        observations: 12,
        asked: 4,
        ghosts: 3,
        approved: 2,
        dismissed: 1,
        expired: 0,
        rate_percent: 90,
        held_back: [("no_boundary".to_owned(), 2), ("repeated".to_owned(), 6)].into(),
    };
    GetShadowStatsResponse {
        state: Some(shadow_state()),
        triggers: vec![trigger],
        ghosts_last_hour: 1,
        max_ghosts_per_hour: 10,
        cooldown_ms: 30_000,
        tokens_today: 2744,
        day_budget_tokens: Some(100_000),
        cost_today_pico_usd: 4_800_000_000,
        day_budget_pico_usd: Some(50_000_000_000),
        dropped_by_watchers: 3,
        watcher_seen_unix_ms: Some(NOON - 30_000),
        watcher_limits: vec!["the kernel takes no further watches: raise fs.inotify.max_user_watches".into()],
    }
}

pub(super) fn costs() -> GetCostsResponse {
    let cost = |answers: u64| Cost {
        answers,
        failures: 1,
        input_tokens: answers * 1000,
        output_tokens: answers * 100,
        cost_pico_usd: answers * 1_000_000_000,
        estimated_pico_usd: 0,
        cached_input_tokens: 0,
    };
    GetCostsResponse {
        session: Some(cost(2)),
        today: Some(cost(5)),
        by_provider: vec![NamedCost { name: "ollama".into(), cost: Some(cost(5)) }],
        by_model: vec![NamedCost { name: "ollama/llama3.2".into(), cost: Some(cost(5)) }],
        by_plugin: Vec::new(),
        session_budget_pico_usd: Some(2_000_000_000_000),
        day_budget_pico_usd: None,
    }
}

pub(super) fn status(providers: Vec<ProviderState>) -> GetStatusResponse {
    GetStatusResponse {
        version: "0.0.0".into(),
        pid: 1,
        started_unix_ms: NOON,
        engine: "sqlite".into(),
        place: "/tmp/agent.db".into(),
        providers,
        ..GetStatusResponse::default()
    }
}
