//! Owns: which words of a Corefile make its server blocks, and their directives.
//! Never: knows a directive, but for `import`, which is written where blocks are.

use super::{refusal::Refusal, words::Word};

/// A block with names and braces: a server block or, as `(name)`, a snippet. An `import` between blocks is one without
/// names.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// The line that it begins in.
    pub(super) line: usize,
    /// Offset of its first word.
    pub(super) start: usize,
    /// Its names, without commas.
    pub(super) names: Vec<&'a str>,
    /// Its directives.
    pub(super) directives: Vec<Directive<'a>>,
}

impl Block<'_> {
    /// True for a part that server blocks import by its name.
    pub(super) fn is_snippet(&self) -> bool {
        matches!(self.names.as_slice(), [name] if name.starts_with('(') && name.ends_with(')'))
    }
}

/// A directive with its arguments, and with its braces if it has some.
#[derive(Debug, Clone, Copy)]
pub(super) struct Directive<'a> {
    /// Its name.
    pub(super) name: Word<'a>,
    /// All that follows it, braces and what is in them too.
    pub(super) rest: &'a [Word<'a>],
    /// True if it is the first word of its line.
    pub(super) begins_line: bool,
}

/// The blocks of a Corefile, in order.
pub(super) fn blocks<'a>(words: &'a [Word<'a>]) -> Result<Vec<Block<'a>>, Refusal> {
    let mut reader = Reader { words, at: 0 };
    let mut blocks = Vec::new();
    while let Some(first) = reader.next() {
        blocks.push(if first.text == "import" {
            Block {
                line: first.line,
                start: first.start,
                names: Vec::new(),
                directives: vec![reader.directive()?],
            }
        } else {
            reader.block(first)?
        });
    }
    Ok(blocks)
}

/// Reads on from a word.
struct Reader<'a> {
    words: &'a [Word<'a>],
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&self) -> Option<Word<'a>> {
        self.words.get(self.at).copied()
    }

    /// True if the word here is the first of its line.
    fn begins_line(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.words.get(at));
        match (before, self.next()) {
            (Some(before), Some(word)) => word.begins_line_after(before),
            _ => true,
        }
    }

    fn block(&mut self, first: Word<'a>) -> Result<Block<'a>, Refusal> {
        let line = first.line;
        let names = self.names(line)?;
        if self.next().is_none_or(|word| word.text != "{") {
            return Err(Refusal::BlockWithoutBraces { line });
        }
        self.at += 1;
        let mut directives = Vec::new();
        loop {
            match self.next() {
                None => return Err(Refusal::OpenBrace { line }),
                Some(word) if word.text == "}" => break,
                Some(_) => directives.push(self.directive()?),
            }
        }
        self.at += 1;
        Ok(Block {
            line,
            start: first.start,
            names,
            directives,
        })
    }

    /// The names before a block's brace: those of one line, and of the next after a comma.
    fn names(&mut self, line: usize) -> Result<Vec<&'a str>, Refusal> {
        let mut names = Vec::new();
        let mut more = true;
        while let Some(word) = self.next() {
            if word.text == "{" || (self.begins_line() && !more) {
                break;
            }
            if word.text == "}" {
                return Err(Refusal::StrayBrace { line: word.line });
            }
            more = word.text.ends_with(',');
            names.push(word.text.trim_end_matches(','));
            self.at += 1;
        }
        if names.is_empty() {
            return Err(Refusal::BlockWithoutBraces { line });
        }
        Ok(names)
    }

    /// The directive that begins here: to the end of its line, or to that of its braces.
    fn directive(&mut self) -> Result<Directive<'a>, Refusal> {
        let begins_line = self.begins_line();
        let name = self.words[self.at];
        self.at += 1;
        let begin = self.at;
        let mut depth = 0_usize;
        while let Some(word) = self.next() {
            match word.text {
                "{" => depth += 1,
                _ if depth == 0 && self.begins_line() => break,
                "}" if depth == 0 => return Err(Refusal::StrayBrace { line: word.line }),
                "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        if depth > 0 {
            return Err(Refusal::OpenBrace { line: name.line });
        }
        Ok(Directive {
            name,
            rest: &self.words[begin..self.at],
            begins_line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::words::words, *};

    /// Each block as `names: directives`, a directive as its words.
    fn read(text: &str) -> Result<Vec<String>, Refusal> {
        let words = words(text)?;
        let blocks = blocks(&words)?;
        let said = blocks.iter().map(|block| {
            let directives = block.directives.iter().map(|directive| {
                let rest = directive.rest.iter().map(|word| format!(" {}", word.text));
                format!("{}{}", directive.name.text, rest.collect::<String>())
            });
            let names = block.names.join(" ");
            format!(
                "{}|{names}: {}",
                block.line,
                directives.collect::<Vec<_>>().join("; ")
            )
        });
        Ok(said.collect())
    }

    #[test]
    fn blocks_have_names_and_directives() {
        let text = "import a/*\n\n(b) {\n c\n}\nd, e,\nf {\n g h\n i {\n  j {\n   k\n  }\n }\n import l\n}\nm\n{\n}\n";
        assert_eq!(
            read(text).expect("read"),
            [
                "1|: import a/*",
                "3|(b): c",
                "6|d e f: g h; i { j { k } }; import l",
                "16|m: "
            ]
        );
        let words = words(text).expect("read");
        let snippets: Vec<bool> = blocks(&words)
            .expect("read")
            .iter()
            .map(Block::is_snippet)
            .collect();
        assert_eq!(snippets, [false, true, false, false]);
    }

    #[test]
    fn a_directive_knows_whether_it_begins_its_line() {
        let words = words(". { a b\n c\n}\n").expect("read");
        let blocks = blocks(&words).expect("read");
        let begin: Vec<bool> = blocks[0]
            .directives
            .iter()
            .map(|directive| directive.begins_line)
            .collect();
        assert_eq!(begin, [false, true]);
        assert_eq!(blocks[0].start, 0);
    }

    #[test]
    fn braces_that_do_not_fit_are_refused() {
        for (text, refusal) in [
            (". {\n a {\n }\n", Refusal::OpenBrace { line: 1 }),
            (". {\n a {\n", Refusal::OpenBrace { line: 2 }),
            (". {\n a }\n", Refusal::StrayBrace { line: 2 }),
            (". {\n}\n}\n", Refusal::StrayBrace { line: 3 }),
            (".\na\nb\n", Refusal::BlockWithoutBraces { line: 1 }),
            ("\n.", Refusal::BlockWithoutBraces { line: 2 }),
            ("{\n}\n", Refusal::BlockWithoutBraces { line: 1 }),
            ("import a }\n", Refusal::StrayBrace { line: 1 }),
        ] {
            assert_eq!(read(text).expect_err(text), refusal, "{text}");
        }
        assert!(read("").expect("nothing").is_empty());
    }
}
