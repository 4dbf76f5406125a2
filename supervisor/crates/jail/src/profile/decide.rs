//! The same program, with the call's number looked at first.
//!
//! Joined programs ask the same of a number again and again, each for its own answer. When the kernel loads a program it
//! checks and translates every instruction, and walks through it once for each call it knows; measured, a plugin's start
//! spent more time there than on its mounts. So what a program says is worked out here for each number: mostly that
//! is one verdict, and of the rest only what asks for arguments is left. Neighbours of whom the same is said are one range, and
//! ranges are found by halves.
//!
//! What is said becomes a graph in which nothing stands twice; written from its end to its beginning, all jumps go forward, as
//! the kernel wants it.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Instruction;
use super::compile::{ARCHITECTURE, IF_AT_LEAST, IF_EQUAL, IF_GREATER, LOAD, NUMBER, RETURN, opening};
use super::tree::{GO, go_over};

/// Keeps some bits of the loaded word (linux/bpf_common.h: BPF_ALU | BPF_AND | BPF_K).
const MASK: u16 = 0x54;

/// How far a condition may lead: the kernel has a byte for it, and what is put in between needs some room.
const REACH: usize = 250;

/// What a program for this architecture says, number first. `None` if it has instructions that are not known here, or does
/// other than kill what is of a foreign architecture.
pub(super) fn number_first(program: &[Instruction], audit: u32) -> Option<Vec<Instruction>> {
    let mut graph = Graph::default();
    let killed = graph.add(Node::Say(libc::SECCOMP_RET_KILL_PROCESS));
    let mut ranges: Vec<(u32, Id)> = Vec::new();
    for first in borders(program) {
        if graph.read(program, first, !audit)? != killed {
            return None;
        }
        let said = graph.read(program, first, audit)?;
        if ranges.last().is_none_or(|(_, before)| *before != said) {
            ranges.push((first, said));
        }
    }
    let root = graph.search(&ranges);
    let mut decided = opening(audit);
    decided.extend(graph.write(root));
    Some(decided)
}

/// The numbers at which what a program says can become another: every comparison could be one with the number.
fn borders(program: &[Instruction]) -> BTreeSet<u32> {
    let compared = program.iter().filter(|(code, ..)| matches!(*code, IF_EQUAL | IF_GREATER | IF_AT_LEAST));
    let borders = compared.flat_map(|(.., than)| [Some(*than), than.checked_add(1)]);
    borders.flatten().chain([0]).collect()
}

/// Some bits of a word of `seccomp_data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Word {
    offset: u32,
    mask: u32,
}

/// The call's number.
const NUMBER_WORD: Word = Word { offset: NUMBER, mask: u32::MAX };

type Id = usize;

/// What is said, or asked before it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Say(u32),
    Ask { word: Word, code: u16, than: u32, yes: Id, no: Id },
}

/// Nodes that lead to earlier ones alone.
#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    known: HashMap<Node, Id>,
}

impl Graph {
    fn add(&mut self, node: Node) -> Id {
        match node {
            // The answer makes no difference.
            Node::Ask { yes, no, .. } if yes == no => yes,
            _ => *self.known.entry(node).or_insert_with(|| {
                self.nodes.push(node);
                self.nodes.len() - 1
            }),
        }
    }

    /// What a program says of a number. `None` where it is not understood.
    fn read(&mut self, program: &[Instruction], number: u32, audit: u32) -> Option<Id> {
        Reading { program, graph: self, number, audit, read: HashMap::new() }.follow(0, Value::Known(0))
    }

    /// Finds the range of a number. Each goes up to the next one's first number.
    fn search(&mut self, ranges: &[(u32, Id)]) -> Id {
        if let [(_, said)] = ranges {
            return *said;
        }
        let (low, high) = ranges.split_at(ranges.len() / 2);
        let (no, yes) = (self.search(low), self.search(high));
        self.add(Node::Ask { word: NUMBER_WORD, code: IF_AT_LEAST, than: high[0].0, yes, no })
    }

    /// The program that begins at a node, where the number is loaded.
    fn write(&self, root: Id) -> Vec<Instruction> {
        let mut loading = HashSet::new();
        let mut come_to = |id: Id, loaded: Word| {
            if matches!(self.nodes[id], Node::Ask { word, .. } if word != loaded) {
                loading.insert(id);
            }
        };
        come_to(root, NUMBER_WORD);
        for node in &self.nodes {
            if let Node::Ask { word, yes, no, .. } = *node {
                come_to(yes, word);
                come_to(no, word);
            }
        }
        let mut writer = Writer { graph: self, loading, backwards: Vec::new(), places: HashMap::new() };
        let begin = writer.place(root, NUMBER_WORD);
        writer.lead_to(begin);
        writer.backwards.reverse();
        writer.backwards
    }
}

