//! Parses YAML text to records, one at a time: a file is never a tree in memory.
//!
//! It is parsed twice. The first pass checks the whole file, so that a file that breaks off in the middle
//! gives one refusal and changes nothing; the second pass yields the records. Aliases are refused: no writer
//! of these files uses them, and with them a small file can expand to a huge one.

use granit_parser::{Event, Parser, ScalarStyle, options};

use super::limits::{MAX_DEPTH, MAX_FILE_BYTES, MAX_RECORD_WEIGHT};
use super::node::{Mark, Node, NodeKind, Problem, ScalarForm};

/// What a node weighs besides its text: about its size in memory.
const NODE_WEIGHT: usize = 96;

/// The expected shape of a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// A map, whose entries are the records.
    Map,
    /// A list, whose items are the records.
    List,
    /// A map in which the list under `items` is yielded item by item. Values under `skip` in an item are only
    /// counted.
    MapWith { items: &'static str, skip: &'static str },
}

/// A record.
#[derive(Debug)]
pub(super) enum Item {
    /// An entry of the map.
    Entry(Node, Node),
    /// An item of the list.
    Element(Node),
}

/// Checks all bytes: that they are UTF-8 text, and YAML.
pub(super) fn check(bytes: &[u8]) -> Result<&str, Problem> {
    if bytes.len() > MAX_FILE_BYTES {
        let reason = format!("the file has more than {MAX_FILE_BYTES} bytes");
        return Err(Problem { at: Mark::default(), reason });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = before.rsplit('\n').next().unwrap_or_default();
        let at = Mark { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 };
        Problem { at, reason: "is not UTF-8 text".into() }
    })?;
    // A byte order mark has no meaning in UTF-8 text, and would become part of the first key.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut documents = 0;
    for next in events(text) {
        let (event, at) = next?;
        let reason = match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents == 1 {
                    continue;
                }
                "a second document begins here; one file has one"
            }
            Event::Alias(_) => "aliases are not taken: write out what this one repeats",
            _ => continue,
        };
        return Err(Problem { at, reason: reason.into() });
    }
    Ok(text)
}

fn events(text: &str) -> impl Iterator<Item = Result<(Event<'_>, Mark), Problem>> {
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    Parser::new_from_str_with_options(text, options).map(|next| match next {
        Ok((event, span)) => Ok((event, Mark { line: span.start.line(), column: span.start.col() + 1 })),
        Err(error) => Err(Problem {
            at: Mark { line: error.marker().line(), column: error.marker().col() + 1 },
            reason: format!("is not valid YAML: {}", super::excerpt::excerpt(&error.info().to_string())),
        }),
    })
}

