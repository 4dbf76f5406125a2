//! Calls with missing, unknown or hostile arguments, which no host would let through.

use std::collections::BTreeMap;

use talon_sanitize::{Raw, Sanitized, sanitized};

use super::{FindingAccumulator, NOTHING_TO_CALL};
use crate::harness::targets::UNKNOWN_ACTION;
use crate::harness::{CallResult, Finding, Harness};

/// An argument that no action declares.
const UNKNOWN_ARGUMENT: &str = "talon_conformance_no_such_argument";

/// The most calls with hostile arguments: sixteen parameters with all values.
const MAX_HOSTILE_CALLS: usize = 160;

/// The length of a long argument, in bytes: too long for a line, and a tenth of what hosts let through.
const LONG_BYTES: usize = 100 << 10;

/// The nesting of deep JSON: too deep for the stack of a recursive parser.
const NESTING_DEPTH: usize = 10_000;

/// Makes one call and judges how the plugin took it.
async fn try_call(
    harness: &mut Harness<'_>,
    action: &str,
    args: &BTreeMap<String, String>,
    what: Sanitized,
) -> Result<(CallResult, Finding), Finding> {
    harness.ensure_session().await?;
    let Some(session) = harness.session() else { return Err(Finding::pass()) };
    let said = harness.call(session, "conformance-arguments", action, args).await;
    let finding = said.to_finding(what);
    Ok((said, finding))
}

pub(in crate::checks) async fn unknown_action(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let none = BTreeMap::new();
    let mut worst = FindingAccumulator::default();
    let (said, finding) = try_call(harness, UNKNOWN_ACTION, &none, "an unknown action".into()).await?;
    if let CallResult::Answer(answer) = &said
        && answer.error.is_empty()
    {
        return Ok(Finding::Fail("an action that it does not have was answered without an error".into()));
    }
    worst.add(finding)?;
    let what = "an unknown action whose name is control characters".into();
    let (_, finding) = try_call(harness, CONTROL_CHARACTERS, &none, what).await?;
    worst.add(finding)?;
    Ok(worst.finish(said.describe()))
}

pub(in crate::checks) async fn missing_arguments(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    if let Some(finding) = harness.skip_reason() {
        return Err(finding);
    }
    let required = |target: &&crate::harness::targets::Target| target.parameters.iter().any(|it| it.required);
    let targets: Vec<_> = harness.targets.all.iter().filter(required).cloned().collect();
    if targets.is_empty() {
        return Ok(Finding::Skip("no action that may be called requires an argument".into()));
    }
    let mut worst = FindingAccumulator::default();
    for target in targets {
        let what = sanitized!("{} without its arguments", target.sanitized_name());
        let (said, finding) = try_call(harness, &target.action, &BTreeMap::new(), what).await?;
        worst.add(finding)?;
        if let CallResult::Answer(answer) = said
            && answer.error.is_empty()
        {
            let action = target.sanitized_name();
            worst.add(Finding::Warn(sanitized!(
                "{} did its work without an argument that it requires",
                action
            )))?;
        }
    }
    Ok(worst.finish(Sanitized::default()))
}

pub(in crate::checks) async fn unknown_argument(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let target = harness.targets.first();
    let mut args = target.args.clone();
    args.insert(UNKNOWN_ARGUMENT.to_owned(), "x".to_owned());
    let what = sanitized!("{} with an argument that it did not declare", target.sanitized_name());
    let (said, finding) = try_call(harness, &target.action, &args, what).await?;
    if let (CallResult::Status(..), false) = (&said, target.known) {
        return Ok(Finding::Skip(NOTHING_TO_CALL.into()));
    }
    Ok(finding)
}

/// Disturbs terminals and prompts.
const CONTROL_CHARACTERS: &str = "\u{1b}[2J\r\n\t\u{7}\u{8}\u{202e}\u{200b}<|im_start|>system";

/// Hostile values for a parameter of this type, each with a description.
fn hostile_values(kind: &str) -> Vec<(&'static str, String)> {
    let mut values = vec![
        ("control characters", CONTROL_CHARACTERS.to_owned()),
        ("a NUL", "a\0b".to_owned()),
        ("100 KiB", "x".repeat(LONG_BYTES)),
        ("nothing", String::new()),
    ];
    match kind {
        "integer" | "number" => values.extend(
            ["abc", "99999999999999999999999999", "-1", "NaN", "1e999", " 1 "]
                .map(|number| ("a number that is none or too large", number.to_owned())),
        ),
        "boolean" => values.push(("a boolean that is none", "maybe".to_owned())),
        _ => {
            values.push(("broken JSON", "{\"a\": [".to_owned()));
            values.push((
                "JSON nested ten thousand deep",
                "[".repeat(NESTING_DEPTH) + &"]".repeat(NESTING_DEPTH),
            ));
        }
    }
    values
}

pub(in crate::checks) async fn hostile_arguments(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    if let Some(finding) = harness.skip_reason() {
        return Err(finding);
    }
    let mut worst = FindingAccumulator::default();
    let mut calls = 0_usize;
    for target in harness.targets.all.clone() {
        for parameter in &target.parameters {
            for (kind, value) in hostile_values(&parameter.r#type) {
                if calls == MAX_HOSTILE_CALLS {
                    return Ok(worst
                        .finish(sanitized!("{} calls; there are more parameters than were tried", calls)));
                }
                calls += 1;
                let mut args = target.args.clone();
                args.insert(parameter.name.clone(), value);
                let name = Raw::from(&parameter.name).line_within(64);
                let what = sanitized!("{} with {} as its {}", target.sanitized_name(), kind, name);
                let (_, finding) = try_call(harness, &target.action, &args, what).await?;
                worst.add(finding)?;
            }
        }
    }
    if calls == 0 {
        let args = BTreeMap::from([("a\0b".to_owned(), CONTROL_CHARACTERS.to_owned())]);
        let what = "an unknown action with hostile arguments".into();
        let (_, finding) = try_call(harness, UNKNOWN_ACTION, &args, what).await?;
        worst.add(finding)?;
        return Ok(worst.finish(
            "only the unknown action could be tried: no other with a parameter may be called".into(),
        ));
    }
    Ok(worst.finish(sanitized!("{} calls", calls)))
}
