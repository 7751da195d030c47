//! Owns: the functions that change the case of letters, find words, and wrap lines.

use super::super::{
    limits::Failure,
    meter::Meter,
    runes,
    signature::{
        Signature,
        Type::{Int, Text},
        exactly, int, said, text,
    },
    value::Value,
};

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    match name {
        "upper" => exactly(&[Text], |meter, given| mapped(meter, given, runes::upper)),
        "lower" => exactly(&[Text], |meter, given| mapped(meter, given, runes::lower)),
        "title" => exactly(&[Text], |meter, given| {
            let mut before = ' ';
            let title = runes::chars(text(given, 0)).map(|character| {
                let starts = is_separator(before);
                before = character;
                if starts { titled(character) } else { character }
            });
            said(meter, title.collect::<String>())
        }),
        "untitle" => exactly(&[Text], |meter, given| {
            let mut starts = true;
            let untitled = runes::chars(text(given, 0)).map(|character| {
                let this = starts && !runes::is_space(character);
                starts = runes::is_space(character);
                if this { runes::lower(character) } else { character }
            });
            said(meter, untitled.collect::<String>())
        }),
        "swapcase" => exactly(&[Text], |meter, given| said(meter, swapped(text(given, 0)))),
        "nospace" => exactly(&[Text], |meter, given| {
            let whole = text(given, 0);
            // As upstream: bytes are taken for characters, unless there is no space at all.
            let kept: String = whole
                .iter()
                .map(|byte| char::from(*byte))
                .filter(|character| !runes::is_space(*character))
                .collect();
            let all = kept.chars().count() == whole.len();
            said(meter, if all { whole } else { kept.as_bytes() })
        }),
        "initials" => exactly(&[Text], |meter, given| {
            let mut gap = true;
            let mut out = String::new();
            for character in text(given, 0).iter().map(|byte| char::from(*byte)) {
                let space = runes::is_space(character);
                if gap && !space {
                    out.push(character);
                }
                gap = space;
            }
            said(meter, out)
        }),
        "snakecase" => exactly(&[Text], |meter, given| said(meter, parted(text(given, 0), '_'))),
        "kebabcase" => exactly(&[Text], |meter, given| said(meter, parted(text(given, 0), '-'))),
        "camelcase" => exactly(&[Text], |meter, given| said(meter, pascal(text(given, 0)))),
        "wrap" => exactly(&[Int, Text], |meter, given| {
            wrapped(meter, text(given, 1), int(given, 0), b"\n", false)
        }),
        "wrapWith" => exactly(&[Int, Text, Text], |meter, given| {
            let separator = match text(given, 1) {
                [] => b"\n",
                other => other,
            };
            wrapped(meter, text(given, 2), int(given, 0), separator, true)
        }),
        _ => None,
    }
}

fn mapped(meter: &mut Meter, given: &[Value], map: fn(char) -> char) -> Result<Value, Failure> {
    said(meter, runes::chars(text(given, 0)).map(map).collect::<String>())
}

fn is_separator(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_alphanumeric() && character != '_';
    }
    !runes::is_letter(character) && !runes::is_digit(character) && runes::is_space(character)
}

/// Returns true for a digraph whose first letter is upper case.
fn is_title(character: char) -> bool {
    matches!(character, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ' | '\u{1f88}'..='\u{1f8f}' | '\u{1f98}'..='\u{1f9f}'
        | '\u{1fa8}'..='\u{1faf}' | '\u{1fbc}' | '\u{1fcc}' | '\u{1ffc}')
}

/// The letter that begins a word.
fn titled(character: char) -> char {
    match character {
        'Ǆ' | 'ǅ' | 'ǆ' => 'ǅ',
        'Ǉ' | 'ǈ' | 'ǉ' => 'ǈ',
        'Ǌ' | 'ǋ' | 'ǌ' => 'ǋ',
        'Ǳ' | 'ǲ' | 'ǳ' => 'ǲ',
        other => runes::upper(other),
    }
}

fn swapped(text: &[u8]) -> String {
    let mut starts = true;
    let swap = |character: char| {
        if runes::is_upper(character) || is_title(character) {
            starts = false;
            return runes::lower(character);
        }
        if runes::is_lower(character) {
            let word = std::mem::replace(&mut starts, false);
            return if word {
                titled(character)
            } else {
                runes::upper(character)
            };
        }
        starts = runes::is_space(character);
        character
    };
    runes::chars(text).map(swap).collect()
}

fn is_connector(character: char) -> bool {
    matches!(character, '-' | '_') || runes::is_space(character)
}

/// `xstrings.ToPascalCase`.
fn pascal(text: &[u8]) -> String {
    let mut out = String::new();
    let mut rest = runes::chars(text);
    let mut before = None;
    let mut upper = false;
    for character in rest.by_ref() {
        if is_connector(character) {
            out.push(character);
            before = Some(character);
            continue;
        }
        upper = runes::is_upper(character);
        before = Some(runes::upper(character));
        break;
    }
    let Some(mut current) = before else {
        return out;
    };
    if is_connector(current) {
        // Only connectors: the last one was written already, and upstream writes it once more.
        out.push(current);
        return out;
    }
    for character in rest {
        let before = std::mem::replace(&mut current, character);
        if is_connector(current) && is_connector(before) {
            out.push(before);
            continue;
        }
        if is_connector(before) {
            upper = runes::is_upper(current);
            current = runes::upper(current);
            continue;
        }
        if upper {
            if runes::is_upper(current) {
                current = runes::lower(current);
            } else {
                upper = false;
            }
        }
        out.push(before);
    }
    out.push(current);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Invalid,
    Number,
    Upper,
    Letters,
    Connector,
    Punct,
    Other,
}

