//! Rewrites a program so that it tests the call's number first.
//!
//! Joined programs test the same number again and again, each for its own answer. When the kernel loads a
//! program, it checks and translates every instruction, and runs it once for each call it knows. Measured, a
//! plugin's start spent more time there than on its mounts. So the result of the program is computed here for
//! each number. Mostly it is one verdict; otherwise only the tests of arguments remain. Neighboring numbers
//! with the same result form a range, and ranges are found by binary search.
//!
//! The results form a graph without duplicate nodes. It is written from its end to its beginning, so that all
//! jumps go forward, as the kernel requires.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::bpf::{
    ARCHITECTURE, IF_AT_LEAST, IF_EQUAL, IF_GREATER, JUMP, LOAD, NUMBER, RETURN, check_architecture,
    jump_over,
};
use crate::sys::seccomp::Instruction;

/// Masks the loaded word (linux/bpf_common.h: BPF_ALU | BPF_AND | BPF_K).
const MASK: u16 = 0x54;

/// The longest conditional jump: the kernel has one byte for it, and inserted instructions need some room.
const JUMP_MAX: usize = 250;

/// Rewrites a program for this architecture to test the number first. `None` if it has unknown instructions,
/// or does anything but kill calls of a foreign architecture.
pub(super) fn number_first(program: &[Instruction], audit: u32) -> Option<Vec<Instruction>> {
    let mut graph = Graph::default();
    let killed = graph.add(Node::Return(libc::SECCOMP_RET_KILL_PROCESS));
    let mut ranges: Vec<(u32, NodeId)> = Vec::new();
    for first in range_starts(program) {
        if graph.read(program, first, !audit)? != killed {
            return None;
        }
        let said = graph.read(program, first, audit)?;
        if ranges.last().is_none_or(|(_, before)| *before != said) {
            ranges.push((first, said));
        }
    }
    let root = graph.search(&ranges);
    let mut decided = check_architecture(audit);
    decided.extend(graph.write(root));
    Some(decided)
}

/// The numbers where the program's result can change: any constant that is compared might be compared with
/// the number.
fn range_starts(program: &[Instruction]) -> BTreeSet<u32> {
    let compared = program.iter().filter(|(code, ..)| matches!(*code, IF_EQUAL | IF_GREATER | IF_AT_LEAST));
    let borders = compared.flat_map(|(.., than)| [Some(*than), than.checked_add(1)]);
    borders.flatten().chain([0]).collect()
}

/// A masked word of `seccomp_data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct MaskedWord {
    offset: u32,
    mask: u32,
}

/// The call's number.
const CALL_NUMBER: MaskedWord = MaskedWord { offset: NUMBER, mask: u32::MAX };

type NodeId = usize;

/// A verdict, or a test that leads to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Return(u32),
    Branch { word: MaskedWord, code: u16, than: u32, yes: NodeId, no: NodeId },
}

/// A graph whose nodes refer to earlier nodes only.
#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    known: HashMap<Node, NodeId>,
}

impl Graph {
    fn add(&mut self, node: Node) -> NodeId {
        match node {
            // Both branches lead to the same node.
            Node::Branch { yes, no, .. } if yes == no => yes,
            _ => *self.known.entry(node).or_insert_with(|| {
                self.nodes.push(node);
                self.nodes.len() - 1
            }),
        }
    }

    /// The result of a program for a number. `None` if it has unknown instructions.
    fn read(&mut self, program: &[Instruction], number: u32, audit: u32) -> Option<NodeId> {
        PathReader { program, graph: self, number, audit, read: HashMap::new() }.follow(0, Value::Known(0))
    }

    /// A search tree that finds the range of a number. Each range extends to the next one's first number.
    fn search(&mut self, ranges: &[(u32, NodeId)]) -> NodeId {
        if let [(_, said)] = ranges {
            return *said;
        }
        let (low, high) = ranges.split_at(ranges.len() / 2);
        let (no, yes) = (self.search(low), self.search(high));
        self.add(Node::Branch { word: CALL_NUMBER, code: IF_AT_LEAST, than: high[0].0, yes, no })
    }

