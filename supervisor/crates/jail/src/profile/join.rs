//! Joins several programs into one with the same result.
//!
//! The kernel runs all programs of a process, takes the strictest action, and among equally strict ones that
//! of the program that was loaded last. Programs run one after the other, the last loaded one first, have the
//! same result as long as the first one that decides may decide: so those with stricter actions come first.
//!
//! Of the programs that [`super::compile`] makes, each has one action beside "allow". The exception is the
//! main one: it refuses what no other answers, and is loaded last.

use super::bpf::{ARCHITECTURE, LOAD, RETURN, jump_over};
use crate::sys::seccomp::Instruction;

/// The most instructions that the kernel accepts in one program (BPF_MAXINSNS in linux/bpf_common.h).
const INSTRUCTIONS_MAX: usize = 4096;

/// Joins programs, given in load order. `None` if the result has more instructions than the kernel accepts.
pub(super) fn join(programs: &[Vec<Instruction>]) -> Option<Vec<Instruction>> {
    let mut order: Vec<_> = programs.iter().rev().collect();
    // Stable: among equally strict ones the last loaded stays first.
    order.sort_by_key(|program| strictest_action(program));
    let last = order.pop()?;
    let mut joined = Vec::new();
    for program in order {
        let end = program.len();
        joined.extend(program.iter().enumerate().map(|(at, step)| match *step {
            (RETURN, _, _, libc::SECCOMP_RET_ALLOW) => jump_over(end - at - 1),
            other => other,
        }));
    }
    joined.extend_from_slice(last);
    (joined.len() <= INSTRUCTIONS_MAX).then_some(joined)
}

/// The strictest action of a program, as the kernel compares them: lower is stricter. Killing calls of a
/// foreign architecture is left out, since all of them do that.
fn strictest_action(program: &[Instruction]) -> i32 {
    let is_of_architecture = |at: usize| at >= 2 && program[at - 2] == (LOAD, 0, 0, ARCHITECTURE);
    let verdicts =
        program.iter().enumerate().filter(|(at, (code, ..))| *code == RETURN && !is_of_architecture(*at));
    let actions = verdicts.map(|(_, (.., verdict))| (verdict & libc::SECCOMP_RET_ACTION_FULL).cast_signed());
    actions.min().unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::bpf::{IF_EQUAL, NUMBER};
    use crate::profile::simulate::{SimulatedCall, verdict};

    /// A program that answers these numbers.
    fn answering(numbers: &[u32], answer: u32) -> Vec<Instruction> {
        let mut program = vec![(LOAD, 0, 0, NUMBER)];
        for number in numbers {
            program.extend([(IF_EQUAL, 0, 1, *number), (RETURN, 0, 0, answer)]);
        }
        program.push((RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
        program
    }

    proptest! {
        #[test]
        fn joined_programs_say_what_they_say_one_by_one(
            programs in prop::collection::vec((prop::collection::vec(0..12_u32, 0..8), 0..4_usize), 0..7),
        ) {
            let answers = [
                libc::SECCOMP_RET_KILL_PROCESS,
                libc::SECCOMP_RET_ERRNO | 1,
                libc::SECCOMP_RET_ERRNO | 38,
                libc::SECCOMP_RET_LOG,
            ];
            let programs: Vec<_> =
                programs.iter().map(|(numbers, answer)| answering(numbers, answers[*answer])).collect();
            let joined: Vec<_> = join(&programs).into_iter().collect();
            prop_assert_eq!(joined.len(), programs.len().min(1));
            for number in 0..14 {
                let call = SimulatedCall { number, audit: 0, arguments: [0; 6] };
                prop_assert_eq!(verdict(&joined, &call), verdict(&programs, &call), "{}", number);
            }
        }
    }

    #[test]
    fn what_is_more_than_the_kernel_takes_is_left_apart() {
        let long = answering(&(0..1500).collect::<Vec<_>>(), libc::SECCOMP_RET_LOG);
        assert!(join(std::slice::from_ref(&long)).is_some());
        assert_eq!(join(&[long.clone(), long]), None);
    }
}
