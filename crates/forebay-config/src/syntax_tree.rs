//! The syntax tree of a YAML text: which value stands where, and which keys lead to it.
//!
//! The tree is made before the text is deserialized. That catches what is no YAML at all, and what is YAML
//! but has no place in a configuration file, and lets a message name the key at a position.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use crate::quote::{escaped, printable};
use crate::{ConfigError, Position, text_kind};

/// The deepest nesting of lists and mappings. forebay's files need four levels.
const DEPTH_MAX: usize = 32;

/// The most values and keys in one file. forebay's files have some hundred.
const NODES_MAX: usize = 50_000;

/// What the tags of YAML itself begin with: `!!int` is short for this and `int`.
const YAML_TAGS: &str = "tag:yaml.org,2002:";

/// All values of a text, in the order in which they begin; the first is the whole document.
#[derive(Default)]
pub(crate) struct SyntaxTree<'a> {
    nodes: Vec<Node<'a>>,
}

/// One value.
pub(crate) struct Node<'a> {
    parent: Option<usize>,
    step: Step<'a>,
    /// Where the key stands that leads here; for what has no key, where the value begins.
    pub(crate) key_at: Position,
    /// Where the value begins.
    pub(crate) at: Position,
    /// How many values are before the first one that is neither this one nor in it.
    pub(crate) end: usize,
    /// What the value is.
    pub(crate) kind: NodeKind<'a>,
}

/// What a value is.
pub(crate) enum NodeKind<'a> {
    /// A text, and whether it has neither quotes nor a tag that makes it a text.
    Scalar {
        text: Cow<'a, str>,
        plain: bool,
    },
    List,
    Mapping,
    /// The value with this number once more.
    Alias(usize),
}

/// What leads from a list or mapping to one of its values.
enum Step<'a> {
    Document,
    /// A text, and whether it has neither quotes nor a tag that makes it a text.
    Key(Cow<'a, str>, bool),
    Item(usize),
}

impl Node<'_> {
    /// The key that leads here, and whether it has neither quotes nor a tag that makes it a text.
    pub(crate) fn key(&self) -> (&str, bool) {
        match &self.step {
            Step::Key(key, plain) => (key, *plain),
            Step::Document | Step::Item(_) => ("", false),
        }
    }
}

impl NodeKind<'_> {
    /// Whether serde calls a value of this kind `name`.
    pub(crate) fn is(&self, name: &str) -> bool {
        match self {
            Self::List => name == "sequence",
            Self::Mapping => name == "map",
            Self::Scalar { .. } => !matches!(name, "sequence" | "map"),
            Self::Alias(_) => false,
        }
    }
}

impl<'a> SyntaxTree<'a> {
    /// The tree of the `text` of the file called `file`, in which the keys `optional` may have no
    /// value.
    ///
    /// # Errors
    /// The text is not YAML, is empty, holds more than one document, a key without a value or a
    /// key that is not a word, or exceeds the bounds above.
    pub(crate) fn of(file: &str, text: &'a str, optional: &[&str]) -> Result<Self, ConfigError> {
        let (tree, open) = (Self::default(), Vec::new());
        let anchors = HashMap::new();
        let mut builder = Builder { file, optional, tree, open, anchors, documents: 0 };
        let mut parser = Parser::new_from_str(text);
        while let Some(event) = parser.next_event() {
            match event {
                Ok((event, span)) => builder.take(event, position(&span.start))?,
                Err(error) => {
                    return Err(invalid(file, text, position(error.marker()), &error.info()));
                }
            }
        }
        if builder.tree.nodes.is_empty() {
            let message = "the file is empty; expected YAML with at least one key";
            return Err(ConfigError::whole_file(file, message));
        }
        Ok(builder.tree)
    }

