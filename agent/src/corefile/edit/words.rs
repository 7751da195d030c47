//! Owns: a Corefile as the words that CoreDNS reads in it, each with its position.
//! Never: knows what a word means; text that is no word (comments, spaces) is nobody's, and so stays as it is.

use super::refusal::Refusal;

/// One word of a Corefile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// Its text, without the quotation marks.
    pub(super) text: &'a str,
    /// Its start in the Corefile, in bytes.
    pub(super) start: usize,
    /// Its end.
    pub(super) end: usize,
    /// Its line, from 1.
    pub(super) line: usize,
    /// The line that it ends in: a quoted word may have several.
    pub(super) last_line: usize,
    /// True if it is in quotation marks.
    pub(super) quoted: bool,
}

impl Word<'_> {
    /// True if CoreDNS puts something else in its place, or reads it otherwise than we do.
    pub(super) fn is_unread(&self) -> bool {
        self.quoted || self.text.contains(['{', '}', '"', '$', '%', '`'])
    }

    /// True if it is the first word of its line.
    pub(super) fn begins_line_after(&self, before: &Word<'_>) -> bool {
        before.last_line < self.line
    }
}

/// The words of a Corefile, in order.
pub(super) fn words(text: &str) -> Result<Vec<Word<'_>>, Refusal> {
    let mut words = Vec::new();
    // CoreDNS passes a byte order mark over.
    let mut at = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut line = 1;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        if letter == '\n' {
            line += 1;
        }
        at += match letter {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            letter if letter.is_whitespace() => letter.len_utf8(),
            _ => {
                let length = if letter == '"' {
                    quoted_length(rest)
                } else {
                    plain_length(rest)
                };
                let word = word(text, at, length.map_err(|problem| problem.at(line))?, line);
                line = word.last_line;
                words.push(word);
                word.end - word.start
            }
        };
    }
    Ok(words)
}

fn word(text: &str, start: usize, length: usize, line: usize) -> Word<'_> {
    let end = start + length;
    let written = &text[start..end];
    let quoted = written.starts_with('"');
    let marks = usize::from(quoted);
    Word {
        text: &written[marks..length - marks],
        start,
        end,
        line,
        last_line: line + written.matches('\n').count(),
        quoted,
    }
}

/// Why a word cannot be read.
#[derive(Debug, Clone, Copy)]
enum Problem {
    OpenQuote,
    JoinedComment,
}

impl Problem {
    fn at(self, line: usize) -> Refusal {
        match self {
            Self::OpenQuote => Refusal::OpenQuote { line },
            Self::JoinedComment => Refusal::JoinedComment { line },
        }
    }
}

/// Length in bytes of the quoted word at the start of `rest`, with both quotation marks.
fn quoted_length(rest: &str) -> Result<usize, Problem> {
    let mut escaped = false;
    for (offset, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Ok(offset + 1),
            _ => {}
        }
    }
    Err(Problem::OpenQuote)
}

/// Length in bytes of the word at the start of `rest`.
fn plain_length(rest: &str) -> Result<usize, Problem> {
    let ends = |letter: char| letter == '#' || letter.is_whitespace();
    let length = rest.find(ends).unwrap_or(rest.len());
    if rest[length..].starts_with('#') {
        return Err(Problem::JoinedComment);
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_where_they_stand() {
        let text = "\u{feff}a  # b \"c\n\n \"d \\\" e\nf\" g{ é\r\nh";
        let words = words(text).expect("read");
        let said: Vec<_> = words
            .iter()
            .map(|word| (word.text, word.line, word.last_line))
            .collect();
        assert_eq!(
            said,
            [
                ("a", 1, 1),
                ("d \\\" e\nf", 3, 4),
                ("g{", 4, 4),
                ("é", 4, 4),
                ("h", 5, 5)
            ]
        );
        let written: Vec<_> = words.iter().map(|word| &text[word.start..word.end]).collect();
        assert_eq!(written, ["a", "\"d \\\" e\nf\"", "g{", "é", "h"]);
        let begin: Vec<_> = words
            .windows(2)
            .map(|pair| pair[1].begins_line_after(&pair[0]))
            .collect();
        assert_eq!(begin, [true, false, false, true]);
    }

    #[test]
    fn words_that_coredns_replaces_are_known() {
        let unread: Vec<bool> = words("a \"b\" {$C} {%D%} { } e\" f%")
            .expect("read")
            .iter()
            .map(Word::is_unread)
            .collect();
        assert_eq!(unread, [false, true, true, true, true, true, true, true]);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_line() {
        assert_eq!(words("a\n\"b\n\\\""), Err(Refusal::OpenQuote { line: 2 }));
        assert_eq!(words("a\n\nb#c"), Err(Refusal::JoinedComment { line: 3 }));
        assert_eq!(words(" \n# a\n").expect("read"), []);
    }
}
