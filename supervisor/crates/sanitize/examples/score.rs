//! The guard's score on hostile and legitimate texts, beside two published rules and no rule at all:
//! `score [--table FILE] [DIR…]`. The directories are legitimate trees to measure as well. In the file, the
//! report goes between `<!-- score -->` and `<!-- /score -->`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use talon_sanitize::{FamilyCounts, Sanitizer};

#[path = "../tests/common/decode.rs"]
mod decode;
#[path = "../tests/common/evade.rs"]
mod evade;
#[path = "../tests/common/generated.rs"]
mod generated;
#[path = "../tests/common/mutate.rs"]
mod mutate;
#[path = "../tests/common/random.rs"]
mod random;
#[path = "rivals/mod.rs"]
mod rivals;
#[path = "../tests/common/unseen.rs"]
mod unseen;

use unseen::{Hostile, SURVIVORS, surviving};

/// One rule: a name and what it makes of a text.
type Rule = (&'static str, fn(&str) -> String);

const RULES: [Rule; 4] = [
    ("Talon", |text| Sanitizer::default().text(text, &mut FamilyCounts::default()).into_owned()),
    ("six literals masked", rivals::mask_six_literals),
    ("special tokens folded and replaced", rivals::replace_folded_tokens),
    ("nothing", str::to_owned),
];

/// The seeds of the generated texts, and how many of each family and seed. No rule was tuned with these.
const SEEDS: core::ops::Range<u64> = 2001..2006;
const EACH: usize = 400;

/// Hands each of some texts out.
type Texts<'t> = dyn Fn(&mut dyn FnMut(&str)) + 't;

#[derive(Deserialize)]
struct Record {
    text: String,
    #[serde(default)]
    needles: Vec<String>,
    #[serde(default)]
    family: String,
    #[serde(default)]
    evasion: String,
}

fn main() {
    let mut table = None;
    let mut dirs = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--table" => table = args.next(),
            _ => dirs.push(PathBuf::from(arg)),
        }
    }
    let report = report(&dirs);
    print!("{report}");
    if let Some(table) = table {
        let page = std::fs::read_to_string(&table).unwrap_or_default();
        std::fs::write(&table, between_marks(&page, &report)).expect("the table's file can be written");
    }
}

/// The page with the report where the last one was, or the report alone.
fn between_marks(page: &str, report: &str) -> String {
    const BEGIN: &str = "<!-- score -->\n";
    const END: &str = "<!-- /score -->\n";
    match (page.split_once(BEGIN), page.split_once(END)) {
        (Some((before, _)), Some((_, behind))) => format!("{before}{BEGIN}{report}{END}{behind}"),
        _ => report.to_owned(),
    }
}

