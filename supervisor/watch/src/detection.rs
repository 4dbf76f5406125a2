//! From events to observations: which detectors see what, and what becomes of their findings. No IO but the
//! reading of a saved file.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use talon_proto::agent::Observation;

use crate::config::{Config, GitKind};
use crate::detect::failed_test::{FailedTests, is_test};
use crate::detect::repeated_failure::RepeatedFailures;
use crate::detect::{conflict_markers, large_file, secret, todo_comment};
use crate::event::{Added, Change, CheckEvent, CommandEvent, Event, FileEvent, GitChange, GitEvent};
use crate::excerpt::Excerpt;
use crate::files::{read_text, repository_of};
use crate::git::is_in_progress;
use crate::observation::{Boundary, Kind, ObservationBuilder, first_words};

/// How many lines around a finding are sent.
const AROUND: usize = 6;

/// Boundaries of the same kind within this time are one: a person who types commands makes one a second.
const BOUNDARIES_APART: Duration = Duration::from_secs(5);

/// How many findings are remembered as sent. The agent remembers all; this only saves requests.
const REMEMBERED: usize = 1024;

/// How long. 15 minutes: so long a finding waits in the agent, which may want to hear of it again afterwards.
const REMEMBERED_FOR: Duration = Duration::from_secs(15 * 60);

/// How many files of one commit, or of the index, lead to a finding each.
const FILES: usize = 10;

/// The state of all detectors.
pub(crate) struct Detection {
    config: Config,
    roots: Vec<PathBuf>,
    home: Option<PathBuf>,
    failures: RepeatedFailures,
    tests: FailedTests,
    sent: HashMap<String, Instant>,
    sent_order: VecDeque<String>,
    last_boundary: [Option<Instant>; 4],
    last_event: Instant,
    idle_told: bool,
}

impl Detection {
    pub(crate) fn new(config: Config, roots: Vec<PathBuf>, home: Option<PathBuf>, now: Instant) -> Self {
        Self {
            config,
            roots,
            home,
            failures: RepeatedFailures::default(),
            tests: FailedTests::default(),
            sent: HashMap::new(),
            sent_order: VecDeque::new(),
            last_boundary: [None; 4],
            last_event: now,
            // Nothing happened yet that could rest.
            idle_told: true,
        }
    }

    /// What an event leads to.
    pub(crate) fn observe(&mut self, event: Event, now: Instant) -> Vec<Observation> {
        (self.last_event, self.idle_told) = (now, false);
        let found = match event {
            Event::File(event) => self.file(&event),
            Event::Command(event) => self.command(&event, now),
            Event::Git(event) => self.git(event, now),
            Event::Check(event) => self.check(&event),
            Event::CommitsSeen(..) => Vec::new(),
        };
        found.into_iter().map(ObservationBuilder::build).filter(|found| self.is_new(found, now)).collect()
    }

    /// Time passed; returns the boundary of an idle moment.
    pub(crate) fn tick(&mut self, now: Instant) -> Option<Observation> {
        let is_idle = now.saturating_duration_since(self.last_event) >= self.config.idle.0;
        if self.idle_told || !is_idle {
            return None;
        }
        self.idle_told = true;
        let place = self.roots.first()?.clone();
        Some(ObservationBuilder::new(Kind::Boundary, &place).boundary(Boundary::Idle).build())
    }

    fn file(&mut self, event: &FileEvent) -> Vec<ObservationBuilder> {
        if event.change == Change::Removed {
            return Vec::new();
        }
        self.tests.edited(&event.path);
        // While a merge is in progress its conflicts are no news; that it stopped is told by itself.
        let git = &self.config.watchers.git;
        let is_told = git.enabled && git.events.contains(&GitKind::MergeConflict);
        if is_told && event.repository.as_deref().is_some_and(is_in_progress) {
            return Vec::new();
        }
        // A file that cannot be read is no finding; whoever edits it sees that.
        let Ok(Some(text)) = read_text(&event.path) else { return Vec::new() };
        let Some(conflict) = conflict_markers::find(&text) else { return Vec::new() };
        let kind = if event.change == Change::Added { Kind::FileAdded } else { Kind::FileChanged };
        let finding = match conflict.count {
            1 => format!("conflict markers at line {}", conflict.line),
            count => format!("{count} conflicts, the first at line {}", conflict.line),
        };
        let excerpt = Excerpt::around(&text, conflict.line, AROUND);
        let same = excerpt.text.clone();
        let directory = event.path.parent().unwrap_or(&event.path);
        let observation = ObservationBuilder::new(kind, directory)
            .repository(event.repository.as_deref())
            .file(&event.path)
            .trigger("conflict_markers", &finding)
            .excerpt(excerpt)
            .same_as(&[&same]);
        vec![observation]
    }