/// What is known of the word that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    Known(u32),
    Of(Word),
}

/// A program being read for one number.
struct Reading<'r> {
    program: &'r [Instruction],
    graph: &'r mut Graph,
    number: u32,
    audit: u32,
    read: HashMap<(usize, Value), Id>,
}

impl Reading<'_> {
    /// What it says from an instruction on. `None` where it is not understood.
    fn follow(&mut self, from: usize, loaded: Value) -> Option<Id> {
        if let Some(said) = self.read.get(&(from, loaded)) {
            return Some(*said);
        }
        let (mut at, mut value) = (from, loaded);
        let said = loop {
            let (code, jt, jf, k) = *self.program.get(at)?;
            let (yes, no) = (at + 1 + usize::from(jt), at + 1 + usize::from(jf));
            at += 1;
            match (code, value) {
                (LOAD, _) => value = self.word(k),
                (MASK, Value::Known(known)) => value = Value::Known(known & k),
                (MASK, Value::Of(word)) => value = Value::Of(Word { mask: word.mask & k, ..word }),
                (GO, _) => at += usize::try_from(k).ok()?,
                (RETURN, _) => break self.graph.add(Node::Say(k)),
                (_, Value::Known(known)) => at = if holds(code, known, k)? { yes } else { no },
                (IF_EQUAL | IF_GREATER | IF_AT_LEAST, Value::Of(word)) => {
                    let (yes, no) = (self.follow(yes, value)?, self.follow(no, value)?);
                    break self.graph.add(Node::Ask { word, code, than: k, yes, no });
                }
                _ => return None,
            }
        };
        self.read.insert((from, loaded), said);
        Some(said)
    }

    fn word(&self, offset: u32) -> Value {
        match offset {
            NUMBER => Value::Known(self.number),
            ARCHITECTURE => Value::Known(self.audit),
            offset => Value::Of(Word { offset, mask: u32::MAX }),
        }
    }
}

fn holds(code: u16, word: u32, than: u32) -> Option<bool> {
    match code {
        IF_EQUAL => Some(word == than),
        IF_GREATER => Some(word > than),
        IF_AT_LEAST => Some(word >= than),
        _ => None,
    }
}

/// Writes a graph, the end first.
struct Writer<'g> {
    graph: &'g Graph,
    /// Nodes that are come to with another word loaded than theirs.
    loading: HashSet<Id>,
    backwards: Vec<Instruction>,
    /// Where a node begins for whom has its word loaded, and for whom has not.
    places: HashMap<(Id, bool), usize>,
}

impl Writer<'_> {
    /// Where to go on for this node, written if it is not yet.
    fn place(&mut self, id: Id, loaded: Word) -> usize {
        let (word, code, than, yes, no) = match self.graph.nodes[id] {
            Node::Say(verdict) => return self.say(id, verdict),
            Node::Ask { word, code, than, yes, no } => (word, code, than, yes, no),
        };
        if let Some(place) = self.places.get(&(id, word == loaded)) {
            return *place;
        }
        let (no, yes) = (self.place(no, word), self.place(yes, word));
        // One step in between moves the other at most that much further away.
        let (no, yes) = (self.within_reach(no), self.within_reach(yes));
        let jump = |to: usize| u8::try_from(self.backwards.len() - to - 1).expect("it is within reach");
        let condition = (code, jump(yes), jump(no), than);
        let asked = self.push(condition);
        self.places.insert((id, true), asked);
        if self.loading.contains(&id) {
            if word.mask != u32::MAX {
                self.push((MASK, 0, 0, word.mask));
            }
            let begin = self.push((LOAD, 0, 0, word.offset));
            self.places.insert((id, false), begin);
        }
        self.places[&(id, word == loaded)]
    }

    /// A verdict is as short as the way to it.
    fn say(&mut self, id: Id, verdict: u32) -> usize {
        match self.places.get(&(id, true)) {
            Some(place) if self.backwards.len() - place <= REACH => *place,
            _ => {
                let place = self.push((RETURN, 0, 0, verdict));
                self.places.insert((id, true), place);
                place
            }
        }
    }

    fn within_reach(&mut self, place: usize) -> usize {
        if self.backwards.len() - place <= REACH {
            return place;
        }
        match self.backwards[place] {
            verdict @ (RETURN, ..) => self.push(verdict),
            _ => self.push(go_over(self.backwards.len() - place - 1)),
        }
    }

    /// The next instruction to be read is this one.
    fn lead_to(&mut self, place: usize) {
        if place + 1 != self.backwards.len() {
            self.push(go_over(self.backwards.len() - place - 1));
        }
    }

    fn push(&mut self, instruction: Instruction) -> usize {
        self.backwards.push(instruction);
        self.backwards.len() - 1
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