/// Passes the records of a text that [`check`] accepted to `each`, until that returns false.
///
/// # Errors
/// If the text does not have the shape.
pub(super) fn read(text: &str, shape: Shape, each: &mut dyn FnMut(Item) -> bool) -> Result<(), Problem> {
    let mut reader = Reader {
        shape,
        root: Root::Before,
        record: Record::default(),
        key: None,
        inside: false,
        opened: false,
    };
    for next in events(text) {
        let (event, at) = next?;
        if let Some(item) = reader.take(event, at)?
            && !each(item)
        {
            return Ok(());
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
enum Root {
    Before,
    Map,
    List,
}

struct Reader {
    shape: Shape,
    root: Root,
    record: Record,
    /// The root's key whose value comes next.
    key: Option<Node>,
    /// In the list that is yielded item by item.
    inside: bool,
    /// That list was found already: a second one of its name is an entry like any other.
    opened: bool,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, at: Mark) -> Result<Option<Item>, Problem> {
        if self.record.is_open() {
            return Ok(self.record.take(event, at).and_then(|node| self.finished(node)));
        }
        match event {
            Event::Scalar(..) if self.root == Root::Before => {
                let Some(node) = self.record.take(event, at) else { return Ok(None) };
                // An empty file, or one of comments alone, has no records.
                if node.is_null() { Ok(None) } else { Err(self.shape_problem(at)) }
            }
            Event::MappingStart(..) if self.root == Root::Before => match self.shape {
                Shape::List => Err(self.shape_problem(at)),
                Shape::Map | Shape::MapWith { .. } => {
                    self.root = Root::Map;
                    Ok(None)
                }
            },
            Event::SequenceStart(..) if self.root == Root::Before => match self.shape {
                Shape::Map | Shape::MapWith { .. } => Err(self.shape_problem(at)),
                Shape::List => {
                    self.root = Root::List;
                    Ok(None)
                }
            },
            Event::SequenceStart(..) if self.opens_records() => {
                (self.inside, self.opened) = (true, true);
                Ok(None)
            }
            Event::SequenceEnd if self.inside => {
                self.inside = false;
                self.key = None;
                Ok(None)
            }
            // The end of the root.
            Event::SequenceEnd | Event::MappingEnd => Ok(None),
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) => {
                let skip = match self.shape {
                    Shape::MapWith { skip, .. } if self.inside => Some(skip),
                    _ => None,
                };
                self.record = Record { skip, ..Record::default() };
                Ok(self.record.take(event, at).and_then(|node| self.finished(node)))
            }
            _ => Ok(None),
        }
    }

    /// Whether the list that begins now is the one that is yielded item by item.
    fn opens_records(&self) -> bool {
        let Shape::MapWith { items, .. } = self.shape else { return false };
        let key = self.key.as_ref().map(|key| &key.kind);
        !self.inside && !self.opened && matches!(key, Some(NodeKind::Scalar { text, .. }) if text == items)
    }

    fn finished(&mut self, node: Node) -> Option<Item> {
        if self.inside || self.root == Root::List {
            return Some(Item::Element(node));
        }
        match self.key.take() {
            Some(key) => Some(Item::Entry(key, node)),
            None => {
                self.key = Some(node);
                None
            }
        }
    }

    fn shape_problem(&self, at: Mark) -> Problem {
        let reason = match self.shape {
            Shape::List => "the file must be a list",
            Shape::Map | Shape::MapWith { .. } => "the file must be a map of keys and values",
        };
        Problem { at, reason: reason.into() }
    }
}

/// A record that is being read.
#[derive(Debug, Default)]
struct Record {
    open: Vec<OpenCollection>,
    weight: usize,
    /// The record's key whose value is only counted.
    skip: Option<&'static str>,
    /// The depth inside a value that is not kept.
    dropped: usize,
    /// The node that replaces that value.
    instead: Option<Node>,
}

/// A collection that is not closed yet.
#[derive(Debug)]
struct OpenCollection {
    at: Mark,
    /// In a map, keys and values alternate.
    nodes: Vec<Node>,
    map: bool,
}

impl Record {
    fn is_open(&self) -> bool {
        !self.open.is_empty() || self.dropped > 0
    }

    /// Processes an event; returns the record after its last one.
    fn take(&mut self, event: Event<'_>, at: Mark) -> Option<Node> {
        if self.dropped > 0 {
            return self.drop(&event);
        }
        match event {
            Event::Scalar(text, style, _, tag) => {
                let style = match tag.as_deref() {
                    None if style == ScalarStyle::Plain => ScalarForm::Plain,
                    None => ScalarForm::Text,
                    // The tags of the core schema, the timestamps of older YAML, and binary.
                    Some(tag) => match tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() {
                        Some("binary") => ScalarForm::Binary,
                        Some("str") => ScalarForm::Text,
                        Some("int" | "float" | "bool" | "null" | "timestamp") => ScalarForm::Plain,
                        _ => ScalarForm::Tagged(tag.original()),
                    },
                };
                self.weight += NODE_WEIGHT + text.len();
                self.add(Node { at, kind: NodeKind::Scalar { text: text.into_owned(), style } })
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if self.is_skipped() {
                    self.dropped = 1;
                    self.instead = Some(Node { at, kind: NodeKind::Skipped(0) });
                    return None;
                }
                self.weight += NODE_WEIGHT;
                let map = matches!(event, Event::MappingStart(..));
                self.open.push(OpenCollection { at, nodes: Vec::new(), map });
                self.drop_if_too_large()
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let OpenCollection { at, nodes, map } = self.open.pop()?;
                let kind = if map { NodeKind::Map(pairs(nodes)) } else { NodeKind::List(nodes) };
                self.add(Node { at, kind })
            }
            _ => None,
        }
    }

    /// Whether the value that begins now stands under the skipped key.
    fn is_skipped(&self) -> bool {
        let [OpenCollection { nodes, map: true, .. }] = &self.open[..] else { return false };
        let key = nodes.last().filter(|_| nodes.len() % 2 == 1).map(|key| &key.kind);
        matches!(key, Some(NodeKind::Scalar { text, .. }) if Some(text.as_str()) == self.skip)
    }

    fn add(&mut self, node: Node) -> Option<Node> {
        match self.open.last_mut() {
            None => Some(if self.weight > MAX_RECORD_WEIGHT {
                Node { kind: NodeKind::TooLarge, ..node }
            } else {
                node
            }),
            Some(open) => {
                open.nodes.push(node);
                self.drop_if_too_large()
            }
        }
    }

    /// Drops a record that grows too large; the rest of it is only counted.
    fn drop_if_too_large(&mut self) -> Option<Node> {
        if self.weight > MAX_RECORD_WEIGHT {
            self.dropped = self.open.len();
            let at = self.open.first().map(|open| open.at).unwrap_or_default();
            self.open.clear();
            self.instead = Some(Node { at, kind: NodeKind::TooLarge });
        }
        None
    }

    fn drop(&mut self, event: &Event<'_>) -> Option<Node> {
        if let (1, Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..), Some(node)) =
            (self.dropped, event, &mut self.instead)
            && let NodeKind::Skipped(values) = &mut node.kind
        {
            *values += 1;
        }
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => self.dropped += 1,
            Event::SequenceEnd | Event::MappingEnd => self.dropped -= 1,
            _ => {}
        }
        let done = self.instead.take_if(|_| self.dropped == 0)?;
        self.add(done)
    }
}

fn pairs(nodes: Vec<Node>) -> Vec<(Node, Node)> {
    let mut nodes = nodes.into_iter();
    std::iter::from_fn(|| Some((nodes.next()?, nodes.next()?))).collect()
}
