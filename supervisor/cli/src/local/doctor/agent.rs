//! Checks of the agent: whether its configuration can work.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use talon_proto::host::{AgentStatus, GetStatusResponse, MemoryVectors};
use talon_supervisor::config::Config;
use talon_supervisor::state::AGENT_DIR;

use super::check::{Check, CheckBuilder, Section};

/// Files of the workspace, besides the directory of daily memory files.
const FILES: [&str; 4] = ["SOUL.md", "USER.md", "IDENTITY.md", "memory"];

/// Checks that `talon config check` does not make; none if the agent is disabled.
pub(super) fn checks(config: &Config) -> Vec<Check> {
    if !config.runs_agent() {
        return Vec::new();
    }
    // The agent's uid owns its home directory; before the first start the uid is unknown.
    let home = config.state.data_dir.join(AGENT_DIR).metadata().ok();
    config.agent.workspace.as_ref().and_then(|dir| workspace(dir, home.as_ref())).into_iter().collect()
}

/// What the running supervisor reports; `None` if it has no agent.
pub(super) fn running(status: &GetStatusResponse) -> Option<Check> {
    let of = CheckBuilder(Section::Supervisor, "agent");
    let AgentStatus { state, pid, uid, problems, .. } =
        status.agent.as_ref().filter(|agent| agent.state != "off")?;
    let said = problems.join("; ");
    Some(match (state.as_str(), problems.is_empty()) {
        ("serving", true) => of.ok(format!("serving (pid {pid}, uid {uid})")),
        ("serving", false) => of.warn(format!("serving, and complains: {said}")),
        ("full", _) => of
            .fail(format!("full: {said}"))
            .with_reason("turns fail, because nothing of them can be written")
            .with_fix("make room where its database is, or raise state.max_bytes"),
        ("starting", _) => of.warn("it is being started").with_fix("look again in some seconds"),
        _ => of
            .fail(format!("{state}: {said}"))
            .with_reason("no client can reach it; plugins are not affected")
            .with_fix("see its lines in the supervisor's log (plugin=talon-agent)"),
    })
}

/// Whether all memories are found by meaning; `None` without `models.embeddings`.
pub(super) fn memory_vectors(status: &GetStatusResponse) -> Option<Check> {
    let of = CheckBuilder(Section::Supervisor, "memory vectors");
    let told = status.agent.as_ref()?.memory_vectors.as_ref()?;
    let MemoryVectors { model, memories, vectors, local_only, refused, engine, failure } = told;
    let mut said = format!("{vectors} of {memories} memories have one of {model}");
    if *local_only > 0 {
        said.push_str(&format!("; {local_only} more stay on this machine, and are found by words alone"));
    }
    if *refused > 0 {
        said.push_str(&format!("; the model makes none of {refused}"));
    }
    let by_words = "those without one are found by words alone";
    if vectors < memories {
        return Some(if failure.is_empty() && vectors + refused < *memories {
            of.warn(said).with_reason(by_words).with_fix("look again in a minute: they are being made")
        } else if failure.is_empty() {
            of.warn(said)
                .with_reason(by_words)
                .with_fix("see the agent's log for their ids; forget those that are no memories, or choose another model")
        } else {
            of.warn(format!("{said}: {failure}"))
                .with_reason(by_words)
                .with_fix("mend models.embeddings or its provider; it is tried again every 5 minutes")
        });
    }
    if engine == "bytea" {
        return Some(
            of.ok(format!(
                "{said}; the server has no pgvector, so it sends all of them to the agent to be compared"
            ))
            .with_fix(PGVECTOR),
        );
    }
    Some(of.ok(said))
}

/// What a superuser of the database has to run, since the extension is no trusted one.
const PGVECTOR: &str = "for many thousands of memories, as a superuser of its database: CREATE EXTENSION IF NOT EXISTS vector; and then `talon restart`";

/// Whether the agent can read its workspace; a missing one is reported by the configuration's own checks. The
/// owner of `home`, the agent's directory, is the uid that the agent runs as.
fn workspace(dir: &Path, home: Option<&Metadata>) -> Option<Check> {
    let of = CheckBuilder(Section::Files, "workspace");
    let about = dir.metadata().ok().filter(Metadata::is_dir)?;
    // A missing file is not needed.
    let inside = FILES.iter().map(|name| dir.join(name));
    let inside = inside.filter_map(|path| path.metadata().ok().map(|about| (path, about)));
    let mut all = [(dir.to_owned(), about)].into_iter().chain(inside);
    Some(match all.find(|(_, about)| !readable(about, home)) {
        None => of.ok(dir.display().to_string()),
        Some((path, _)) => of
            .warn(format!("the agent may not read {}", path.display()))
            .with_reason("built-in texts stand for what it cannot read")
            .with_fix(format!("chmod -R o=rX {}, if nothing in it is secret", dir.display())),
    })
}

