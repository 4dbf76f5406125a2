//! The BPF instructions that filters are made of.

use crate::sys::seccomp::Instruction;

/// Instruction codes (linux/bpf_common.h): load a word, compare, return.
pub(super) const LOAD: u16 = 0x20;
pub(super) const IF_EQUAL: u16 = 0x15;
pub(super) const IF_GREATER: u16 = 0x25;
pub(super) const IF_AT_LEAST: u16 = 0x35;
pub(super) const RETURN: u16 = 0x06;

/// An unconditional jump (linux/bpf_common.h: BPF_JMP | BPF_JA).
pub(super) const JUMP: u16 = 0x05;

/// The offsets of the number and the architecture in `seccomp_data`.
pub(super) const NUMBER: u32 = 0;
pub(super) const ARCHITECTURE: u32 = 4;

/// The offset of the low 32 bits of an argument, counted from 0.
pub(super) const fn argument(place: u32) -> u32 {
    const ARGUMENTS: u32 = 16;
    const HIGH_HALF_FIRST: u32 = if cfg!(target_endian = "big") { 4 } else { 0 };
    ARGUMENTS + 8 * place + HIGH_HALF_FIRST
}

/// Kills calls of another architecture, and loads the number.
pub(super) fn check_architecture(audit: u32) -> Vec<Instruction> {
    vec![
        (LOAD, 0, 0, ARCHITECTURE),
        (IF_EQUAL, 1, 0, audit),
        (RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        (LOAD, 0, 0, NUMBER),
    ]
}

/// Jumps over this many instructions.
pub(super) fn jump_over(instructions: usize) -> Instruction {
    (JUMP, 0, 0, u32::try_from(instructions).expect("a program has some thousand instructions at most"))
}
