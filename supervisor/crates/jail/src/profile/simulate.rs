//! Simulates how the kernel evaluates filters, for tests: for any architecture, without loading anything.

use super::syscalls::Architecture;
use crate::sys::seccomp::Instruction;

/// A system call as filters see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimulatedCall {
    pub(super) number: u32,
    pub(super) audit: u32,
    pub(super) arguments: [u64; 6],
}

impl SimulatedCall {
    pub(super) fn new(machine: Architecture, name: &str, arguments: &[u64]) -> Self {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        Self { number: machine.number(name).unwrap(), audit: machine.audit(), arguments: all }
    }

    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.audit,
            16..64 => {
                let argument = self.arguments[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) { argument as u32 } else { (argument >> 32) as u32 }
            }
            _ => panic!("a filter loads from {offset}"),
        }
    }
}

/// The kernel's result: the strictest action, and the latest program's where several are equally strict.
pub(super) fn verdict(filters: &[Vec<Instruction>], call: &SimulatedCall) -> u32 {
    let mut worst = libc::SECCOMP_RET_ALLOW;
    for program in filters.iter().rev() {
        let verdict = run(program, call);
        let gravity = |verdict: u32| (verdict & libc::SECCOMP_RET_ACTION_FULL) as i32;
        if gravity(verdict) < gravity(worst) {
            worst = verdict;
        }
    }
    worst
}

fn run(program: &[Instruction], call: &SimulatedCall) -> u32 {
    let (mut at, mut word) = (0, 0_u32);
    loop {
        let (code, jt, jf, k) = program[at];
        let jump = |holds: bool| usize::from(if holds { jt } else { jf });
        at += 1;
        match code {
            0x20 => word = call.word(k),
            0x54 => word &= k,
            0x05 => at += k as usize,
            0x15 => at += jump(word == k),
            0x25 => at += jump(word > k),
            0x35 => at += jump(word >= k),
            0x06 => return k,
            _ => panic!("a filter has the instruction {code:#x}"),
        }
    }
}
