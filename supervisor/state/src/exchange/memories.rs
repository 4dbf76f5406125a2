//! A memory as YAML: ours, the founding form of a fact (`id`, `content`, `tags`, `created_at`), and the
//! founding forms of a workflow.
//!
//! A workflow is a memory with `trigger` and `steps`, with or without an id and a content; or one tagged
//! `workflow` whose content is the text of a workflow (see [`workflow`](super::workflow)). A memory with that
//! tag and some other content is a fact here: the tag becomes [`TEXT_WORKFLOW_TAG`].

use std::collections::BTreeSet;

use talon_child::yaml::YamlWriter;
use talon_store::limits::{MAX_MEMORY_BYTES, MAX_TAGS};
use talon_store::{MemoryId, StoredMemory, Timestamp, WORKFLOW_TAG, Workflow};

use super::excerpt::excerpt;
use super::fields::{checked, text};
use super::ids;
use super::node::{Mark, Node, NodeKind, Problem};
use super::omitted::OmittedFields;
use super::scalar;
use super::workflow;

/// The source of memories that have none.
const SOURCE: &str = "import";
/// The tag of memories that are tagged as workflows but cannot be parsed as one.
pub(super) const TEXT_WORKFLOW_TAG: &str = "workflow-text";

/// Writes a memory as the next item of a list.
pub(super) fn write(yaml: &mut YamlWriter, memory: &StoredMemory) {
    yaml.item(|yaml| {
        yaml.bare("id", memory.id);
        yaml.text("content", &memory.content);
        if !memory.tags.is_empty() {
            let tags = memory.tags.iter().cloned().map(serde_json::Value::String).collect();
            yaml.json("tags", &serde_json::Value::Array(tags));
        }
        yaml.text("source", &memory.source);
        if let Some(workflow) = &memory.workflow {
            yaml.text("trigger", &workflow.trigger);
            yaml.key("steps");
            yaml.raw("\n");
            for step in &workflow.steps {
                yaml.nested_item(|yaml| {
                    yaml.text("plugin", &step.plugin);
                    yaml.text("action", &step.action);
                    yaml.bare("order", step.order);
                });
            }
            yaml.text("outcome", &workflow.outcome);
        }
        yaml.bare("created_at", memory.created_at);
        yaml.bare("count", memory.count);
        yaml.bare("last_used", memory.last_used);
    });
}

/// The fields of a memory in a file.
#[derive(Default)]
struct MemoryFields {
    id: Option<(String, Mark)>,
    content: String,
    content_at: Mark,
    tags: BTreeSet<String>,
    source: Option<String>,
    created_at: Option<Timestamp>,
    count: Option<u64>,
    last_used: Option<Timestamp>,
    trigger: Option<String>,
    steps: Option<Node>,
    outcome: Option<String>,
}

/// The name of the memory in reports.
pub(super) fn name(node: &Node) -> String {
    let NodeKind::Map(entries) = &node.kind else { return String::new() };
    let of = |wanted: &str| {
        entries.iter().find_map(|(key, value)| match (&key.kind, &value.kind) {
            (NodeKind::Scalar { text: key, .. }, NodeKind::Scalar { text, .. }) if key == wanted => {
                Some(excerpt(text))
            }
            _ => None,
        })
    };
    of("id").or_else(|| of("trigger")).unwrap_or_default()
}

