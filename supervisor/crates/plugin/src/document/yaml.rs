//! YAML text to a tree that knows its lines and columns.
//!
//! Decides nothing about types: what a scalar means is told by the key it belongs to. Everything is bounded: the text, the depth, and what aliases
//! may multiply.

use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, options};

use super::origin::KeyPath;
use super::problem::Problem;
use super::walk::Speaker;

/// The longest text. A supervisor's whole configuration has some kilobytes; 1 MiB is a mistaken file.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// The deepest nesting. Our own keys need eight levels; a plugin's free `config` gets the rest.
pub const MAX_DEPTH: usize = 64;

/// What the tree may weigh once aliases are followed: room for any file without aliases, none for a bomb.
const MAX_WEIGHT: usize = 8 << 20;

/// What a node weighs besides its text: about what it takes in memory.
const NODE_WEIGHT: usize = 64;

/// A place in the text: line and column, counted from 1. Line 0 means the text as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// One node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub at: Mark,
    /// What it is.
    pub kind: Kind,
    weight: usize,
    /// Levels from here down, aliases followed: 1 for a scalar.
    depth: usize,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A scalar, as text.
    Scalar {
        /// Without its quotes.
        text: String,
        /// Written without quotes, so that `5` may be a number and `null` may be nothing.
        plain: bool,
    },
    /// Values.
    List(Vec<Rc<Node>>),
    /// Keys and values, in their order; a key may stand twice.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_at: Mark,
    /// The value.
    pub value: Rc<Node>,
}

/// Why a text cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where reading ended.
    pub at: Mark,
    /// What is wrong there.
    pub message: String,
    /// What to do about it.
    pub help: Option<&'static str>,
}

impl Node {
    /// A scalar that stands by itself, as a variable or a flag gives it.
    #[must_use]
    pub fn scalar(text: &str, at: Mark, plain: bool) -> Self {
        let weight = NODE_WEIGHT + text.len();
        Self { at, kind: Kind::Scalar { text: text.to_owned(), plain }, weight, depth: 1 }
    }
}

impl Refusal {
    /// As a problem of who said it, about the key that was to be read.
    #[must_use]
    pub fn problem(self, speaker: &Speaker, key: KeyPath) -> Problem {
        let problem = Problem::new(speaker.at(self.at), key, self.message);
        Problem { help: self.help.map(str::to_owned), ..problem }
    }
}

/// A collection that is not closed yet.
struct Open {
    at: Mark,
    anchor: usize,
    weight: usize,
    depth: usize,
    /// `None` for a list; for a map the key that waits for its value.
    key: Option<Option<(String, Mark)>>,
    items: Vec<Rc<Node>>,
    entries: Vec<Entry>,
}

/// Reads one document. `None`: the text says nothing.
///
/// # Errors
/// [`Refusal`] for the first thing that cannot be read.
pub fn parse(text: &str) -> Result<Option<Rc<Node>>, Refusal> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(Refusal {
            at: Mark::default(),
            message: format!("is longer than {MAX_TEXT_BYTES} bytes"),
            help: Some("a configuration is much shorter; is it the right file?"),
        });
    }
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder::default();
    // A byte order mark says nothing about UTF-8 text, and would become part of the first key.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| Refusal {
            at: Mark { line: error.marker().line(), column: error.marker().col() + 1 },
            message: format!("is not valid YAML: {}", error.info()),
            help: None,
        })?;
        builder.take(event, Mark { line: span.start.line(), column: span.start.col() + 1 })?;
    }
    Ok(builder.root)
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Node>>,
    root: Option<Rc<Node>>,
    documents: usize,
    weight: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, at: Mark) -> Result<(), Refusal> {
        if let Some(tag) = event.tag() {
            let message =
                format!("tags are not supported: {}", tag.original().chars().take(40).collect::<String>());
            return Err(Refusal {
                at,
                message,
                help: Some("remove it; the key says what type its value has"),
            });
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let help = Some("remove what follows the second \"---\"");
                    return Err(Refusal { at, message: "a second document begins here".to_owned(), help });
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let node = Node::scalar(&text, at, style == ScalarStyle::Plain);
                self.finished(Rc::new(node), anchor)?;
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => self.finished(node, 0)?,
                None => {
                    let help = Some("an alias can only repeat what is complete before it");
                    return Err(Refusal { at, message: "an alias inside of what it names".to_owned(), help });
                }
            },
            Event::SequenceStart(_, anchor, _) => self.opened(at, anchor, None)?,
            Event::MappingStart(_, anchor, _) => self.opened(at, anchor, Some(None))?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let kind =
                        if open.key.is_some() { Kind::Map(open.entries) } else { Kind::List(open.items) };
                    // Its parts were weighed when they were added; only following an alias weighs them again.
                    self.weight -= open.weight;
                    let node = Node { at: open.at, kind, weight: open.weight, depth: open.depth };
                    self.finished(Rc::new(node), open.anchor)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn opened(
        &mut self,
        at: Mark,
        anchor: usize,
        key: Option<Option<(String, Mark)>>,
    ) -> Result<(), Refusal> {
        if let Some(Open { key: Some(None), .. }) = self.open.last() {
            return Err(not_a_key(at));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(at));
        }
        let open =
            Open { at, anchor, weight: NODE_WEIGHT, depth: 1, key, items: Vec::new(), entries: Vec::new() };
        self.weight += NODE_WEIGHT;
        self.open.push(open);
        Ok(())
    }

    fn finished(&mut self, node: Rc<Node>, anchor: usize) -> Result<(), Refusal> {
        self.weight += node.weight;
        if self.weight > MAX_WEIGHT {
            let help = Some("repeat less with aliases");
            return Err(Refusal { at: node.at, message: "grows too large from here on".to_owned(), help });
        }
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        // An alias brings its own levels along.
        if self.open.len() + node.depth > MAX_DEPTH + 1 {
            return Err(too_deep(node.at));
        }
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return Ok(());
        };
        open.weight += node.weight;
        open.depth = open.depth.max(node.depth + 1);
        match &mut open.key {
            None => open.items.push(node),
            Some(waiting) => match waiting.take() {
                Some((key, key_at)) => open.entries.push(Entry { key, key_at, value: node }),
                None => match &node.kind {
                    Kind::Scalar { text, plain: true } if text == "<<" => {
                        let help = Some("write the keys out");
                        return Err(Refusal {
                            at: node.at,
                            message: "merge keys are not supported".to_owned(),
                            help,
                        });
                    }
                    Kind::Scalar { text, .. } => *waiting = Some((text.clone(), node.at)),
                    Kind::List(_) | Kind::Map(_) => return Err(not_a_key(node.at)),
                },
            },
        }
        Ok(())
    }
}

fn too_deep(at: Mark) -> Refusal {
    Refusal { at, message: format!("is nested more than {MAX_DEPTH} levels deep"), help: None }
}

fn not_a_key(at: Mark) -> Refusal {
    let help = Some("a key is a word; if this was meant as ${VAR}, put it in quotes");
    Refusal { at, message: "a list or a map stands where a key should".to_owned(), help }
}