    fn command(&mut self, event: &CommandEvent, now: Instant) -> Vec<ObservationBuilder> {
        let repository = repository_of(&event.directory, &self.roots);
        let place = repository.clone().unwrap_or_else(|| event.directory.clone());
        let new = |kind| {
            ObservationBuilder::new(kind, &event.directory)
                .repository(repository.as_deref())
                .command(event.exit_code, event.duration_ms)
        };
        let ended = if is_test(&event.command) { Boundary::TestEnd } else { Boundary::Prompt };
        let mut found = Vec::new();
        if let Some(code) = event.exit_code {
            let edited = (ended == Boundary::TestEnd).then(|| self.tests.ended(&place, code != 0)).flatten();
            let row = self.failures.observe(&event.directory, &event.command, code, now);
            let text = self.without_paths(&event.command, &place);
            if self.config.watchers.shell.watch_errors {
                let observation = || new(Kind::Command).excerpt(Excerpt::of(&text)).boundary(ended);
                if let Some(file) = edited {
                    let finding = format!("tests failed with exit code {code} after an edit");
                    found.push(
                        observation()
                            .file(&file)
                            .subject(&first_words(&event.command))
                            .trigger("test_failed", &finding),
                    );
                }
                if let Some(count) = row {
                    let finding =
                        format!("the same command failed {count} times in a row, last with exit code {code}");
                    found.push(
                        observation()
                            .subject(&first_words(&event.command))
                            .trigger("repeated_failure", &finding),
                    );
                }
            }
        }
        // Each of these may come again: without a mark of when, the agent would take the next one for the same.
        let found: Vec<ObservationBuilder> = found
            .into_iter()
            .map(|observation| observation.same_as(&[&ulid::Ulid::generate().to_string()]))
            .collect();
        if found.is_empty() && self.is_boundary_due(ended, now) {
            return vec![new(Kind::Boundary).boundary(ended)];
        }
        found
    }

    fn git(&mut self, event: GitEvent, now: Instant) -> Vec<ObservationBuilder> {
        let GitEvent { repository, what } = event;
        let wanted = match &what {
            GitChange::Commit { .. } => GitKind::Commit,
            GitChange::Push { .. } => GitKind::Push,
            GitChange::MergeConflict { .. } => GitKind::MergeConflict,
            GitChange::RebaseFailed { .. } => GitKind::RebaseFailed,
            GitChange::Stage { .. } => GitKind::Stage,
        };
        if !self.config.watchers.git.events.contains(&wanted) {
            return Vec::new();
        }
        let new = |kind| ObservationBuilder::new(kind, &repository).repository(Some(&repository));
        match what {
            GitChange::Commit { id, summary, added } => {
                self.last_boundary[boundary_index(Boundary::Commit)] = Some(now);
                let observation = new(Kind::Commit).subject(&summary).boundary(Boundary::Commit);
                vec![commit_notes(observation, &id, &added)]
            }
            GitChange::Push { branch } => {
                vec![new(Kind::Push).subject(&branch).boundary(Boundary::Commit)]
            }
            GitChange::MergeConflict { paths, command } => {
                let finding = format!("{command} stopped with conflicts in {}", files(paths.len()));
                vec![conflict(new(Kind::MergeConflict), &repository, &paths, "merge_conflict", &finding)]
            }
            GitChange::RebaseFailed { paths } => {
                let finding = format!("a rebase stopped with conflicts in {}", files(paths.len()));
                vec![conflict(new(Kind::RebaseFailed), &repository, &paths, "rebase_failed", &finding)]
            }
            GitChange::Stage { added, large } => {
                let staged = || new(Kind::Stage).boundary(Boundary::Prompt);
                let mut found: Vec<ObservationBuilder> = secret::find(&added)
                    .into_iter()
                    .take(FILES)
                    .map(|found| staged_secret(staged(), &repository, &found, &added))
                    .collect();
                let large = large_file::find(&large, self.config.watchers.git.large_file_bytes);
                found.extend(large.into_iter().take(FILES).map(|(path, bytes)| {
                    let finding = format!("a file of {} is staged", large_file::shown(bytes));
                    staged().file(&repository.join(path)).trigger("large_file", &finding).same_as(&[&finding])
                }));
                found
            }
        }
    }