fn is_letters(character: char) -> bool {
    runes::is_letter(character) && !is_asian(character)
}

/// Writing without upper and lower case, which is no letter of a word here.
fn is_asian(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{4d85}' | '\u{4e00}'..='\u{9fcc}' | '\u{20000}'..='\u{2b81d}')
}

/// The next word and what it is.
fn word(text: &[char]) -> (Word, usize) {
    let Some(first) = text.first().copied() else {
        return (Word::Invalid, 0);
    };
    let run = |from: usize, holds: &dyn Fn(char) -> bool| {
        from + text[from..]
            .iter()
            .take_while(|character| holds(**character))
            .count()
    };
    let small = |character: char| is_letters(character) && !runes::is_upper(character);
    if first == runes::BAD {
        return (Word::Invalid, 1);
    }
    if is_connector(first) {
        return (Word::Connector, run(1, &is_connector));
    }
    if runes::is_punct(first) {
        return (Word::Punct, run(1, &runes::is_punct));
    }
    if runes::is_upper(first) {
        return match text.get(1).copied() {
            Some(second) if runes::is_upper(second) => {
                let end = run(2, &runes::is_upper);
                let back = text.get(end).is_some_and(|next| is_letters(*next));
                (Word::Upper, if back { end - 1 } else { end })
            }
            Some(second) if is_letters(second) => (Word::Upper, run(2, &small)),
            _ => (Word::Upper, 1),
        };
    }
    if is_letters(first) {
        return (Word::Letters, run(1, &small));
    }
    if runes::is_number(first) {
        return (Word::Number, run(1, &runes::is_number));
    }
    let other = |character: char| {
        !(is_connector(character)
            || is_letters(character)
            || runes::is_number(character)
            || runes::is_punct(character))
    };
    (Word::Other, run(1, &other))
}

/// Words of a text, one after the other.
struct Words<'a> {
    rest: &'a [char],
}

impl<'a> Words<'a> {
    fn next(&mut self) -> (Word, &'a [char]) {
        let (kind, length) = word(self.rest);
        let (head, rest) = self.rest.split_at(length);
        self.rest = rest;
        (kind, head)
    }
}

/// `xstrings.ToSnakeCase`, with any connector.
fn parted(text: &[u8], connector: char) -> String {
    let all: Vec<char> = runes::chars(text).collect();
    let mut words = Words { rest: &all };
    let mut out = String::new();
    let (mut kind, mut head) = words.next();
    while !words.rest.is_empty() {
        if kind != Word::Connector {
            lowered(&mut out, kind, head, connector);
        }
        let (before, last) = (kind, head);
        (kind, head) = words.next();
        match before {
            Word::Number => {
                while matches!(kind, Word::Letters | Word::Number) {
                    lowered(&mut out, kind, head, connector);
                    (kind, head) = words.next();
                }
                if !matches!(kind, Word::Invalid | Word::Punct | Word::Connector) {
                    out.push(connector);
                }
            }
            Word::Connector => lowered(&mut out, before, last, connector),
            Word::Punct => {}
            _ if kind != Word::Number => {
                if !matches!(kind, Word::Connector | Word::Punct) {
                    out.push(connector);
                }
            }
            _ => {
                if words.rest.is_empty() {
                    break;
                }
                let number = head;
                (kind, head) = words.next();
                if kind != Word::Letters {
                    lowered(&mut out, Word::Number, number, connector);
                    if !matches!(kind, Word::Connector | Word::Punct) {
                        out.push(connector);
                    }
                    continue;
                }
                out.push(connector);
                lowered(&mut out, Word::Number, number, connector);
                while matches!(kind, Word::Letters | Word::Number) {
                    lowered(&mut out, kind, head, connector);
                    (kind, head) = words.next();
                }
                if !matches!(kind, Word::Invalid | Word::Connector | Word::Punct) {
                    out.push(connector);
                }
            }
        }
    }
    lowered(&mut out, kind, head, connector);
    out
}

fn lowered(out: &mut String, kind: Word, word: &[char], connector: char) {
    if !matches!(kind, Word::Upper | Word::Connector) {
        out.extend(word);
        return;
    }
    for character in word {
        out.push(match *character {
            sign if is_connector(sign) => connector,
            letter => runes::lower(letter),
        });
    }
}

fn wrapped(
    meter: &mut Meter,
    text: &[u8],
    width: i64,
    separator: &[u8],
    long: bool,
) -> Result<Value, Failure> {
    let width = usize::try_from(width).unwrap_or(1).max(1);
    let mut out = Vec::new();
    let mut at = 0;
    while text.len() - at > width {
        meter.step(1)?;
        if text[at] == b' ' {
            at += 1;
            continue;
        }
        meter.text(out.len().saturating_sub(super::super::limits::MAX_TEXT - 1))?;
        let window = &text[at..at + width + 1];
        meter.read(window.len())?;
        if let Some(space) = window.iter().rposition(|byte| *byte == b' ') {
            out.extend_from_slice(&window[..space]);
            out.extend_from_slice(separator);
            at += space + 1;
        } else if long {
            out.extend_from_slice(&window[..width]);
            out.extend_from_slice(separator);
            at += width;
        } else {
            let rest = &text[at..];
            match rest[width..].iter().position(|byte| *byte == b' ') {
                Some(space) => {
                    out.extend_from_slice(&rest[..width + space]);
                    out.extend_from_slice(separator);
                    at += width + space + 1;
                }
                None => {
                    out.extend_from_slice(rest);
                    at = text.len();
                }
            }
        }
    }
    out.extend_from_slice(&text[at..]);
    said(meter, out)
}
