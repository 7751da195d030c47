//! Owns: the tree of a YAML document from its tokens.
//! Never: nests deeper than the scanner lets it, and one level more for each `? key`.

use std::{collections::BTreeMap, rc::Rc};

use super::{
    super::limits::MAX_NESTING,
    scan::{Scanner, Token},
    tags::Directive,
};

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    /// The tag, whole; empty if there is none.
    pub(super) tag: String,
    /// The node's kind.
    pub(super) kind: Kind,
}

/// The kind of a node.
#[derive(Debug)]
pub(super) enum Kind {
    /// Text, and whether its type follows from it.
    Scalar(String, bool),
    /// A sequence.
    Sequence(Vec<Rc<Node>>),
    /// Keys and values in order.
    Mapping(Vec<(Rc<Node>, Rc<Node>)>),
    /// Another node.
    Alias(Rc<Node>),
}

/// The first document of a text, if there is one.
pub(super) fn parse(text: &str) -> Result<Option<Rc<Node>>, String> {
    let mut parser = Parser {
        scanner: Scanner::new(text)?,
        anchors: BTreeMap::new(),
        handles: BTreeMap::new(),
        depth: 0,
    };
    parser.document()
}

struct Parser {
    scanner: Scanner,
    anchors: BTreeMap<String, Rc<Node>>,
    handles: BTreeMap<String, String>,
    depth: usize,
}

type Parsed = Result<Rc<Node>, String>;

fn empty() -> Rc<Node> {
    Rc::new(Node {
        tag: String::new(),
        kind: Kind::Scalar(String::new(), true),
    })
}

impl Parser {
    fn document(&mut self) -> Result<Option<Rc<Node>>, String> {
        match self.scanner.peek()? {
            Token::StreamEnd => return Ok(None),
            Token::Directive(_) | Token::DocumentStart => {
                self.directives()?;
                if *self.scanner.peek()? != Token::DocumentStart {
                    return self.scanner.error("did not find expected <document start>");
                }
                self.scanner.next()?;
            }
            _ => {
                self.directives()?;
                let root = self.node(true, false)?;
                self.scanner.peek()?;
                return Ok(Some(root));
            }
        }
        let root = match self.scanner.peek()? {
            Token::Directive(_) | Token::DocumentStart | Token::DocumentEnd | Token::StreamEnd => empty(),
            _ => self.node(true, false)?,
        };
        self.scanner.peek()?;
        Ok(Some(root))
    }

