use proptest::prelude::*;

use super::*;
use crate::profile::simulate::{SimulatedCall, verdict};

const AUDIT: u32 = 7;

/// Asks for a number, then for arguments; all of it must hold for the answer.
#[derive(Debug, Clone)]
struct Rule {
    number: (u16, u32),
    arguments: Vec<(u32, u32, u16, u32)>,
    answer: u32,
}

fn comparison() -> impl Strategy<Value = u16> {
    prop::sample::select(&[IF_EQUAL, IF_GREATER, IF_AT_LEAST][..])
}

fn rule() -> impl Strategy<Value = Rule> {
    let argument = (0..3_u32, prop::sample::select(&[u32::MAX, 3, 2][..]), comparison(), 0..4_u32);
    ((comparison(), 0..12_u32), prop::collection::vec(argument, 0..3), 0..4_u32)
        .prop_map(|(number, arguments, answer)| Rule { number, arguments, answer })
}

fn program(rules: &[Rule]) -> Vec<Instruction> {
    let mut program = vec![
        (LOAD, 0, 0, ARCHITECTURE),
        (IF_EQUAL, 1, 0, AUDIT),
        (RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
    ];
    for Rule { number: (code, number), arguments, answer } in rules {
        let length = |mask: u32| if mask == u32::MAX { 3 } else { 4 };
        // The number of instructions that remain in this rule.
        let mut left: usize = arguments.iter().map(|(_, mask, ..)| length(*mask)).sum::<usize>() + 1;
        program.push((LOAD, 0, 0, NUMBER));
        program.extend([(*code, 1, 0, *number), jump_over(left)]);
        for (argument, mask, code, than) in arguments {
            left -= length(*mask);
            program.push((LOAD, 0, 0, 16 + 8 * argument));
            if *mask != u32::MAX {
                program.push((MASK, 0, 0, *mask));
            }
            program.extend([(*code, 1, 0, *than), jump_over(left)]);
        }
        program.push((RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | answer));
    }
    program.push((RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

proptest! {
    // Promises: JAIL-18
    #[test]
    fn it_says_the_same_of_every_call(
        rules in prop::collection::vec(rule(), 0..30),
        arguments in prop::collection::vec(prop::array::uniform3(0..5_u64), 1..20),
    ) {
        let plain = program(&rules);
        let decided = number_first(&plain, AUDIT).unwrap();
        for audit in [AUDIT, 0] {
            for number in (0..15).chain([u32::MAX - 1, u32::MAX]) {
                for [a, b, c] in &arguments {
                    let call = SimulatedCall { number, audit, arguments: [*a, *b, *c, 0, 0, 0] };
                    prop_assert_eq!(
                        verdict(std::slice::from_ref(&decided), &call),
                        verdict(std::slice::from_ref(&plain), &call),
                        "{:?}", call
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_not_understood_stays_as_it_is() {
    // Stores the word, which no program of ours does.
    assert_eq!(number_first(&[(LOAD, 0, 0, NUMBER), (0x02, 0, 0, 0), (RETURN, 0, 0, 0)], AUDIT), None);
    // Says something of foreign architectures.
    assert_eq!(number_first(&[(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW)], AUDIT), None);
}