fn readable(about: &Metadata, home: Option<&Metadata>) -> bool {
    let owner = home.is_some_and(|home| home.uid() == about.uid());
    let group = home.is_some_and(|home| home.gid() == about.gid());
    // A directory also needs execute permission.
    let bits = if about.is_dir() { 0o5 } else { 0o4 };
    let needed = match (owner, group) {
        (true, _) => bits << 6,
        (false, true) => bits << 3,
        (false, false) => bits,
    };
    about.mode() & needed == needed
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn a_workspace_has_to_be_readable_by_who_the_agent_is() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("workspace");
        assert!(workspace(&place, None).is_none());
        std::fs::create_dir(&place).unwrap();
        std::fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(workspace(&place, None).unwrap().verdict, Verdict::Ok);
        let soul = place.join("SOUL.md");
        std::fs::write(&soul, "be kind").unwrap();
        std::fs::set_permissions(&soul, Permissions::from_mode(0o600)).unwrap();
        let check = workspace(&place, None).unwrap();
        assert!(check.verdict == Verdict::Warn && check.message.contains("SOUL.md"), "{check:?}");
        // The owner may read.
        let owned = workspace(&place, place.metadata().ok().as_ref());
        assert_eq!(owned.unwrap().verdict, Verdict::Ok);
        std::fs::set_permissions(&place, Permissions::from_mode(0o700)).unwrap();
        assert!(workspace(&place, None).unwrap().fix.contains("chmod"));
    }

    // Promises: AGENT-143
    #[test]
    fn memories_without_a_vector_are_reported_and_the_extension_is_named() {
        let with = |vectors: MemoryVectors| GetStatusResponse {
            agent: Some(AgentStatus { memory_vectors: Some(vectors), ..AgentStatus::default() }),
            ..GetStatusResponse::default()
        };
        assert!(memory_vectors(&GetStatusResponse::default()).is_none());
        let whole = MemoryVectors {
            model: "ollama/nomic-embed-text".to_owned(),
            memories: 9169,
            vectors: 9169,
            engine: "sqlite".to_owned(),
            ..MemoryVectors::default()
        };
        let check = memory_vectors(&with(whole.clone())).unwrap();
        assert_eq!((check.verdict, check.fix.as_str()), (Verdict::Ok, ""));
        for (engine, fix) in [("bytea", "CREATE EXTENSION IF NOT EXISTS vector;"), ("pgvector", "")] {
            let check = memory_vectors(&with(MemoryVectors { engine: engine.to_owned(), ..whole.clone() }));
            let check = check.unwrap();
            assert!(check.verdict == Verdict::Ok && check.fix.contains(fix), "{check:?}");
        }
        for (vectors, refused, failure, fix) in [
            (9, 0, "", "are being made"),
            (9, 0, "no route", "models.embeddings"),
            (9168, 1, "", "agent's log"),
        ] {
            let failure = failure.to_owned();
            let check = memory_vectors(&with(MemoryVectors { vectors, refused, failure, ..whole.clone() }));
            let check = check.unwrap();
            assert!(check.verdict == Verdict::Warn && check.fix.contains(fix), "{check:?}");
            assert!(check.message.contains("of 9169 memories"), "{check:?}");
        }
    }

    #[test]
    fn what_a_supervisor_says_is_told_and_nothing_where_there_is_none() {
        let with = |state: &str, problems: &[&str]| GetStatusResponse {
            agent: Some(AgentStatus {
                state: state.to_owned(),
                problems: problems.iter().map(|text| (*text).to_owned()).collect(),
                ..AgentStatus::default()
            }),
            ..GetStatusResponse::default()
        };
        assert!(running(&GetStatusResponse::default()).is_none());
        assert!(running(&with("off", &[])).is_none());
        assert_eq!(running(&with("serving", &[])).unwrap().verdict, Verdict::Ok);
        assert_eq!(running(&with("serving", &["a key is missing"])).unwrap().verdict, Verdict::Warn);
        let failed = running(&with("backoff", &["it ended"])).unwrap();
        assert!(failed.verdict == Verdict::Fail && failed.message.contains("it ended"), "{failed:?}");
    }
}
