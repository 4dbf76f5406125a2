//! Writes learned calls as a profile.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::definition::Profile;
use super::error::quoted;
use super::learn::ObservedCall;
use super::load::BUILT_IN;
use super::rule::{ArgumentTest, GroupAction};

/// The number of calls in one line of the file.
const CALLS_PER_LINE: usize = 6;

impl Profile {
    /// A profile that extends this one by what was used while learning. `command` is named in its reasons.
    ///
    /// Read it before using it: not everything that was used was needed.
    pub fn render_learned(&self, used: &[ObservedCall], command: &str) -> String {
        render(self, used, command)
    }
}

fn render(profile: &Profile, used: &[ObservedCall], command: &str) -> String {
    // Escapes of a quoted string; control characters were replaced.
    let command = quoted(command).replace('\\', "\\\\").replace('"', "\\\"");
    let built_in = BUILT_IN.iter().any(|(name, _)| *name == profile.name);
    let base = if built_in { &profile.name } else { profile.extends.as_deref().unwrap_or("strict") };
    let mut text = format!(
        "# Learned, not decided: read each call below, and keep those that the program should have.\n\n\
         description = \"{base}, and what this was seen to need: {command}\"\nextends = \"{base}\"\n"
    );
    if !built_in {
        // Only built-in profiles can be extended.
        let _ = writeln!(text, "# The groups of `{}` have to be copied here.", profile.name);
    }

    let mut whole = Vec::new();
    let mut parts = BTreeMap::<&str, Vec<&ObservedCall>>::new();
    for one in used {
        match one.name {
            Some(name) if one.arguments.is_empty() => whole.push(name),
            Some(name) => parts.entry(name).or_default().push(one),
            None => {
                let _ =
                    writeln!(text, "# Call number {} has no name in this version, and was used.", one.number);
            }
        }
    }
    whole.dedup();
    if !whole.is_empty() {
        let lines: Vec<String> = whole
            .chunks(CALLS_PER_LINE)
            .map(|calls| format!("    \"{}\",\n", calls.join("\", \"")))
            .collect();
        let _ = write!(
            text,
            "\n[[allow]]\nwhy = \"seen while learning: {command}\"\ncalls = [\n{}]\n",
            lines.concat()
        );
    }
    for (call, ways) in parts {
        for arguments in group_uses(profile, call, &ways) {
            let conditions: Vec<String> = arguments.iter().map(condition).collect();
            let _ = write!(
                text,
                "\n[[allow]]\nwhy = \"seen while learning: {command}\"\ncalls = [\"{call}\"]\nwhen = [{}]\n",
                conditions.join(", ")
            );
        }
    }
    text
}

/// An argument, the mask that selects its bits, and the values that it had.
struct ObservedArgument {
    arg: u8,
    mask: u32,
    values: Vec<u32>,
}

/// The uses of a call: in one group if a single argument decides, otherwise in a group each.
fn group_uses(profile: &Profile, call: &str, ways: &[&ObservedCall]) -> Vec<Vec<ObservedArgument>> {
    let mut groups: Vec<Vec<ObservedArgument>> = Vec::new();
    for way in ways {
        let seen: Vec<ObservedArgument> = way
            .arguments
            .iter()
            .map(|(arg, value)| {
                let mask = mask(profile, call, *arg);
                ObservedArgument { arg: *arg, mask, values: vec![value & mask] }
            })
            .collect();
        match (groups.first_mut(), seen.as_slice()) {
            (Some(first), [one]) if first.len() == 1 => {
                first[0].values.extend_from_slice(&one.values);
                first[0].values.sort_unstable();
                first[0].values.dedup();
            }
            _ => groups.push(seen),
        }
    }
    groups
}

/// The bits of an argument that the profile compares.
fn mask(profile: &Profile, call: &str, arg: u8) -> u32 {
    let allows = profile.groups.iter().filter(|group| group.verdict == GroupAction::Allow);
    let conditions = allows.filter(|group| group.calls.contains(&call)).flat_map(|group| &group.when);
    conditions
        .filter(|condition| condition.arg == arg)
        .find_map(|condition| match condition.test {
            ArgumentTest::Is { mask, .. } => Some(mask),
            _ => None,
        })
        .unwrap_or(u32::MAX)
}

fn condition(seen: &ObservedArgument) -> String {
    let values: Vec<String> = seen.values.iter().map(|value| format!("{value:#x}")).collect();
    let mask = if seen.mask == u32::MAX { String::new() } else { format!("mask = {:#x}, ", seen.mask) };
    format!("{{ arg = {}, {mask}is = [{}] }}", seen.arg, values.join(", "))
}
