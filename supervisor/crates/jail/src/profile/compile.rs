//! Compiles a profile to BPF programs.
//!
//! seccompiler makes programs of one shape: calls that match get one action, everything else another. Several
//! answers therefore need several programs, and the kernel runs them all: it takes the strictest action
//! (kill, errno, notify, allow), and among errnos that of the program that was loaded last. So for each call
//! exactly one program returns something else than "allow":
//!
//! 1. one program for each answer of `never.toml`, matching what it forbids;
//! 2. one for each answer of the profile itself, for the uses of a call that its `allow` does not cover;
//! 3. the main one, which allows what the profile allows *and* what the others answer, and refuses the rest.
//!
//! They are in load order: the main one last, since no program could be loaded after it, and the first answer
//! of `never.toml` just before it. The kernel remembers which numbers pass all programs whatever the
//! arguments are, so more programs do not slow down a plain `read`. But each program has to be translated at
//! every start. So they are [joined](join) into one, and that is [shortened](number_first), unless the last
//! one reports calls to a listener.

use std::collections::BTreeMap;

use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter, SeccompRule};

use super::bpf::{ARCHITECTURE, IF_AT_LEAST, IF_EQUAL, IF_GREATER, LOAD, NUMBER, RETURN, check_architecture};
use super::compiled_profile::CompiledProfile;
use super::decision_graph::number_first;
use super::definition::Profile;
use super::error::ProfileError;
use super::join::join;
use super::never::NEVER;
use super::rule::{CallGroup, DefaultAction, GroupAction, rules};
use super::search_tree;
use super::syscalls::Architecture;
use crate::network::{Network, PORTS_LANDLOCK_ABI};
use crate::sys::seccomp::Instruction;

/// By call number: the rules, of which one must hold. No rules mean always.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The bit in x86_64's numbers that selects x32 calls, which are not the calls that a profile names.
const X32: u32 = 0x4000_0000;

/// What seccompiler is asked for where it has no name for the action. It is replaced afterwards; we never use
/// a tracer.
const PLACEHOLDER_ACTION: SeccompAction = SeccompAction::Trace(1);

impl Profile {
    /// The filter for this machine and this network. Takes a millisecond or two.
    ///
    /// If the network lists ports, the result requires Landlock ABI 4, even if the profile does not.
    pub fn compile(&self, network: &Network) -> Result<CompiledProfile, ProfileError> {
        compile(self, network, Architecture::native(&self.name)?, false)
    }

    /// The same, but calls outside the profile are allowed and reported: see [`Learner`](super::Learner).
    /// What no profile can allow stays forbidden.
    pub fn compile_learning(&self, network: &Network) -> Result<CompiledProfile, ProfileError> {
        compile(self, network, Architecture::native(&self.name)?, true)
    }
}

pub(super) fn compile(
    profile: &Profile,
    network: &Network,
    machine: Architecture,
    learn: bool,
) -> Result<CompiledProfile, ProfileError> {
    let filters = filters(profile, network, machine, learn).map_err(|error| {
        let problem = format!("cannot become a filter: {error} (allow less of it by argument)");
        ProfileError::invalid(&profile.name, problem)
    })?;
    Ok(CompiledProfile {
        name: profile.name.clone(),
        filters,
        landlock_abi: if network.lists_ports() {
            profile.landlock_abi.max(PORTS_LANDLOCK_ABI)
        } else {
            profile.landlock_abi
        },
        learn,
        deciding_arguments: if learn { deciding_arguments(profile, machine) } else { BTreeMap::new() },
    })
}

fn filters(
    profile: &Profile,
    network: &Network,
    machine: Architecture,
    learn: bool,
) -> Result<Vec<Vec<Instruction>>, BackendError> {
    let refusal = match profile.default {
        DefaultAction::Errno => errno(libc::EPERM),
        DefaultAction::Kill => SeccompAction::KillProcess,
    };
    let never: Vec<&CallGroup> = NEVER.groups.iter().filter(|group| group.matches(network)).collect();
    let own: Vec<&CallGroup> = profile.groups.iter().filter(|group| group.matches(network)).collect();

    // Consecutive groups with the same answer share a program.
    let mut answers: Vec<(SeccompAction, Rules)> = Vec::new();
    let mut allowed = Rules::new();
    for group in &never {
        let GroupAction::Answer(number) = group.verdict else { continue };
        let action = number.map_or_else(|| refusal.clone(), errno);
        if answers.last().is_none_or(|(last, _)| *last != action) {
            answers.push((action, Rules::new()));
        }
        let (_, matched) = answers.last_mut().expect("one was pushed if there was none");
        add_group(matched, group, machine)?;
        add_group(&mut allowed, group, machine)?;
    }
    for group in own.iter().filter(|group| group.verdict == GroupAction::Allow) {
        add_group(&mut allowed, group, machine)?;
    }
    let mut programs = Vec::new();
    if !learn {
        programs = answer_filters(&own, &mut allowed, &refusal, machine)?;
    }
    // The first answer is loaded last, so that it wins over later ones.
    for (action, matched) in answers.into_iter().rev() {
        programs.push(main_program(matched, SeccompAction::Allow, action, machine)?);
    }
    let rest = if learn { PLACEHOLDER_ACTION } else { refusal };
    let mut main = prologue(machine);
    main.extend(main_program(allowed, rest, SeccompAction::Allow, machine)?);
    if learn {
        replace(&mut main, &PLACEHOLDER_ACTION, libc::SECCOMP_RET_USER_NOTIF);
        programs.push(main);
        return Ok(programs);
    }
    programs.push(main);
    Ok(match join(&programs) {
        Some(joined) => vec![number_first(&joined, machine.audit()).unwrap_or(joined)],
        None => programs,
    })
}

