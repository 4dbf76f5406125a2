//! Checks of what a plugin declares.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use talon_extensions::declaration::{DeclarationError, DeclaredAction, DeclaredParameter, check};
use talon_extensions::{DeclaredJob, Entry, MAX_PROPOSALS, Proposal, Role};
use talon_plugin_client::Capability;
use talon_plugin_client::capability::CapabilityError;
use talon_proto::plugin::{Action, JobProposal, Parameter, PluginCapabilities};
use talon_proto::roles::{SCHEDULED_TASK, TOOL};
use talon_sanitize::{Raw, Sanitized, sanitized};

use super::handshake;
use crate::harness::{Finding, Harness, InitResult};

/// Stands for the name that an operator gives the plugin.
const PLUGIN: &str = "plugin";

/// The allowed types of a parameter.
const TYPES: [&str; 7] = ["", "string", "integer", "number", "boolean", "array", "object"];

/// The longest name that is shown.
const SHOWN_NAME_BYTES: usize = 64;

pub(super) fn answered(harness: &Harness<'_>) -> Finding {
    match (harness.skip_reason(), &harness.facts.declaration, &harness.facts.capabilities) {
        (_, Some(Err(problem)), _) => Finding::Fail(sanitized!("Capabilities brought nothing: {}", problem)),
        (Some(finding), _, _) => finding,
        (None, _, None) => match decode_error(harness) {
            Some(error) => Finding::Fail(Raw::of(error).line()),
            None => Finding::Fail("its answer is not the message of opentalon.plugin.v1".into()),
        },
        (None, _, Some(declared)) => Finding::Pass(sanitized!("{} actions", declared.actions.len())),
    }
}

pub(super) fn names(harness: &Harness<'_>) -> Result<Finding, Finding> {
    declaration(harness)?;
    if let Some(error @ CapabilityError::BadName { .. }) = decode_error(harness) {
        return Ok(Finding::Fail(Raw::of(error).line()));
    }
    let left_out = decoded(harness).map(|capability| capability.omitted).unwrap_or_default();
    Ok(match left_out.first() {
        Some(problem) => Finding::Fail(problem.clone()),
        None => Finding::pass(),
    })
}

pub(super) fn duplicates(harness: &Harness<'_>) -> Result<Finding, Finding> {
    let declared = declaration(harness)?;
    if let Some(twice) = first_duplicate(declared.actions.iter().map(|action| action.name.as_str())) {
        return Ok(Finding::Fail(sanitized!("the action {} is declared twice", sanitized(twice))));
    }
    for action in &declared.actions {
        if let Some(twice) =
            first_duplicate(action.parameters.iter().map(|parameter| parameter.name.as_str()))
        {
            let action = sanitized(&action.name);
            return Ok(Finding::Fail(sanitized!(
                "the action {} has the parameter {} twice",
                action,
                sanitized(twice)
            )));
        }
    }
    Ok(Finding::pass())
}

fn first_duplicate<'n>(names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