    /// The value with this number.
    pub(crate) fn node(&self, index: usize) -> Option<&Node<'a>> {
        self.nodes.get(index)
    }

    /// The value that `node` stands for, where that is an alias.
    pub(crate) fn resolved<'t>(&'t self, node: &'t Node<'a>) -> &'t Node<'a> {
        match node.kind {
            NodeKind::Alias(target) => self.node(target).unwrap_or(node),
            _ => node,
        }
    }

    /// The value that begins at `at`.
    pub(crate) fn value_at(&self, at: Position) -> Option<&Node<'a>> {
        self.nodes.iter().find(|node| node.at == at)
    }

    /// The value whose key stands at `at`.
    pub(crate) fn keyed_at(&self, at: Position) -> Option<&Node<'a>> {
        self.nodes.iter().rfind(|node| node.key_at == at)
    }

    /// Whether the whole document begins at `at`.
    pub(crate) fn begins_at(&self, at: Position) -> bool {
        self.nodes.first().is_some_and(|document| document.at == at)
    }

    /// Whether there is a value that the keys of `path` lead to: `disks`, or `[0].type`.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.nodes.iter().any(|node| self.path(node).is_some_and(|found| found == path))
    }

    /// Whether a key at the top has a mapping with this key in it.
    pub(crate) fn has_second(&self, second: &str) -> bool {
        self.nodes.iter().any(|node| match self.steps(node).as_slice() {
            [first, last] => first != "[]" && last == second,
            _ => false,
        })
    }

    /// The keys that lead to `node`, and a `[]` for each list.
    pub(crate) fn steps(&self, node: &Node<'a>) -> Vec<Cow<'a, str>> {
        let mut steps = Vec::new();
        let mut node = Some(node);
        while let Some(Node { parent, step, .. }) = node {
            match step {
                Step::Document => {}
                Step::Item(_) => steps.push(Cow::Borrowed("[]")),
                Step::Key(key, _) => steps.push(key.clone()),
            }
            node = parent.and_then(|index| self.nodes.get(index));
        }
        steps.reverse();
        steps
    }

    /// The list or mapping that `node` stands in.
    pub(crate) fn parent(&self, node: &Node<'a>) -> Option<&Node<'a>> {
        self.nodes.get(node.parent?)
    }

    /// The keys that lead to `node`, such as `disks[0].read_iops`; `None` for the document.
    pub(crate) fn path(&self, node: &Node<'a>) -> Option<String> {
        let mut steps = Vec::new();
        let mut node = Some(node);
        while let Some(Node { parent, step, .. }) = node {
            steps.push(step);
            node = parent.and_then(|index| self.nodes.get(index));
        }
        let mut path = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Document => {}
                Step::Item(index) => path.push_str(&format!("[{index}]")),
                Step::Key(key, _) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&printable(key));
                }
            }
        }
        (!path.is_empty()).then_some(path)
    }
}

/// A tree while its text is being read.
struct Builder<'f, 'a> {
    file: &'f str,
    /// The keys that may have no value.
    optional: &'f [&'f str],
    tree: SyntaxTree<'a>,
    /// The lists and mappings that have begun and not ended, outermost first.
    open: Vec<Container<'a>>,
    /// The values that aliases may stand for.
    anchors: HashMap<usize, usize>,
    documents: usize,
}

/// A list or mapping that has begun.
struct Container<'a> {
    node: usize,
    next: Next<'a>,
}

/// What comes next in a list or mapping.
enum Next<'a> {
    Item(usize),
    Key,
    /// The value of this key, which stands at this position, with or without quotes and tag.
    Value(Cow<'a, str>, Position, bool),
}

impl<'a> Builder<'_, 'a> {
    fn take(&mut self, event: Event<'a>, at: Position) -> Result<(), ConfigError> {
        match event {
            Event::DocumentStart(..) => self.documents += 1,
            Event::SequenceStart(_, anchor, _) => {
                self.open(at, anchor, NodeKind::List, Next::Item(0))?;
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(at, anchor, NodeKind::Mapping, Next::Key)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let end = self.tree.nodes.len();
                let closed = self.open.pop();
                if let Some(node) = closed.and_then(|list| self.tree.nodes.get_mut(list.node)) {
                    node.end = end;
                }
            }
            Event::Alias(anchor) => {
                let Some(&target) = self.anchors.get(&anchor) else {
                    let message = "an alias of a key; write the key out";
                    return Err(ConfigError::at(self.file, at, None, message));
                };
                self.push(at, 0, NodeKind::Alias(target))?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_deref().map(type_of).unwrap_or_default();
                if tag == "binary" {
                    let message = "found text in base64 (`!!binary`); write the text itself";
                    return Err(ConfigError::at(self.file, at, None, message));
                }
                let plain = tag != "str" && style == ScalarStyle::Plain;
                match self.open.last_mut() {
                    Some(Container { next: next @ Next::Key, .. }) => {
                        *next = Next::Value(text, at, plain);
                    }
                    _ => self.scalar(at, anchor, text, plain)?,
                }
            }
            _ => {}
        }
        if self.documents > 1 {
            let message = "a second document begins here; expected one; remove it and the `---`";
            return Err(ConfigError::at(self.file, at, None, message));
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        at: Position,
        anchor: usize,
        text: Cow<'a, str>,
        plain: bool,
    ) -> Result<(), ConfigError> {
        let null = plain && is_null(&text);
        if null && self.open.is_empty() {
            return Ok(());
        }
        let grouped = plain && is_grouped(&text);
        let index = self.push(at, anchor, NodeKind::Scalar { text, plain })?;
        if let (true, Some(node)) = (grouped, self.tree.nodes.get(index)) {
            let NodeKind::Scalar { text, .. } = &node.kind else { return Ok(()) };
            let (found, number) = (printable(text), printable(&text.replace('_', "")));
            let message = format!("found `{found}`; write {number}, or quotes around a name");
            return Err(ConfigError::at(self.file, at, self.tree.path(node), message));
        }
        match self.tree.nodes.get(index) {
            Some(node) if null && !self.optional.contains(&node.key().0) => {
                let message = "there is no value (`~` and `null` mean none); write one, or remove \
                               the key";
                Err(ConfigError::at(self.file, node.key_at, self.tree.path(node), message))
            }
            _ => Ok(()),
        }
    }

    fn open(
        &mut self,
        at: Position,
        anchor: usize,
        kind: NodeKind<'a>,
        next: Next<'a>,
    ) -> Result<(), ConfigError> {
        let node = self.push(at, anchor, kind)?;
        self.open.push(Container { node, next });
        if self.open.len() > DEPTH_MAX {
            return Err(ConfigError::at(self.file, at, None, too_deep()));
        }
        Ok(())
    }

    /// Adds the value that begins at `at` to the innermost open list or mapping. `anchor` is what
    /// its aliases call it, or 0.
    fn push(
        &mut self,
        at: Position,
        anchor: usize,
        kind: NodeKind<'a>,
    ) -> Result<usize, ConfigError> {
        let index = self.tree.nodes.len();
        if index == NODES_MAX {
            let message = format!("more than {NODES_MAX} values; is this the right file?");
            return Err(ConfigError::whole_file(self.file, message));
        }
        let (step, end) = (Step::Document, index + 1);
        let mut node = Node { parent: None, step, key_at: at, at, end, kind };
        if let Some(container) = self.open.last_mut() {
            node.parent = Some(container.node);
            match &mut container.next {
                Next::Item(index) => {
                    node.step = Step::Item(*index);
                    *index += 1;
                }
                next => {
                    let Next::Value(key, key_at, plain) = std::mem::replace(next, Next::Key) else {
                        let message = "a key that is no word; write `KEY: VALUE`";
                        return Err(ConfigError::at(self.file, at, None, message));
                    };
                    node.step = Step::Key(key, plain);
                    node.key_at = key_at;
                }
            }
        }
        self.tree.nodes.push(node);
        if anchor > 0 {
            self.anchors.insert(anchor, index);
        }
        Ok(index)
    }
}