fn report(dirs: &[PathBuf]) -> String {
    let known: Vec<Hostile> = records(include_str!("../tests/data/control_tokens_known.jsonl"))
        .map(|record| Hostile {
            name: format!("{} / {}", record.family, record.evasion),
            text: record.text,
            needles: record.needles,
        })
        .collect();
    let unseen = unseen::hostile(true);
    let tricky: Vec<String> =
        records(include_str!("../tests/data/benign_tricky.jsonl")).map(|record| record.text).collect();
    let hard: Vec<String> =
        records(include_str!("../tests/data/benign_hard.jsonl")).map(|record| record.text).collect();
    let more: Vec<String> =
        records(include_str!("../tests/data/benign_more.jsonl")).map(|record| record.text).collect();

    let mut out = String::from("| texts | measured |");
    let mut rule = String::from("|---|---|");
    for (name, _) in RULES {
        let _ = write!(out, " {name} |");
        rule.push_str("---:|");
    }
    out = format!("{out}\n{rule}\n");
    let mut left = BTreeMap::new();
    for (name, set) in [("known hostile", &known), ("own hostile", &unseen)] {
        hostile_rows(&mut out, &format!("{name} ({})", set.len()), set, &mut left);
    }
    let generated: Vec<Hostile> = SEEDS.flat_map(|seed| generated::hostile(seed, EACH)).collect();
    let name = format!("generated from seeds {SEEDS:?} ({})", generated.len());
    let mut left_of_generated = BTreeMap::new();
    hostile_rows(&mut out, &name, &generated, &mut left_of_generated);
    for (name, set) in
        [("legitimate, tricky", &tricky), ("legitimate, hard", &hard), ("legitimate, many kinds", &more)]
    {
        legitimate_rows(&mut out, &format!("{name} ({})", set.len()), &|each| {
            set.iter().for_each(|text| each(text))
        });
    }
    for dir in dirs {
        let mut files = Vec::new();
        collect(dir, &mut files);
        let name =
            format!("{} files, {}", files.len(), dir.file_name().unwrap_or_default().to_string_lossy());
        legitimate_rows(&mut out, &name, &|each| {
            for file in &files {
                if let Ok(text) = std::fs::read_to_string(file) {
                    each(&text);
                }
            }
        });
    }
    out.push_str("\nWhat is left of Talon's own once it is decoded, out of all texts above:\n\n");
    let mut rest: BTreeMap<String, usize> = BTreeMap::new();
    for (name, count) in left {
        match SURVIVORS.iter().find(|(known, _)| name.starts_with(known)) {
            Some((_, why)) => {
                let _ = writeln!(out, "- {name}: {count}. {why}");
            }
            None => {
                *rest.entry(name.split(" / ").nth(1).unwrap_or_default().to_owned()).or_default() += count
            }
        }
    }
    for (disguise, count) in rest {
        let _ = writeln!(out, "- {disguise}, in JSON inside JSON for the most part: {count}.");
    }
    out.push_str("\nThe same of the generated texts, by family, out of ");
    let _ = writeln!(out, "{} each:\n", EACH * SEEDS.count());
    let mut families: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, count) in &left_of_generated {
        let family = name.split(" / ").next().and_then(|first| first.rsplit_once(' ')).unwrap_or_default().0;
        *families.entry(family).or_default() += count;
    }
    for (family, count) in families {
        let _ = writeln!(out, "- {family}: {count}.");
    }
    out
}

fn records(set: &str) -> impl Iterator<Item = Record> {
    set.lines().map(|line| serde_json::from_str(line).expect("a record"))
}

/// `left` gets what survives our own rule, by family and disguise.
fn hostile_rows(out: &mut String, name: &str, set: &[Hostile], left: &mut BTreeMap<String, usize>) {
    let (mut exactly, mut decoded) = (String::new(), String::new());
    for (number, (_, rule)) in RULES.into_iter().enumerate() {
        let (mut plain, mut hidden) = (0, 0);
        for hostile in set {
            let (plainly, deeply) = surviving(&rule(&hostile.text), &hostile.needles);
            plain += usize::from(!plainly.is_empty());
            hidden += usize::from(!deeply.is_empty());
            if number == 0 && !deeply.is_empty() {
                let place = hostile.name.rfind(" / ").filter(|_| hostile.name.matches(" / ").count() > 1);
                *left.entry(hostile.name[..place.unwrap_or(hostile.name.len())].to_owned()).or_default() += 1;
            }
        }
        let _ = write!(exactly, " {} |", percent(plain, set.len()));
        let _ = write!(decoded, " {} |", percent(hidden, set.len()));
    }
    let _ = writeln!(out, "| {name} | survive exactly |{exactly}\n| | survive decoded |{decoded}");
}

fn legitimate_rows(out: &mut String, name: &str, texts: &Texts<'_>) {
    let (mut changes, mut density) = (String::new(), String::new());
    for (number, (_, rule)) in RULES.into_iter().enumerate() {
        let (mut seen, mut changed, mut chars, mut marks) = (0, 0, 0, 0);
        texts(&mut |text| {
            let after = rule(text);
            seen += 1;
            chars += text.chars().count();
            changed += usize::from(after != text);
            if number == 0 && after != text {
                let mut tally = FamilyCounts::default();
                Sanitizer::default().text(text, &mut tally);
                marks += tally.total() as usize;
            } else {
                marks += rivals::replacements(text, &after);
            }
        });
        let _ = write!(changes, " {} |", percent(changed, seen));
        let _ = write!(density, " {:.4} |", 1000.0 * marks as f64 / chars.max(1) as f64);
    }
    let _ = writeln!(out, "| {name} | changed |{changes}\n| | marks per 1,000 characters |{density}");
}

fn percent(part: usize, whole: usize) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    if part == 0 { "0 %".to_owned() } else { format!("{percent:.2} %") }
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, files),
            Ok(kind) if kind.is_file() => files.push(path),
            _ => {}
        }
    }
}
