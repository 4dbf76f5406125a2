//! Parses YAML text into a tree with lines and columns.
//!
//! It does not decide about types: the key of a scalar determines its type. The text, the depth and the
//! expansion of aliases are bounded.

use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, options};

use super::origin::{InputSource, KeyPath, Mark};
use super::problem::Problem;

/// The longest text. A supervisor's whole configuration has some kilobytes; 1 MiB is the wrong file.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// The deepest nesting. Our own keys need eight levels; the rest is for a plugin's free `config`.
pub const MAX_DEPTH: usize = 64;

/// The largest weight of the tree with aliases expanded: enough for any file without aliases, too little for
/// an alias bomb.
const MAX_WEIGHT: usize = 8 << 20;

/// The weight of a node without its text: about its size in memory.
const NODE_WEIGHT: usize = 64;

/// One node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it starts.
    pub at: Mark,
    /// Its kind.
    pub kind: NodeKind,
    weight: usize,
    /// The number of levels from here down, with aliases expanded: 1 for a scalar.
    depth: usize,
}

/// The kind of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// A scalar, as text.
    Scalar {
        /// The text without quotes.
        text: String,
        /// Written without quotes, so that `5` may be a number and `null` may be nothing.
        plain: bool,
    },
    /// A list of values.
    List(Vec<Rc<Node>>),
    /// Keys and values in their order; a key may occur twice.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The position of the key.
    pub key_at: Mark,
    /// The value.
    pub value: Rc<Node>,
}

/// Why a text cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Where parsing stopped.
    pub at: Mark,
    /// The problem.
    pub message: String,
    /// What to do about it.
    pub help: Option<&'static str>,
}

impl Node {
    /// A single scalar, as given by a variable or a flag.
    #[must_use]
    pub fn scalar(text: &str, at: Mark, plain: bool) -> Self {
        let weight = NODE_WEIGHT + text.len();
        Self { at, kind: NodeKind::Scalar { text: text.to_owned(), plain }, weight, depth: 1 }
    }
}

impl ParseError {
    /// Converts it into a problem of this source, about the key that was being read.
    #[must_use]
    pub fn into_problem(self, speaker: &InputSource, key: KeyPath) -> Problem {
        let problem = Problem::new(speaker.at(self.at), key, self.message);
        Problem { help: self.help.map(str::to_owned), ..problem }
    }
}

/// A collection that is still open.
struct OpenCollection {
    at: Mark,
    anchor: usize,
    weight: usize,
    depth: usize,
    /// `None` for a list. For a map: the key that is waiting for its value.
    key: Option<Option<(String, Mark)>>,
    items: Vec<Rc<Node>>,
    entries: Vec<Entry>,
}

/// Parses one document. `None` if the text is empty.
///
/// # Errors
/// [`ParseError`] for the first error.
pub fn parse(text: &str) -> Result<Option<Rc<Node>>, ParseError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(ParseError {
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
    // A byte order mark has no meaning in UTF-8 text, and would become part of the first key.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| ParseError {
            at: Mark { line: error.marker().line(), column: error.marker().col() + 1 },
            message: format!("is not valid YAML: {}", error.info()),
            help: None,
        })?;
        builder.handle_event(event, Mark { line: span.start.line(), column: span.start.col() + 1 })?;
    }
    Ok(builder.root)
}

#[derive(Default)]
struct Builder {
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, Rc<Node>>,
    root: Option<Rc<Node>>,
    documents: usize,
    weight: usize,
}

impl Builder {
    fn handle_event(&mut self, event: Event<'_>, at: Mark) -> Result<(), ParseError> {
        if let Some(tag) = event.tag() {
            let message =
                format!("tags are not supported: {}", tag.original().chars().take(40).collect::<String>());
            return Err(ParseError {
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
                    return Err(ParseError { at, message: "a second document begins here".to_owned(), help });
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let node = Node::scalar(&text, at, style == ScalarStyle::Plain);
                self.add_node(Rc::new(node), anchor)?;
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => self.add_node(node, 0)?,
                None => {
                    let help = Some("an alias can only repeat what is complete before it");
                    return Err(ParseError {
                        at,
                        message: "an alias inside of what it names".to_owned(),
                        help,
                    });
                }
            },
            Event::SequenceStart(_, anchor, _) => self.open_collection(at, anchor, None)?,
            Event::MappingStart(_, anchor, _) => self.open_collection(at, anchor, Some(None))?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let kind = if open.key.is_some() {
                        NodeKind::Map(open.entries)
                    } else {
                        NodeKind::List(open.items)
                    };
                    // The weight of its parts was added when they were; only an alias adds it again.
                    self.weight -= open.weight;
                    let node = Node { at: open.at, kind, weight: open.weight, depth: open.depth };
                    self.add_node(Rc::new(node), open.anchor)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn open_collection(
        &mut self,
        at: Mark,
        anchor: usize,
        key: Option<Option<(String, Mark)>>,
    ) -> Result<(), ParseError> {
        if let Some(OpenCollection { key: Some(None), .. }) = self.open.last() {
            return Err(not_a_key(at));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(at));
        }
        let open = OpenCollection {
            at,
            anchor,
            weight: NODE_WEIGHT,
            depth: 1,
            key,
            items: Vec::new(),
            entries: Vec::new(),
        };
        self.weight += NODE_WEIGHT;
        self.open.push(open);
        Ok(())
    }

    fn add_node(&mut self, node: Rc<Node>, anchor: usize) -> Result<(), ParseError> {
        self.weight += node.weight;
        if self.weight > MAX_WEIGHT {
            let help = Some("repeat less with aliases");
            return Err(ParseError { at: node.at, message: "grows too large from here on".to_owned(), help });
        }
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        // An alias adds its own levels.
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
                    NodeKind::Scalar { text, plain: true } if text == "<<" => {
                        let help = Some("write the keys out");
                        return Err(ParseError {
                            at: node.at,
                            message: "merge keys are not supported".to_owned(),
                            help,
                        });
                    }
                    NodeKind::Scalar { text, .. } => *waiting = Some((text.clone(), node.at)),
                    NodeKind::List(_) | NodeKind::Map(_) => return Err(not_a_key(node.at)),
                },
            },
        }
        Ok(())
    }
}

fn too_deep(at: Mark) -> ParseError {
    ParseError { at, message: format!("is nested more than {MAX_DEPTH} levels deep"), help: None }
}

fn not_a_key(at: Mark) -> ParseError {
    let help = Some("a key is a word; if this was meant as ${VAR}, put it in quotes");
    ParseError { at, message: "a list or a map stands where a key should".to_owned(), help }
}