/// The type that a tag names: `str` for one that is not of YAML itself.
fn type_of(tag: &Tag) -> Cow<'_, str> {
    tag.suffix_in_namespace(YAML_TAGS).unwrap_or(Cow::Borrowed("str"))
}

/// Whether a plain scalar stands for "nothing".
pub(crate) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Whether a plain scalar is a number for some programs, and a text for others.
fn is_grouped(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_group = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits.contains('_') && digits.split('_').all(|group| !group.is_empty() && is_group(group))
}

fn too_deep() -> String {
    format!("nested deeper than {DEPTH_MAX} levels; is this the right file?")
}

/// The error of a text that the parser refuses at this position.
fn invalid(file: &str, text: &str, at: Position, info: &str) -> ConfigError {
    if let Some(kind) = text_kind::of(text) {
        return ConfigError::at(file, at, None, kind);
    }
    // The parser notices a tab at the end of what stands before it.
    let first = usize::try_from(at.line.saturating_sub(1)).unwrap_or(0);
    let lines = || text.lines().enumerate().skip(first).take(2);
    let is_indented = |line: &str| {
        let content = line.trim_start();
        !content.is_empty() && line[..line.len() - content.len()].contains('\t')
    };
    if let Some((index, _)) = lines().find(|(_, line)| is_indented(line)) {
        let at = Position { line: index as u64 + 1, column: 1 };
        let message = "the line is indented by a tab, which YAML does not allow; use spaces";
        return ConfigError::at(file, at, None, message);
    }
    // Such a blank counts as a letter, and the parser notices that in the line behind it.
    let blank = text.lines().take(first + 1).enumerate().find_map(|(index, line)| {
        let indent = line.chars().take_while(|c| c.is_whitespace()).enumerate();
        let (column, blank) = indent.into_iter().find(|(_, c)| !c.is_ascii())?;
        Some((Position { line: index as u64 + 1, column: column as u64 + 1 }, blank))
    });
    if let Some((at, blank)) = blank {
        let code = u32::from(blank);
        let message = format!(
            "the line is indented by a blank that is no space (U+{code:04X}); use plain spaces"
        );
        return ConfigError::at(file, at, None, message);
    }
    // the parser has a bound of its own, which text before the bound of this crate can exceed
    if info.starts_with("recursion limit") {
        return ConfigError::at(file, at, None, too_deep());
    }
    let message = format!(
        "not valid YAML: {}; check the quotes, the brackets and the indentation (spaces, no tabs)",
        escaped(info)
    );
    ConfigError::at(file, at, None, message)
}

/// The parser counts columns from 0.
fn position(marker: &Marker) -> Position {
    Position { line: marker.line() as u64, column: marker.col() as u64 + 1 }
}