    fn directives(&mut self) -> Result<(), String> {
        let mut version = false;
        while let Token::Directive(directive) = self.scanner.peek()?.clone() {
            match directive {
                Directive::Version(_) if version => {
                    return self.scanner.error("found duplicate %YAML directive");
                }
                Directive::Version(false) => return self.scanner.error("found incompatible YAML document"),
                Directive::Version(true) => version = true,
                Directive::Tag(handle, prefix) => {
                    if self.handles.insert(handle, prefix).is_some() {
                        return self.scanner.error("found duplicate %TAG directive");
                    }
                }
            }
            self.scanner.next()?;
        }
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            self.handles.entry(handle.to_owned()).or_insert(prefix.to_owned());
        }
        Ok(())
    }

    fn node(&mut self, block: bool, indentless: bool) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return self
                .scanner
                .error(&format!("exceeded max depth of {MAX_NESTING}"));
        }
        let node = self.content(block, indentless)?;
        self.depth -= 1;
        Ok(node)
    }

    fn content(&mut self, block: bool, indentless: bool) -> Parsed {
        if let Token::Alias(name) = self.scanner.peek()?.clone() {
            self.scanner.next()?;
            let Some(target) = self.anchors.get(&name).cloned() else {
                return Err(format!("unknown anchor '{name}' referenced"));
            };
            return Ok(Rc::new(Node {
                tag: String::new(),
                kind: Kind::Alias(target),
            }));
        }
        let (anchor, tag) = self.properties()?;
        let kind = match self.scanner.peek()? {
            Token::BlockEntry if indentless => self.indentless()?,
            Token::Scalar(..) => match self.scanner.next()? {
                Token::Scalar(text, plain) => Kind::Scalar(text, tag.is_empty() && plain || tag == "!"),
                _ => Kind::Scalar(String::new(), true),
            },
            Token::FlowSequence => self.flow_sequence()?,
            Token::FlowMapping => self.flow_mapping()?,
            Token::BlockSequence if block => self.block_sequence()?,
            Token::BlockMapping if block => self.block_mapping()?,
            _ if anchor.is_some() || !tag.is_empty() => Kind::Scalar(String::new(), tag.is_empty()),
            _ => return self.scanner.error("did not find expected node content"),
        };
        let node = Rc::new(Node { tag, kind });
        if let Some(name) = anchor {
            self.anchors.insert(name, Rc::clone(&node));
        }
        Ok(node)
    }

    /// Anchor and tag, in either order.
    fn properties(&mut self) -> Result<(Option<String>, String), String> {
        let (mut anchor, mut tag) = (None, None);
        loop {
            match self.scanner.peek()?.clone() {
                Token::Anchor(name) if anchor.is_none() => anchor = Some(name),
                Token::Tag(handle, suffix) if tag.is_none() => tag = Some(self.tag(&handle, suffix)?),
                _ => return Ok((anchor, tag.unwrap_or_default())),
            }
            self.scanner.next()?;
        }
    }

    fn tag(&self, handle: &str, suffix: String) -> Result<String, String> {
        if handle.is_empty() {
            return Ok(suffix);
        }
        match self.handles.get(handle) {
            Some(prefix) => Ok(format!("{prefix}{suffix}")),
            None => self.scanner.error("found undefined tag handle"),
        }
    }

    fn block_sequence(&mut self) -> Result<Kind, String> {
        self.scanner.next()?;
        let mut items = Vec::new();
        loop {
            match self.scanner.next()? {
                Token::BlockEntry => {}
                Token::BlockEnd => return Ok(Kind::Sequence(items)),
                _ => return self.scanner.error("did not find expected '-' indicator"),
            }
            items.push(match self.scanner.peek()? {
                Token::BlockEntry | Token::BlockEnd => empty(),
                _ => self.node(true, false)?,
            });
        }
    }

    fn indentless(&mut self) -> Result<Kind, String> {
        let mut items = Vec::new();
        while *self.scanner.peek()? == Token::BlockEntry {
            self.scanner.next()?;
            items.push(match self.scanner.peek()? {
                Token::BlockEntry | Token::Key | Token::Value | Token::BlockEnd => empty(),
                _ => self.node(true, false)?,
            });
        }
        Ok(Kind::Sequence(items))
    }

    fn block_mapping(&mut self) -> Result<Kind, String> {
        self.scanner.next()?;
        let mut entries = Vec::new();
        loop {
            match self.scanner.next()? {
                Token::Key => {}
                Token::BlockEnd => return Ok(Kind::Mapping(entries)),
                _ => return self.scanner.error("did not find expected key"),
            }
            let key = self.block_part()?;
            let mut value = empty();
            if *self.scanner.peek()? == Token::Value {
                self.scanner.next()?;
                value = self.block_part()?;
            }
            entries.push((key, value));
        }
    }

    fn block_part(&mut self) -> Parsed {
        match self.scanner.peek()? {
            Token::Key | Token::Value | Token::BlockEnd => Ok(empty()),
            _ => self.node(true, true),
        }
    }

    fn flow_sequence(&mut self) -> Result<Kind, String> {
        self.scanner.next()?;
        let mut items = Vec::new();
        let mut first = true;
        while *self.scanner.peek()? != Token::FlowSequenceEnd {
            if !first && self.scanner.next()? != Token::FlowEntry {
                return self.scanner.error("did not find expected ',' or ']'");
            }
            first = false;
            match self.scanner.peek()? {
                Token::Key => items.push(self.flow_pair()?),
                Token::FlowSequenceEnd => break,
                _ => items.push(self.node(false, false)?),
            }
        }
        self.scanner.next()?;
        Ok(Kind::Sequence(items))
    }

    /// One key and its value in a sequence: a mapping.
    fn flow_pair(&mut self) -> Parsed {
        self.scanner.next()?;
        let key = match self.scanner.peek()? {
            Token::Value | Token::FlowEntry | Token::FlowSequenceEnd => {
                // Upstream drops the token here: what follows is read as the value.
                self.scanner.next()?;
                empty()
            }
            _ => self.node(false, false)?,
        };
        let mut value = empty();
        if *self.scanner.peek()? == Token::Value {
            self.scanner.next()?;
            if !matches!(self.scanner.peek()?, Token::FlowEntry | Token::FlowSequenceEnd) {
                value = self.node(false, false)?;
            }
        }
        Ok(Rc::new(Node {
            tag: String::new(),
            kind: Kind::Mapping(vec![(key, value)]),
        }))
    }

    fn flow_mapping(&mut self) -> Result<Kind, String> {
        self.scanner.next()?;
        let mut entries = Vec::new();
        let mut first = true;
        while *self.scanner.peek()? != Token::FlowMappingEnd {
            if !first && self.scanner.next()? != Token::FlowEntry {
                return self.scanner.error("did not find expected ',' or '}'");
            }
            first = false;
            match self.scanner.peek()? {
                Token::FlowMappingEnd => break,
                Token::Key => {
                    self.scanner.next()?;
                    let key = self.flow_part()?;
                    let mut value = empty();
                    if *self.scanner.peek()? == Token::Value {
                        self.scanner.next()?;
                        if !matches!(self.scanner.peek()?, Token::FlowEntry | Token::FlowMappingEnd) {
                            value = self.node(false, false)?;
                        }
                    }
                    entries.push((key, value));
                }
                _ => entries.push((self.node(false, false)?, empty())),
            }
        }
        self.scanner.next()?;
        Ok(Kind::Mapping(entries))
    }

    fn flow_part(&mut self) -> Parsed {
        match self.scanner.peek()? {
            Token::Value | Token::FlowEntry | Token::FlowMappingEnd => Ok(empty()),
            _ => self.node(false, false),
        }
    }
}
