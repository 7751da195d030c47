//! Owns: templates from words: blocks, definitions, pipelines, as Go's `text/template/parse` takes them.
//! Never: recurses deeper than [`MAX_PARSE_DEPTH`].

use std::sync::Arc;

use super::{
    functions,
    lex::{Kind, Lexer, Token},
    limits::MAX_PARSE_DEPTH,
    literal,
    node::{Choice, Command, Node, Operand, Pipe, ROOT, Range, Set, Term, is_blank},
    quote::unquote,
};

/// A problem and its position in bytes.
pub(crate) type Problem = (usize, String);
type Parsed<T> = Result<T, Problem>;

/// Parses a text and the templates that it defines.
pub(crate) fn parse(source: &str) -> Parsed<(Set, Vec<String>)> {
    let mut parser = Parser {
        lexer: Lexer::new(source),
        ahead: Vec::new(),
        at: 0,
        set: Set::new(),
        scope: Scope::default(),
        depth: 0,
        functions: Vec::new(),
    };
    parser.text()?;
    Ok((parser.set, parser.functions))
}

/// The names known at a word.
#[derive(Debug, Clone)]
struct Scope {
    variables: Vec<String>,
    ranges: usize,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            variables: vec!["$".to_owned()],
            ranges: 0,
        }
    }
}

