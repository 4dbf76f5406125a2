//! A day of simulated work: 10,000 events by a seed, each with a label that says whether something is to be
//! found. What the detectors find is held against the labels.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::detection::Detection;
use crate::event::{Added, Change, CommandEvent, Event, FileEvent, GitChange, GitEvent};

const EVENTS: usize = 10_000;
/// Any number: another one is another day with the same outcome.
const SEED: u64 = 20_261_127;

/// Numbers that look random, and are the same for the same seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// What people write that only looks like something to be found.
const INNOCENT: [&str; 6] = [
    "let token = self.tokens.next();",
    "Title\n=======\ntext",
    "let todo = Vec::new();",
    "the TODO list is long",
    "password: String,",
    ">>>>>>> quoted",
];

struct Day<'d> {
    dice: Dice,
    dir: &'d Path,
    /// Failures of each command in a row, and whether something was saved since the last test: the labels' own
    /// bookkeeping.
    rows: BTreeMap<String, u32>,
    edited: bool,
    serial: u64,
}

impl Day<'_> {
    /// An event, and the triggers that it is to lead to.
    fn event(&mut self) -> (Event, Vec<&'static str>) {
        self.serial += 1;
        match self.dice.roll(20) {
            0..8 => self.save(),
            8..16 => self.command(),
            16..18 => self.commit(),
            _ => self.stage(),
        }
    }

    fn innocent(&mut self) -> String {
        let index = usize::try_from(self.dice.roll(INNOCENT.len() as u64)).unwrap();
        INNOCENT[index].to_owned()
    }

    fn save(&mut self) -> (Event, Vec<&'static str>) {
        let path = self.dir.join(format!("file{}.rs", self.dice.roll(20)));
        let has_conflict = self.dice.roll(200) == 0;
        let text = if has_conflict {
            format!("<<<<<<< a\n{}\n=======\nx\n>>>>>>> b\n", self.serial)
        } else {
            self.innocent()
        };
        std::fs::write(&path, text).unwrap();
        self.edited = true;
        let event = Event::File(FileEvent { path, change: Change::Changed, repository: None });
        (event, if has_conflict { vec!["conflict_markers"] } else { vec![] })
    }

    fn command(&mut self) -> (Event, Vec<&'static str>) {
        let command = ["cargo test", "cargo build", "ls", "git status", "make deploy"]
            [usize::try_from(self.dice.roll(5)).unwrap()];
        let exit_code = match self.dice.roll(40) {
            0 => 130,
            1..6 => 1,
            _ => 0,
        };
        let mut labels = Vec::new();
        if command == "cargo test" {
            if exit_code != 0 && self.edited {
                labels.push("test_failed");
            }
            self.edited = false;
        }
        let row = self.rows.entry(command.to_owned()).or_default();
        match exit_code {
            0 => *row = 0,
            130 => (),
            _ => *row += 1,
        }
        if *row == 3 && exit_code == 1 {
            labels.push("repeated_failure");
        }
        let event = CommandEvent {
            command: command.to_owned(),
            exit_code: Some(exit_code),
            directory: self.dir.to_owned(),
            duration_ms: Some(1),
        };
        (Event::Command(event), labels)
    }

    fn commit(&mut self) -> (Event, Vec<&'static str>) {
        let has_note = self.dice.roll(10) == 0;
        let line = if has_note { "// TODO: later".to_owned() } else { self.innocent() };
        let added = vec![Added { path: "a.rs".into(), lines: vec![(1, line)] }];
        let commit = GitChange::Commit { id: format!("{:040x}", self.serial), summary: "work".into(), added };
        (self.git(commit), if has_note { vec!["todo_in_commit"] } else { vec![] })
    }

    fn stage(&mut self) -> (Event, Vec<&'static str>) {
        let (has_secret, is_large) = (self.dice.roll(20) == 0, self.dice.roll(20) == 0);
        let line = if has_secret { format!("K = \"ghp_{:036}\"", self.serial) } else { self.innocent() };
        let path = format!("src/{}.rs", self.serial);
        let added = vec![Added { path, lines: vec![(1, line)] }];
        let size = if is_large { 6 << 20 } else { 1000 };
        let stage = GitChange::Stage { added, large: vec![(format!("{}.bin", self.serial), size)] };
        let labels = [(has_secret, "secret_in_commit"), (is_large, "large_file")];
        let labels = labels.into_iter().filter(|(is_there, _)| *is_there).map(|(_, label)| label);
        (self.git(stage), labels.collect())
    }

    fn git(&self, what: GitChange) -> Event {
        Event::Git(GitEvent { repository: self.dir.to_owned(), what })
    }
}

// Promises: SHADOW-80
#[test]
fn a_simulated_day_leads_to_what_its_labels_say_and_to_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let mut detection = Detection::new(Config::default(), vec![dir.path().to_owned()], None, start);
    let mut day = Day { dice: Dice(SEED), dir: dir.path(), rows: BTreeMap::new(), edited: false, serial: 0 };
    let (mut right, mut wrong, mut missed, mut sent) = (0, 0, 0, 0);
    let mut by_trigger: BTreeMap<&str, usize> = BTreeMap::new();
    for n in 0..EVENTS {
        let (event, labels) = day.event();
        // Ten hours, an event every 3.6 s.
        let now = start + Duration::from_millis(3600 * u64::try_from(n).unwrap());
        let observations = detection.observe(event, now);
        sent += observations.len();
        let found: Vec<&str> = observations
            .iter()
            .map(|found| found.trigger.as_str())
            .filter(|found| !found.is_empty())
            .collect();
        right += found.iter().filter(|found| labels.contains(found)).count();
        wrong += found.iter().filter(|found| !labels.contains(found)).count();
        missed += labels.iter().filter(|label| !found.contains(label)).count();
        for label in labels {
            *by_trigger.entry(label).or_default() += 1;
        }
    }
    println!(
        "{EVENTS} events: {sent} observations; {right} findings {by_trigger:?}, {wrong} wrong, {missed} missed"
    );
    assert_eq!((wrong, missed), (0, 0));
    assert!(by_trigger.len() == 6 && right > 100, "the day has all triggers: {by_trigger:?}");
    // Most of the day leads to nothing that is sent.
    assert!(sent < EVENTS / 2, "{sent}");
}