    fn check(&self, event: &CheckEvent) -> Vec<ObservationBuilder> {
        if event.exit_code == Some(0) {
            return Vec::new();
        }
        let place = event.repository.as_deref().unwrap_or(&event.directory);
        let finding = match event.exit_code {
            Some(code) => format!("the checker ended with exit code {code}"),
            None => "the checker was stopped at its timeout".to_owned(),
        };
        let observation = ObservationBuilder::new(Kind::FileChanged, &event.directory)
            .repository(event.repository.as_deref())
            .file(&event.path)
            .subject(&first_words(&event.command.join(" ")))
            .trigger("checker_error", &finding)
            .excerpt(Excerpt::of(&self.without_paths(&event.output, place)))
            .command(event.exit_code, None);
        vec![observation]
    }

    /// Texts of programs name files by their paths, which stay on this machine.
    fn without_paths(&self, text: &str, place: &Path) -> String {
        let mut text = text.replace(&*place.to_string_lossy(), ".");
        if let Some(home) = &self.home {
            text = text.replace(&*home.to_string_lossy(), "~");
        }
        text
    }

    fn is_boundary_due(&mut self, boundary: Boundary, now: Instant) -> bool {
        let last = &mut self.last_boundary[boundary_index(boundary)];
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= BOUNDARIES_APART);
        if is_due {
            *last = Some(now);
        }
        is_due
    }

    fn is_new(&mut self, observation: &Observation, now: Instant) -> bool {
        if observation.fingerprint.is_empty() {
            return true;
        }
        if let Some(sent) = self.sent.get_mut(&observation.fingerprint) {
            let is_over = now.saturating_duration_since(*sent) >= REMEMBERED_FOR;
            if is_over {
                *sent = now;
            }
            return is_over;
        }
        self.sent.insert(observation.fingerprint.clone(), now);
        self.sent_order.push_back(observation.fingerprint.clone());
        if self.sent_order.len() > REMEMBERED
            && let Some(oldest) = self.sent_order.pop_front()
        {
            self.sent.remove(&oldest);
        }
        true
    }
}

fn boundary_index(boundary: Boundary) -> usize {
    match boundary {
        Boundary::Commit => 0,
        Boundary::TestEnd => 1,
        Boundary::Prompt => 2,
        Boundary::Idle => 3,
    }
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// The notes that a commit added, if there are any.
fn commit_notes(observation: ObservationBuilder, id: &str, added: &[Added]) -> ObservationBuilder {
    let notes = todo_comment::find(added);
    let Some(first) = notes.first() else { return observation.same_as(&[id]) };
    let finding = match notes.len() {
        1 => format!("a commit added a note {} at line {}", first.word, first.line),
        count => format!("a commit added {count} notes, the first {} at line {}", first.word, first.line),
    };
    let lines: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
    observation.trigger("todo_in_commit", &finding).excerpt(Excerpt::of(&lines.join("\n"))).same_as(&[id])
}

/// A merge or a rebase that stopped; the excerpt is the first conflict.
fn conflict(
    observation: ObservationBuilder,
    repository: &Path,
    paths: &[String],
    trigger: &'static str,
    finding: &str,
) -> ObservationBuilder {
    let observation = observation.trigger(trigger, finding).boundary(Boundary::Prompt);
    let Some(first) = paths.first().map(|path| repository.join(path)) else { return observation };
    let observation = observation.file(&first);
    // A file that was deleted on one side has no markers.
    let text = read_text(&first).ok().flatten().unwrap_or_default();
    match conflict_markers::find(&text) {
        Some(conflict) => observation.excerpt(Excerpt::around(&text, conflict.line, 2 * AROUND)),
        None => observation,
    }
}

fn staged_secret(
    observation: ObservationBuilder,
    repository: &Path,
    found: &secret::StagedSecret,
    added: &[Added],
) -> ObservationBuilder {
    let lines = added.iter().find(|file| file.path == found.path).map_or(&[][..], |file| &file.lines);
    let text: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
    let index = lines.iter().position(|(line, _)| *line == found.line).unwrap_or(0);
    let excerpt = Excerpt::around(&text.join("\n"), index + 1, 1);
    let finding = format!("{} at line {} is staged and would be committed", found.rule, found.line);
    let same = excerpt.text.clone();
    observation
        .file(&repository.join(&found.path))
        .trigger("secret_in_commit", &finding)
        .excerpt(excerpt)
        .same_as(&[found.rule, &same])
}

#[cfg(test)]
#[path = "detection_tests.rs"]
mod tests;