/// The end of a list of nodes.
enum Ending {
    End,
    Else,
    ElseIf,
    ElseWith,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// Tokens that were given back, the next one last.
    ahead: Vec<Token<'a>>,
    at: usize,
    set: Set,
    scope: Scope,
    depth: usize,
    functions: Vec<String>,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Token<'a> {
        let token = self.ahead.pop().unwrap_or_else(|| self.lexer.next());
        self.at = token.at;
        token
    }

    fn back(&mut self, token: Token<'a>) {
        self.ahead.push(token);
    }

    fn peek(&mut self) -> Token<'a> {
        let token = self.next();
        self.back(token.clone());
        token
    }

    fn next_word(&mut self) -> Token<'a> {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_word(&mut self) -> Token<'a> {
        let token = self.next_word();
        self.back(token.clone());
        token
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err((self.at, message.into()))
    }

    fn unexpected<T>(&self, token: &Token<'_>, context: &str) -> Parsed<T> {
        match token.kind {
            Kind::Error => Err((token.at, token.text.to_string())),
            Kind::End => Err((token.at, format!("unexpected EOF in {context}"))),
            Kind::Keyword | Kind::Nil | Kind::Dot => {
                Err((token.at, format!("unexpected <{}> in {context}", token.text)))
            }
            _ => {
                let text: String = token.text.chars().take(10).collect();
                let more = if text.len() < token.text.len() { "..." } else { "" };
                Err((token.at, format!("unexpected {text:?}{more} in {context}")))
            }
        }
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parsed<Token<'a>> {
        let token = self.next_word();
        if token.kind != kind {
            return self.unexpected(&token, context);
        }
        Ok(token)
    }

    fn deeper(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_PARSE_DEPTH {
            return self.fail(format!("is nested deeper than {MAX_PARSE_DEPTH} levels"));
        }
        Ok(())
    }

    fn text(&mut self) -> Parsed<()> {
        let mut root = Vec::new();
        while self.peek().kind != Kind::End {
            let token = self.next();
            if token.kind == Kind::LeftDelim {
                let word = self.next_word();
                if word.is("define") {
                    self.define()?;
                    continue;
                }
                self.back(word);
            }
            self.back(token);
            match self.node()? {
                Ok(node) => root.push(node),
                Err(Ending::End) => return self.fail("unexpected {{end}}"),
                Err(_) => return self.fail("unexpected {{else}}"),
            }
        }
        self.add(ROOT.to_vec(), root)
    }

    fn define(&mut self) -> Parsed<()> {
        let name = self.template_name("define clause")?;
        self.expect(Kind::RightDelim, "define clause")?;
        self.definition(name, "define clause")
    }

    fn definition(&mut self, name: Vec<u8>, context: &str) -> Parsed<()> {
        let outer = std::mem::take(&mut self.scope);
        let (body, ending) = self.list()?;
        if !matches!(ending, Ending::End) {
            return self.fail(format!("unexpected {{{{else}}}} in {context}"));
        }
        self.scope = outer;
        self.add(name, body)
    }

    fn add(&mut self, name: Vec<u8>, body: Vec<Node>) -> Parsed<()> {
        let blank = self.set.get(&name).is_none_or(|old| is_blank(old));
        if blank {
            self.set.insert(name, Arc::new(body));
            return Ok(());
        }
        if is_blank(&body) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(&name).into_owned();
        self.fail(format!("multiple definition of template {name:?}"))
    }

    /// Nodes up to `end` or `else`.
    fn list(&mut self) -> Parsed<(Vec<Node>, Ending)> {
        self.deeper()?;
        let mut nodes = Vec::new();
        while self.peek_word().kind != Kind::End {
            match self.node()? {
                Ok(node) => nodes.push(node),
                Err(ending) => {
                    self.depth -= 1;
                    return Ok((nodes, ending));
                }
            }
        }
        self.fail("unexpected EOF")
    }

    fn node(&mut self) -> Parsed<Result<Node, Ending>> {
        let token = self.next_word();
        match token.kind {
            Kind::Text => Ok(Ok(Node::Text(Arc::from(token.text.as_bytes())))),
            Kind::LeftDelim => self.action(),
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Result<Node, Ending>> {
        let token = self.next_word();
        if token.kind != Kind::Keyword {
            self.back(token);
            return Ok(Ok(Node::Action(self.pipeline("command", Kind::RightDelim)?)));
        }
        let node = match &*token.text {
            "block" => self.block()?,
            "template" => self.call()?,
            "if" => self.choice(false)?,
            "with" => self.choice(true)?,
            "range" => self.range()?,
            "break" => self.leave("{{break}}", Node::Break)?,
            "continue" => self.leave("{{continue}}", Node::Continue)?,
            "end" => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Err(Ending::End));
            }
            "else" => return self.otherwise().map(Err),
            _ => return self.unexpected(&token, "command"),
        };
        Ok(Ok(node))
    }

    fn leave(&mut self, word: &str, node: Node) -> Parsed<Node> {
        self.expect(Kind::RightDelim, word)?;
        if self.scope.ranges == 0 {
            return self.fail(format!("{word} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    fn otherwise(&mut self) -> Parsed<Ending> {
        let token = self.peek_word();
        if token.is("if") {
            return Ok(Ending::ElseIf);
        }
        if token.is("with") {
            return Ok(Ending::ElseWith);
        }
        self.expect(Kind::RightDelim, "else")?;
        Ok(Ending::Else)
    }

    fn choice(&mut self, with: bool) -> Parsed<Node> {
        let known = self.scope.variables.len();
        let context = if with { "with" } else { "if" };
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let pipe = self.pipeline(context, Kind::RightDelim)?;
            let (body, ending) = self.list()?;
            arms.push((pipe, body));
            match ending {
                Ending::End => break,
                Ending::ElseIf if !with => drop(self.next_word()),
                Ending::ElseWith if with => drop(self.next_word()),
                Ending::ElseIf | Ending::ElseWith => {
                    // Upstream continues with the keyword as the first word of the else branch.
                    let token = self.next_word();
                    return self.unexpected(&token, "input");
                }
                Ending::Else => {
                    otherwise = self.last_list()?;
                    break;
                }
            }
        }
        self.scope.variables.truncate(known);
        Ok(Node::Choice(Choice {
            with,
            arms,
            otherwise,
        }))
    }

    fn last_list(&mut self) -> Parsed<Vec<Node>> {
        let (nodes, ending) = self.list()?;
        if !matches!(ending, Ending::End) {
            return self.fail("expected end; found {{else}}");
        }
        Ok(nodes)
    }

    fn range(&mut self) -> Parsed<Node> {
        let known = self.scope.variables.len();
        let pipe = self.pipeline("range", Kind::RightDelim)?;
        self.scope.ranges += 1;
        let (body, ending) = self.list()?;
        self.scope.ranges -= 1;
        let otherwise = match ending {
            Ending::End => Vec::new(),
            Ending::Else => self.last_list()?,
            Ending::ElseIf | Ending::ElseWith => {
                let token = self.next_word();
                return self.unexpected(&token, "input");
            }
        };
        self.scope.variables.truncate(known);
        Ok(Node::Range(Range {
            pipe,
            body,
            otherwise,
        }))
    }

    fn template_name(&mut self, context: &str) -> Parsed<Vec<u8>> {
        let token = self.next_word();
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(&token, context);
        }
        unquote(&token.text).ok_or_else(|| (token.at, "invalid syntax".to_owned()))
    }

    fn block(&mut self) -> Parsed<Node> {
        let name = self.template_name("block clause")?;
        let at = self.at;
        let pipe = self.pipeline("block clause", Kind::RightDelim)?;
        self.definition(name.clone(), "block clause")?;
        Ok(Node::Call {
            at,
            name,
            pipe: Some(pipe),
        })
    }

    fn call(&mut self) -> Parsed<Node> {
        let name = self.template_name("template clause")?;
        let at = self.at;
        let token = self.next_word();
        let mut pipe = None;
        if token.kind != Kind::RightDelim {
            self.back(token);
            pipe = Some(self.pipeline("template clause", Kind::RightDelim)?);
        }
        Ok(Node::Call { at, name, pipe })
    }

    fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Pipe> {
        let at = self.peek_word().at;
        let (variables, assigns) = self.declarations(context)?;
        let mut commands = Vec::new();
        loop {
            let token = self.next_word();
            if token.kind == end {
                break;
            }
            match token.kind {
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.back(token);
                    commands.push(self.command()?);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        if commands.is_empty() {
            return self.fail(format!("missing value for {context}"));
        }
        for (stage, command) in commands.iter().enumerate().skip(1) {
            if let Operand::Bool(_) | Operand::Dot | Operand::Nil | Operand::Number(_) | Operand::Text(_) =
                command.terms[0].operand
            {
                return self.fail(format!("non executable command in pipeline stage {}", stage + 1));
            }
        }
        Ok(Pipe {
            at,
            variables,
            assigns,
            commands,
        })
    }

    fn declarations(&mut self, context: &str) -> Parsed<(Vec<String>, bool)> {
        let mut variables = Vec::new();
        loop {
            let variable = self.peek_word();
            if variable.kind != Kind::Variable {
                return Ok((variables, false));
            }
            self.next_word();
            let after = self.peek();
            let next = self.peek_word();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    self.next_word();
                    variables.push(variable.text.to_string());
                    self.scope.variables.push(variable.text.to_string());
                    return Ok((variables, next.kind == Kind::Assign));
                }
                Kind::Char if next.text == "," => {
                    self.next_word();
                    variables.push(variable.text.to_string());
                    self.scope.variables.push(variable.text.to_string());
                    if context != "range" || variables.len() >= 2 {
                        return self.fail(format!("too many declarations in {context}"));
                    }
                    let follows = self.peek_word().kind;
                    if !matches!(follows, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                        return self.fail("range can only initialize variables");
                    }
                }
                _ => {
                    // `peek_word` has dropped the space behind the variable, which separates arguments.
                    if after.kind == Kind::Space {
                        self.back(after);
                    }
                    self.back(variable);
                    return Ok((variables, false));
                }
            }
        }
    }

    fn command(&mut self) -> Parsed<Command> {
        let mut terms = Vec::new();
        loop {
            self.peek_word();
            if let Some(term) = self.operand()? {
                terms.push(term);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => continue,
                Kind::RightDelim | Kind::RightParen => self.back(token),
                Kind::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        if terms.is_empty() {
            return self.fail("empty command");
        }
        Ok(Command { terms })
    }

    fn operand(&mut self) -> Parsed<Option<Term>> {
        let Some(term) = self.term()? else {
            return Ok(None);
        };
        let mut fields = Vec::new();
        while self.peek().kind == Kind::Field {
            fields.push(self.next().text[1..].to_owned());
        }
        if fields.is_empty() {
            return Ok(Some(term));
        }
        let at = term.at;
        let operand = match term.operand {
            Operand::Field(mut names) => {
                names.append(&mut fields);
                Operand::Field(names)
            }
            Operand::Variable(name, mut names) => {
                names.append(&mut fields);
                Operand::Variable(name, names)
            }
            Operand::Bool(_) | Operand::Text(_) | Operand::Number(_) | Operand::Nil | Operand::Dot => {
                return self.fail("unexpected . after term");
            }
            _ => Operand::Chain(Box::new(term), fields),
        };
        Ok(Some(Term { at, operand }))
    }

    fn term(&mut self) -> Parsed<Option<Term>> {
        let token = self.next_word();
        let at = token.at;
        let literal = |result: Result<_, String>| match result {
            Ok(number) => Ok(Operand::Number(number)),
            Err(message) => Err((at, message)),
        };
        let operand = match token.kind {
            Kind::Identifier => self.function(&token)?,
            Kind::Dot => Operand::Dot,
            Kind::Nil => Operand::Nil,
            Kind::Variable => self.variable(&token)?,
            Kind::Field => Operand::Field(vec![token.text[1..].to_owned()]),
            Kind::Bool => Operand::Bool(token.text == "true"),
            Kind::CharConstant => literal(literal::character(&token.text))?,
            Kind::Complex => literal(literal::complex(&token.text))?,
            Kind::Number => literal(literal::number(&token.text))?,
            Kind::LeftParen => {
                self.deeper()?;
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
                self.depth -= 1;
                Operand::Pipe(Box::new(pipe))
            }
            Kind::String | Kind::RawString => match unquote(&token.text) {
                Some(text) => Operand::Text(Arc::from(text)),
                None => return Err((at, "invalid syntax".to_owned())),
            },
            _ => {
                self.back(token);
                return Ok(None);
            }
        };
        Ok(Some(Term { at, operand }))
    }

    fn function(&mut self, token: &Token<'_>) -> Parsed<Operand> {
        let name = token.text.to_string();
        if !functions::exists(&name) {
            let why = functions::why_not(&name);
            return Err((token.at, format!("function {name:?} not defined{why}")));
        }
        if !self.functions.contains(&name) {
            self.functions.push(name.clone());
        }
        Ok(Operand::Function(name))
    }

    fn variable(&mut self, token: &Token<'_>) -> Parsed<Operand> {
        let name = token.text.to_string();
        if !self.scope.variables.contains(&name) {
            return Err((token.at, format!("undefined variable {name:?}")));
        }
        Ok(Operand::Variable(name, Vec::new()))
    }
}
