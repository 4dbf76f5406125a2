//! Finds a call among many in a few comparisons.
//!
//! seccompiler compares one number after the other. That is fine for calls with conditions, of which there
//! are few. But hundreds of calls match whatever their arguments are, and when a program is loaded, the
//! kernel runs all of it for every call that it knows. Here neighboring numbers form a range, and ranges are
//! found by binary search.

use super::bpf::{IF_AT_LEAST, IF_EQUAL, IF_GREATER, RETURN, jump_over};
use crate::sys::seccomp::Instruction;

/// Up to this many ranges are compared one after the other; a binary search costs more than it saves there.
const LEAF_RANGES: usize = 3;

/// Returns `verdict` if the loaded number is one of these, and otherwise continues behind the program.
/// `numbers` must be sorted.
pub(super) fn match_numbers(numbers: &[u32], verdict: u32) -> Vec<Instruction> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    search(&ranges, verdict)
}

fn search(ranges: &[(u32, u32)], verdict: u32) -> Vec<Instruction> {
    if ranges.len() <= LEAF_RANGES {
        return ranges.iter().flat_map(|range| compare(*range, verdict)).collect();
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (first, _) = high[0];
    let (low, high) = (search(low, verdict), search(high, verdict));
    let mut program = vec![(IF_AT_LEAST, 0, 1, first), jump_over(low.len() + 1)];
    program.extend(low);
    program.push(jump_over(high.len()));
    program.extend(high);
    program
}

fn compare((first, last): (u32, u32), verdict: u32) -> Vec<Instruction> {
    if first == last {
        return vec![(IF_EQUAL, 0, 1, first), (RETURN, 0, 0, verdict)];
    }
    vec![(IF_AT_LEAST, 0, 2, first), (IF_GREATER, 1, 0, last), (RETURN, 0, 0, verdict)]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::profile::bpf::{LOAD, NUMBER};
    use crate::profile::simulate::{self, SimulatedCall};

    proptest! {
        #[test]
        fn it_finds_what_is_there_and_nothing_else(numbers in prop::collection::btree_set(0..600_u32, 0..300)) {
            let sorted: Vec<_> = numbers.iter().copied().collect();
            let mut program = vec![(LOAD, 0, 0, NUMBER)];
            program.extend(match_numbers(&sorted, libc::SECCOMP_RET_LOG));
            program.push((RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
            for number in 0..620 {
                let call = SimulatedCall { number, audit: 0, arguments: [0; 6] };
                let found = simulate::verdict(&[program.clone()], &call) == libc::SECCOMP_RET_LOG;
                prop_assert_eq!(found, BTreeSet::contains(&numbers, &number), "{}", number);
            }
        }
    }
}