    /// The program that begins at a node, where the number is already loaded.
    fn write(&self, root: NodeId) -> Vec<Instruction> {
        let mut loading = HashSet::new();
        let mut come_to = |id: NodeId, loaded: MaskedWord| {
            if matches!(self.nodes[id], Node::Branch { word, .. } if word != loaded) {
                loading.insert(id);
            }
        };
        come_to(root, CALL_NUMBER);
        for node in &self.nodes {
            if let Node::Branch { word, yes, no, .. } = *node {
                come_to(yes, word);
                come_to(no, word);
            }
        }
        let mut writer = GraphWriter { graph: self, loading, backwards: Vec::new(), places: HashMap::new() };
        let begin = writer.place(root, CALL_NUMBER);
        writer.jump_to(begin);
        writer.backwards.reverse();
        writer.backwards
    }
}

/// What is known about the loaded word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    Known(u32),
    Unknown(MaskedWord),
}

/// Evaluates a program for one number.
struct PathReader<'r> {
    program: &'r [Instruction],
    graph: &'r mut Graph,
    number: u32,
    audit: u32,
    read: HashMap<(usize, Value), NodeId>,
}

impl PathReader<'_> {
    /// The result from an instruction on. `None` if it has unknown instructions.
    fn follow(&mut self, from: usize, loaded: Value) -> Option<NodeId> {
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
                (MASK, Value::Unknown(word)) => {
                    value = Value::Unknown(MaskedWord { mask: word.mask & k, ..word })
                }
                (JUMP, _) => at += usize::try_from(k).ok()?,
                (RETURN, _) => break self.graph.add(Node::Return(k)),
                (_, Value::Known(known)) => at = if holds(code, known, k)? { yes } else { no },
                (IF_EQUAL | IF_GREATER | IF_AT_LEAST, Value::Unknown(word)) => {
                    let (yes, no) = (self.follow(yes, value)?, self.follow(no, value)?);
                    break self.graph.add(Node::Branch { word, code, than: k, yes, no });
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
            offset => Value::Unknown(MaskedWord { offset, mask: u32::MAX }),
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

/// Writes a graph as a program, last instruction first.
struct GraphWriter<'g> {
    graph: &'g Graph,
    /// Nodes that are reached with another word loaded than theirs.
    loading: HashSet<NodeId>,
    backwards: Vec<Instruction>,
    /// Where a node begins, by whether its word is already loaded.
    places: HashMap<(NodeId, bool), usize>,
}

impl GraphWriter<'_> {
    /// The position of this node, which is written first if necessary.
    fn place(&mut self, id: NodeId, loaded: MaskedWord) -> usize {
        let (word, code, than, yes, no) = match self.graph.nodes[id] {
            Node::Return(verdict) => return self.write_return(id, verdict),
            Node::Branch { word, code, than, yes, no } => (word, code, than, yes, no),
        };
        if let Some(place) = self.places.get(&(id, word == loaded)) {
            return *place;
        }
        let (no, yes) = (self.place(no, word), self.place(yes, word));
        // One inserted jump moves the other target at most that much further away.
        let (no, yes) = (self.within_jump(no), self.within_jump(yes));
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

    /// Writes a verdict here: it is as short as a jump to an existing one.
    fn write_return(&mut self, id: NodeId, verdict: u32) -> usize {
        match self.places.get(&(id, true)) {
            Some(place) if self.backwards.len() - place <= JUMP_MAX => *place,
            _ => {
                let place = self.push((RETURN, 0, 0, verdict));
                self.places.insert((id, true), place);
                place
            }
        }
    }

    fn within_jump(&mut self, place: usize) -> usize {
        if self.backwards.len() - place <= JUMP_MAX {
            return place;
        }
        match self.backwards[place] {
            verdict @ (RETURN, ..) => self.push(verdict),
            _ => self.push(jump_over(self.backwards.len() - place - 1)),
        }
    }

    /// Makes the next instruction to be executed this one.
    fn jump_to(&mut self, place: usize) {
        if place + 1 != self.backwards.len() {
            self.push(jump_over(self.backwards.len() - place - 1));
        }
    }

    fn push(&mut self, instruction: Instruction) -> usize {
        self.backwards.push(instruction);
        self.backwards.len() - 1
    }
}

#[cfg(test)]
#[path = "decision_graph_tests.rs"]
mod tests;