/// Reads a memory.
pub(super) fn read(
    node: Node,
    now: Timestamp,
    left_out: &mut OmittedFields,
) -> Result<StoredMemory, Problem> {
    let at = node.at;
    let mut said = read_fields(node, left_out)?;
    let workflow = said.workflow(at)?;
    if workflow.is_some() {
        said.tags.insert(WORKFLOW_TAG.to_owned());
    } else if said.tags.remove(WORKFLOW_TAG) {
        said.tags.insert(TEXT_WORKFLOW_TAG.to_owned());
    }
    if said.tags.len() > MAX_TAGS {
        return Err(Problem {
            at,
            reason: format!("must have at most {MAX_TAGS} tags, not {}", said.tags.len()),
        });
    }
    if let (true, Some(workflow)) = (said.content.is_empty(), &workflow) {
        said.content = workflow.describe();
    }
    if said.content.is_empty() {
        return Err(Problem { at, reason: "has no content".into() });
    }
    if said.content.len() > MAX_MEMORY_BYTES {
        let reason =
            format!("content must have at most {MAX_MEMORY_BYTES} bytes, not {}", said.content.len());
        return Err(Problem { at: said.content_at, reason });
    }
    let created_at = said.created_at.unwrap_or(now);
    let since = said.created_at.unwrap_or(Timestamp::from_millis(0));
    let id = match &said.id {
        Some((name, _)) if MemoryId::new(name).is_ok() => name.clone(),
        Some((name, at)) => {
            checked("the id", (name.clone(), *at))?;
            ids::derive_id("memory", since, &[name, &said.content])
        }
        None => ids::derive_id("memory", since, &["", &said.content]),
    };
    let id = MemoryId::new(&id).map_err(|error| Problem { at, reason: error.to_string() })?;
    Ok(StoredMemory {
        id,
        content: said.content,
        tags: said.tags,
        source: said.source.unwrap_or_else(|| SOURCE.to_owned()),
        workflow,
        created_at,
        count: said.count.unwrap_or(1),
        last_used: said.last_used.unwrap_or(created_at),
    })
}

fn read_fields(node: Node, left_out: &mut OmittedFields) -> Result<MemoryFields, Problem> {
    let mut said = MemoryFields::default();
    for (key, value) in node.fields("a memory")? {
        if value.is_null() {
            continue;
        }
        let at = value.at;
        let time = |value| {
            let (text, at) = text(&key, value)?;
            scalar::time(&text).map_err(|error| Problem { at, reason: format!("{key} {error}") })
        };
        match key.as_str() {
            "id" => said.id = Some(text("the id", value)?).filter(|(id, _)| !id.is_empty()),
            "content" => (said.content, said.content_at) = text("content", value)?,
            "tags" => said.tags = tags(value)?,
            "source" => said.source = Some(checked("source", text("source", value)?)?),
            "created_at" => said.created_at = time(value)?.or(said.created_at),
            "timestamp" => said.created_at = said.created_at.or(time(value)?),
            "count" => said.count = Some(value.number()?),
            "last_used" => said.last_used = time(value)?,
            "trigger" => said.trigger = Some(text("trigger", value)?.0),
            "steps" => said.steps = Some(value),
            "outcome" => said.outcome = Some(text("outcome", value)?.0),
            _ if value.is_empty() => {}
            _ => left_out.add(&format!("{} of memories", excerpt(&key)), at),
        }
    }
    Ok(said)
}

impl MemoryFields {
    fn workflow(&mut self, at: Mark) -> Result<Option<Workflow>, Problem> {
        if self.trigger.is_none() && self.steps.is_none() {
            let told = self.tags.contains(WORKFLOW_TAG).then(|| workflow::from_text(&self.content)).flatten();
            return Ok(told.map(|(workflow, timestamp)| {
                self.created_at = self.created_at.or(timestamp);
                workflow
            }));
        }
        let trigger = self.trigger.take().unwrap_or_default();
        let steps = self.steps.take().map(workflow::steps).transpose()?.unwrap_or_default();
        let workflow = Workflow { trigger, steps, outcome: self.outcome.take().unwrap_or_default() };
        workflow.check().map_err(|error| Problem { at, reason: error.to_string() })?;
        Ok(Some(workflow))
    }
}

/// A list, or a single tag.
fn tags(node: Node) -> Result<BTreeSet<String>, Problem> {
    let nodes = if node.is_scalar() && !node.is_null() { vec![node] } else { node.items("tags")? };
    nodes.into_iter().map(|tag| checked("a tag", text("a tag", tag)?)).collect()
}