pub(super) fn schemas(harness: &Harness<'_>) -> Result<Finding, Finding> {
    let declared = declaration(harness)?;
    let mut told = None;
    for action in &declared.actions {
        let whose = |what: &str| sanitized!("{} of the action {}", sanitized(what), sanitized(&action.name));
        if let Err(problem) = check_schema(&action.output_schema) {
            return Ok(Finding::Fail(sanitized!("{} {}", whose("output_schema"), problem)));
        }
        for parameter in &action.parameters {
            if let Err(problem) = check_schema(&parameter.schema) {
                let whose = whose(&parameter.name);
                return Ok(Finding::Fail(sanitized!("the schema of the parameter {} {}", whose, problem)));
            }
            if !TYPES.contains(&parameter.r#type.as_str()) {
                told = Some(sanitized!(
                    "the parameter {} has the type {}, which hosts take for any text",
                    whose(&parameter.name),
                    sanitized(&parameter.r#type)
                ));
            }
        }
    }
    Ok(told.map_or_else(Finding::pass, Finding::Warn))
}

/// Whether a schema can be parsed.
fn check_schema(schema: &str) -> Result<(), Sanitized> {
    if schema.is_empty() {
        return Ok(());
    }
    match serde_json::from_str::<Value>(schema) {
        Ok(Value::Object(_) | Value::Bool(_)) => Ok(()),
        Ok(_) => Err("is neither an object nor a boolean".into()),
        Err(error) => Err(sanitized!("is no JSON: {}", Raw::of(error).line_within(SHOWN_NAME_BYTES * 2))),
    }
}

pub(super) fn sizes(harness: &Harness<'_>) -> Result<Finding, Finding> {
    declaration(harness)?;
    Ok(match decode_error(harness) {
        Some(error @ CapabilityError::TooMuch { .. }) => Finding::Fail(Raw::of(error).line()),
        _ => Finding::pass(),
    })
}

pub(super) fn roles(harness: &Harness<'_>) -> Result<Finding, Finding> {
    let declared = declaration(harness)?;
    if let Some(problem) = proposal_problem(declared) {
        return Ok(Finding::Fail(problem));
    }
    let mut told = None;
    for action in &declared.actions {
        for role in action.roles.iter().filter(|role| *role != TOOL) {
            let known: Role = match role.parse() {
                Ok(known) => known,
                Err(error) => {
                    let whose = sanitized(&action.name);
                    told = Some(sanitized!("the action {}: {}", whose, Raw::of(error).line()));
                    continue;
                }
            };
            if let Err(error) = fits_role(known, action) {
                return Ok(Finding::Fail(Raw::of(error).line()));
            }
        }
    }
    Ok(told.map_or_else(Finding::pass, Finding::Warn))
}

/// Why a job that it proposes could not be accepted.
fn proposal_problem(declared: &PluginCapabilities) -> Option<Sanitized> {
    let proposed =
        declared.actions.iter().flat_map(|action| action.proposed_jobs.iter().map(move |job| (action, job)));
    let proposed: Vec<(&Action, &JobProposal)> = proposed.collect();
    if proposed.len() > MAX_PROPOSALS {
        return Some(sanitized!("it proposes {} jobs, and {} are the most", proposed.len(), MAX_PROPOSALS));
    }
    let mut ids = BTreeSet::new();
    proposed.into_iter().find_map(|(action, job)| {
        let whose = sanitized(&action.name);
        if !action.roles.iter().any(|role| role == SCHEDULED_TASK) {
            return Some(sanitized!(
                "the action {} proposes a job, and does not declare the role scheduled_task",
                whose
            ));
        }
        let JobProposal { name, cron, every, timezone, arguments_json } = job.clone();
        let said = DeclaredJob { name, cron, every, timezone, arguments_json };
        match Proposal::check(PLUGIN, &action.name, &said) {
            Ok(proposal) if ids.insert(proposal.id.clone()) => None,
            Ok(proposal) => {
                Some(sanitized!("it proposes two jobs that are called {}", Raw::of(proposal.id).line()))
            }
            Err(error) => {
                Some(sanitized!("a job that the action {} proposes: {}", whose, Raw::of(error).line()))
            }
        }
    })
}

/// Whether an entry without a template would work.
fn fits_role(role: Role, action: &Action) -> Result<(), DeclarationError> {
    let parameter = |parameter: &Parameter| DeclaredParameter {
        name: parameter.name.clone(),
        kind: parameter.r#type.clone(),
        required: parameter.required,
    };
    let declared = DeclaredAction {
        roles: action.roles.clone(),
        parameters: action.parameters.iter().map(parameter).collect(),
        takes_further_arguments: action.takes_further_arguments,
    };
    let name = format!("plugin.{}", action.name);
    let entry = Entry { role, index: 0, name: &name, action: &name, args: None };
    check(&entry, Some(&declared), std::iter::empty())
}

pub(super) async fn stable(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    declaration(harness)?;
    harness.ensure_session().await?;
    let Some(session) = harness.session() else { return Ok(Finding::pass()) };
    let again = harness.call_capabilities(session).await;
    let decode = |bytes: bytes::Bytes| <PluginCapabilities as prost::Message>::decode(bytes).ok();
    let second = match again {
        Ok(bytes) => decode(bytes),
        Err(problem) => {
            return Ok(Finding::Fail(sanitized!("the second time it brought nothing: {}", problem)));
        }
    };
    let (Some(first), Some(second)) = (&harness.facts.capabilities, second) else {
        return Ok(Finding::Fail("the second answer is not the message of opentalon.plugin.v1".into()));
    };
    Ok(match difference(first, &second) {
        Some(what) => Finding::Fail(sanitized!("the second answer differs from the first in {}", what)),
        None => Finding::pass(),
    })
}

/// The first difference, ignoring the order of actions.
fn difference(first: &PluginCapabilities, second: &PluginCapabilities) -> Option<Sanitized> {
    let by_name = |declared: &PluginCapabilities| -> BTreeMap<String, Action> {
        declared.actions.iter().map(|action| (action.name.clone(), action.clone())).collect()
    };
    let (before, after) = (by_name(first), by_name(&second.clone()));
    let changed = before.iter().find(|(name, action)| after.get(*name) != Some(*action));
    let changed = changed.or_else(|| after.iter().find(|(name, _)| !before.contains_key(*name)));
    if let Some((name, _)) = changed {
        return Some(sanitized!("the action {}", sanitized(name)));
    }
    let rest = |declared: &PluginCapabilities| PluginCapabilities { actions: Vec::new(), ..declared.clone() };
    (rest(first) != rest(second)).then(|| "what it says of itself".into())
}

/// The declaration, decoded.
fn declaration<'b>(harness: &'b Harness<'_>) -> Result<&'b PluginCapabilities, Finding> {
    if let Some(problem) = &harness.facts.problem {
        return Err(handshake::skipped_at(problem.stage));
    }
    if let Some(InitResult::Refused(_)) = &harness.facts.init {
        return Err(Finding::Skip("it does not get that far: see init.settings".into()));
    }
    let missing = || Finding::Skip("it does not get that far: see capabilities.answered".into());
    harness.facts.capabilities.as_ref().ok_or_else(missing)
}

/// The declaration, if the host accepts it.
fn decoded(harness: &Harness<'_>) -> Option<Capability> {
    let bytes = harness.facts.declaration.as_ref()?.as_ref().ok()?;
    Capability::decode(bytes, &harness.spec.name).ok()
}

/// Why the host would refuse the declaration.
fn decode_error(harness: &Harness<'_>) -> Option<CapabilityError> {
    let bytes = harness.facts.declaration.as_ref()?.as_ref().ok()?;
    Capability::decode(bytes, &harness.spec.name).err()
}

fn sanitized(text: &str) -> Sanitized {
    Raw::from(text).line_within(SHOWN_NAME_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_an_object_or_a_boolean() {
        for good in ["", "{}", "true", r#"{"type": "string"}"#] {
            assert_eq!(check_schema(good), Ok(()), "{good}");
        }
        for bad in ["3", "[]", "{", "null", "nonsense"] {
            assert!(check_schema(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_order_of_actions_is_no_difference() {
        let action = |name: &str| Action { name: name.to_owned(), ..Action::default() };
        let of = |actions: Vec<Action>| PluginCapabilities { actions, ..PluginCapabilities::default() };
        let both = of(vec![action("a"), action("b")]);
        assert_eq!(difference(&both, &of(vec![action("b"), action("a")])), None);
        assert!(difference(&both, &of(vec![action("a")])).unwrap().contains("the action b"));
        assert!(difference(&of(vec![action("a")]), &both).unwrap().contains("the action b"));
        let named = PluginCapabilities { description: "now".to_owned(), ..both.clone() };
        assert!(difference(&both, &named).is_some());
    }
}
