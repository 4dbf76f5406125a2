//! The founding forms of a workflow.
//!
//! Besides the fields of a memory, it can be the text of one: as YAML or JSON, or as these lines, which look
//! like YAML and are not (two colons in a line; a trigger as the person typed it, with colons and line
//! breaks):
//!
//! ```text
//! trigger: what the person said
//! steps:
//!   - plugin: gitlab, action: analyze_code, order: 1
//! outcome: success
//! ```

use talon_store::limits::MAX_MEMORY_BYTES;
use talon_store::{Step, Timestamp, Workflow};

use super::excerpt::excerpt;
use super::fields::{checked, text};
use super::node::{Mark, Node, Problem};
use super::read::{self, Item, Shape};
use super::scalar;

/// Reads a list of steps. They are sorted, and numbered if they have no order.
pub(super) fn steps(node: Node) -> Result<Vec<Step>, Problem> {
    let nodes = node.items("steps")?;
    let steps = nodes.into_iter().zip(1_u32..).map(|(node, place)| step(node, place));
    Ok(ordered(steps.collect::<Result<Vec<_>, _>>()?))
}

fn step(node: Node, place: u32) -> Result<Step, Problem> {
    let at = node.at;
    let mut step = Step::new("", "", place);
    for (key, value) in node.fields("a step")? {
        let at = value.at;
        match key.as_str() {
            "plugin" => step.plugin = checked("a step's plugin", text("a step's plugin", value)?)?,
            "action" => step.action = checked("a step's action", text("a step's action", value)?)?,
            "order" if value.is_null() => {}
            "order" => {
                step.order = u32::try_from(value.number()?)
                    .ok()
                    // The engines keep it as a signed number.
                    .filter(|order| i32::try_from(*order).is_ok())
                    .ok_or(Problem { at, reason: "a step's order is too large".into() })?;
            }
            _ => {
                let reason = format!("a step has plugin, action and order, not {}", excerpt(&key));
                return Err(Problem { at, reason });
            }
        }
    }
    if step.plugin.is_empty() || step.action.is_empty() {
        return Err(Problem { at, reason: "a step must have a plugin and an action".into() });
    }
    Ok(step)
}

fn ordered(mut steps: Vec<Step>) -> Vec<Step> {
    steps.sort_by_key(|step| step.order);
    if steps.windows(2).any(|pair| pair[0].order == pair[1].order) {
        steps.iter_mut().zip(1..).for_each(|(step, order)| step.order = order);
    }
    steps
}

/// The workflow that a content describes, and when it was recorded; `None` if it describes something else.
pub(super) fn from_text(content: &str) -> Option<(Workflow, Option<Timestamp>)> {
    if content.len() > MAX_MEMORY_BYTES {
        return None;
    }
    let found = from_lines(content).map(|workflow| (workflow, None)).or_else(|| from_yaml(content))?;
    found.0.check().is_ok().then_some(found)
}

fn from_lines(content: &str) -> Option<Workflow> {
    let rest = content.trim_end().strip_prefix("trigger: ")?;
    let (rest, outcome) = rest.rsplit_once("\noutcome: ")?;
    // The last such line: a trigger may contain anything.
    let (trigger, listed) = rest.rsplit_once("\nsteps:\n")?;
    let step = |line: &str| {
        let fields = line.trim().strip_prefix("- plugin: ")?;
        let (fields, order) = fields.rsplit_once(", order: ")?;
        let (plugin, action) = fields.split_once(", action: ")?;
        let name = |text: &str| checked("a name", (text.trim().to_owned(), Mark::default())).ok();
        Some(Step::new(
            name(plugin)?,
            name(action)?,
            order.trim().parse().ok().filter(|order| *order <= 1_000_000)?,
        ))
    };
    let steps = listed.lines().map(step).collect::<Option<Vec<_>>>()?;
    (!outcome.contains('\n')).then(|| Workflow {
        trigger: trigger.to_owned(),
        steps: ordered(steps),
        outcome: outcome.trim().to_owned(),
    })
}

/// YAML, and so JSON too: a map, or a list of one.
fn from_yaml(content: &str) -> Option<(Workflow, Option<Timestamp>)> {
    let content = read::check(content.as_bytes()).ok()?;
    let mut workflow = Workflow::default();
    let mut timestamp = None;
    let mut good = true;
    let mut take = |key: Node, value: Node| -> Option<()> {
        match key.text().ok()?.as_str() {
            "trigger" => workflow.trigger = value.text().ok()?,
            "steps" => workflow.steps = steps(value).ok()?,
            "outcome" => workflow.outcome = value.text().ok()?,
            "timestamp" => timestamp = scalar::time(&value.text().ok()?).ok()?,
            _ => return None,
        }
        Some(())
    };
    let mut items = 0;
    let mut each = |item: Item| {
        good = good
            && match item {
                Item::Entry(key, value) => take(key, value).is_some(),
                Item::Element(node) => {
                    items += 1;
                    let fields = node.entries();
                    items == 1
                        && !fields.is_empty()
                        && fields.into_iter().all(|(key, value)| take(key, value).is_some())
                }
            };
        good
    };
    let shape = if content.trim_start().starts_with(['-', '[']) { Shape::List } else { Shape::Map };
    read::read(content, shape, &mut each).ok()?;
    good.then_some((workflow, timestamp))
}