/// The programs for the profile's own answers. The main program must let these calls pass.
fn answer_filters(
    own: &[&CallGroup],
    allowed: &mut Rules,
    refusal: &SeccompAction,
    machine: Architecture,
) -> Result<Vec<Vec<Instruction>>, BackendError> {
    let mut whole: Vec<(SeccompAction, Rules)> = Vec::new();
    let mut rests: Vec<(SeccompAction, Rules)> = Vec::new();
    for group in own {
        let GroupAction::Answer(number) = group.verdict else { continue };
        let action = number.map_or_else(|| refusal.clone(), errno);
        for number in group.calls.iter().filter_map(|call| machine.number(call)).map(i64::from) {
            // A call that is fully allowed already, or answered by an earlier group, has nothing left to
            // answer.
            let rules = match allowed.get(&number) {
                Some(rules) if rules.is_empty() => continue,
                Some(rules) => Some(rules.clone()),
                None => None,
            };
            allowed.insert(number, Vec::new());
            let programs = if rules.is_some() { &mut rests } else { &mut whole };
            let at = programs.iter().position(|(known, _)| *known == action).unwrap_or_else(|| {
                programs.push((action.clone(), Rules::new()));
                programs.len() - 1
            });
            programs[at].1.insert(number, rules.unwrap_or_default());
        }
    }
    let mut compiled = Vec::new();
    for (action, matched) in whole {
        compiled.push(main_program(matched, SeccompAction::Allow, action, machine)?);
    }
    for (action, open) in rests {
        // Each call's own chain ends in the answer. Only the last instruction is about all other calls.
        let mut program = main_program(open, action, SeccompAction::Allow, machine)?;
        if let Some((RETURN, _, _, verdict)) = program.last_mut() {
            *verdict = libc::SECCOMP_RET_ALLOW;
        }
        compiled.push(program);
    }
    Ok(compiled)
}

/// Adds a group's rules for each of its calls. Names that this architecture does not have are left out.
fn add_group(to: &mut Rules, group: &CallGroup, machine: Architecture) -> Result<(), BackendError> {
    for number in group.calls.iter().filter_map(|call| machine.number(call)).map(i64::from) {
        let more = rules(&group.when)?;
        match to.get_mut(&number) {
            // No rules mean "always", which nothing can widen.
            Some(known) if known.is_empty() => {}
            Some(known) if group.when.is_empty() => known.clear(),
            Some(known) => known.extend(more),
            None => {
                to.insert(number, more);
            }
        }
    }
    Ok(())
}

fn errno(number: i32) -> SeccompAction {
    SeccompAction::Errno(number.unsigned_abs())
}

/// Calls that match whatever their arguments are come first, found by binary search. seccompiler handles
/// those with rules, and kills foreign architectures.
fn main_program(
    rules: Rules,
    otherwise: SeccompAction,
    matched: SeccompAction,
    machine: Architecture,
) -> Result<Vec<Instruction>, BackendError> {
    let (always, ruled): (Rules, Rules) = rules.into_iter().partition(|(_, rules)| rules.is_empty());
    let always: Vec<_> = always.into_keys().filter_map(|number| u32::try_from(number).ok()).collect();
    let verdict = u32::from(matched.clone());
    let ruled: BpfProgram = SeccompFilter::new(ruled, otherwise, matched, machine.target())?.try_into()?;

    let found = search_tree::match_numbers(&always, verdict);
    let mut program = check_architecture(machine.audit());
    program.extend(found);
    program.extend(ruled.into_iter().map(|step| (step.code, step.jt, step.jf, step.k)));
    Ok(program)
}

fn replace(program: &mut [Instruction], replaced: &SeccompAction, by: u32) {
    let replaced = u32::from(replaced.clone());
    for (code, _, _, verdict) in program {
        if *code == RETURN && *verdict == replaced {
            *verdict = by;
        }
    }
}

/// Runs before the main program: handles numbers that were unknown when this was built, and x32's.
/// A foreign architecture is left to seccompiler's own check, which kills.
fn prologue(machine: Architecture) -> Vec<Instruction> {
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let x32: &[Instruction] = match machine {
        // −1 is what tracers and tests ask for to get ENOSYS.
        Architecture::X86_64 => &[
            (IF_EQUAL, 2, 0, u32::MAX),
            (IF_AT_LEAST, 0, 1, X32),
            (RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        ],
        Architecture::Aarch64 => &[],
    };
    let tail = u8::try_from(x32.len() + 1).expect("four instructions at most");
    let mut prologue = vec![
        (LOAD, 0, 0, ARCHITECTURE),
        (IF_EQUAL, 0, tail + 2, machine.audit()),
        (LOAD, 0, 0, NUMBER),
        (IF_GREATER, 0, tail, machine.highest_number()),
    ];
    prologue.extend_from_slice(x32);
    prologue.push((RETURN, 0, 0, unknown));
    prologue
}

/// Which arguments distinguish an allowed use of a call from a forbidden one.
fn deciding_arguments(profile: &Profile, machine: Architecture) -> BTreeMap<u32, Vec<u8>> {
    let mut deciding_arguments = BTreeMap::<u32, Vec<u8>>::new();
    for group in profile.groups.iter().filter(|group| group.verdict == GroupAction::Allow) {
        for number in group.calls.iter().filter_map(|call| machine.number(call)) {
            for condition in &group.when {
                let arguments = deciding_arguments.entry(number).or_default();
                if !arguments.contains(&condition.arg) {
                    arguments.push(condition.arg);
                }
            }
        }
    }
    deciding_arguments
}

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;
