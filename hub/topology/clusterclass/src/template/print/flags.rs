//! Owns: the flags of one directive of `printf`, and how texts, numbers and floats are written with them.

use super::super::{floats, quote, runes};

/// Flags, width and precision.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%#v`.
    pub(super) syntax: bool,
}

impl Flags {
    fn padding(&self, out: &mut Vec<u8>, count: usize) {
        let byte = if self.zero && !self.minus { b'0' } else { b' ' };
        out.extend(std::iter::repeat_n(byte, count));
    }

    /// Writes a text, filled up to the width.
    pub(super) fn pad(&self, out: &mut Vec<u8>, text: &[u8]) {
        let missing = self.width.unwrap_or(0).saturating_sub(runes::count(text));
        if !self.minus {
            self.padding(out, missing);
        }
        out.extend_from_slice(text);
        if self.minus {
            out.extend(std::iter::repeat_n(b' ', missing));
        }
    }

    fn truncated<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let Some(precision) = self.precision else {
            return text;
        };
        match runes::indexed(text).nth(precision) {
            Some((at, _, _)) => &text[..at],
            None => text,
        }
    }

    /// `%s`.
    pub(super) fn text(&self, out: &mut Vec<u8>, text: &[u8]) {
        self.pad(out, self.truncated(text));
    }

    /// `%q`.
    pub(super) fn quoted(&self, out: &mut Vec<u8>, text: &[u8]) {
        let text = self.truncated(text);
        if self.sharp && quote::can_backquote(text) {
            let raw = [b"`", text, b"`"].concat();
            return self.pad(out, &raw);
        }
        self.pad(out, &quote::quote(text, self.plus));
    }

    /// `%x` of a text.
    pub(super) fn hex(&self, out: &mut Vec<u8>, text: &[u8], upper: bool) {
        let text = &text[..self.precision.unwrap_or(text.len()).min(text.len())];
        let mut hex = String::new();
        for (at, byte) in text.iter().enumerate() {
            if at > 0 && self.space {
                hex.push(' ');
            }
            if self.sharp && (at == 0 || self.space) {
                hex.push_str("0x");
            }
            hex.push_str(&format!("{byte:02x}"));
        }
        if upper {
            hex.make_ascii_uppercase();
        }
        let flags = Self {
            zero: self.zero,
            ..*self
        };
        flags.pad(out, hex.as_bytes());
    }

    /// A number in some base.
    pub(super) fn integer(&self, out: &mut Vec<u8>, negative: bool, magnitude: u64, verb: char) {
        let mut least = 0;
        if let Some(precision) = self.precision {
            least = precision;
            if precision == 0 && magnitude == 0 {
                out.extend(std::iter::repeat_n(b' ', self.width.unwrap_or(0)));
                return;
            }
        } else if let (true, false, Some(width)) = (self.zero, self.minus, self.width) {
            least = width.saturating_sub(usize::from(negative || self.plus || self.space));
        }
        let mut digits = match verb {
            'b' => format!("{magnitude:b}"),
            'o' | 'O' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            _ => magnitude.to_string(),
        };
        digits.insert_str(0, &"0".repeat(least.saturating_sub(digits.len())));
        if self.sharp {
            match verb {
                'b' => digits.insert_str(0, "0b"),
                'o' if !digits.starts_with('0') => digits.insert(0, '0'),
                'x' => digits.insert_str(0, "0x"),
                'X' => digits.insert_str(0, "0X"),
                _ => {}
            }
        }
        if verb == 'O' {
            digits.insert_str(0, "0o");
        }
        if negative {
            digits.insert(0, '-');
        } else if self.plus {
            digits.insert(0, '+');
        } else if self.space {
            digits.insert(0, ' ');
        }
        Self { zero: false, ..*self }.pad(out, digits.as_bytes());
    }

    /// `%U`.
    pub(super) fn unicode(&self, out: &mut Vec<u8>, code: u64) {
        let least = self.precision.unwrap_or(0).max(4);
        let mut text = format!("U+{code:0least$X}");
        let character = u32::try_from(code).ok().and_then(char::from_u32);
        if let (true, Some(character)) = (self.sharp, character.filter(|it| runes::is_print(*it))) {
            text.push_str(&format!(" '{character}'"));
        }
        Self { zero: false, ..*self }.pad(out, text.as_bytes());
    }

    /// A float; `precision` is what the verb has unless another is given.
    pub(super) fn float(&self, out: &mut Vec<u8>, value: f64, verb: u8, precision: Option<usize>) {
        let precision = self.precision.or(precision);
        let mut text = floats::format(value, verb, precision);
        if self.sharp && verb != b'b' && value.is_finite() {
            text = sharp(&text, verb, precision);
        }
        if !text.starts_with(['-', '+']) {
            text.insert(0, '+');
        }
        if self.space && text.starts_with('+') && !self.plus {
            text.replace_range(..1, " ");
        }
        if !value.is_finite() {
            let flags = Self { zero: false, ..*self };
            // An infinity has its sign even where nobody asks for it.
            let bare = value.is_nan() && !self.space && !self.plus;
            return flags.pad(out, &text.as_bytes()[usize::from(bare)..]);
        }
        if !self.plus && text.starts_with('+') {
            return self.pad(out, &text.as_bytes()[1..]);
        }
        let missing = self.width.unwrap_or(0).saturating_sub(text.len());
        if self.zero && !self.minus && missing > 0 {
            out.push(text.as_bytes()[0]);
            self.padding(out, missing);
            out.extend_from_slice(&text.as_bytes()[1..]);
            return;
        }
        self.pad(out, text.as_bytes());
    }

    /// A complex number.
    pub(super) fn complex(&self, out: &mut Vec<u8>, parts: (f64, f64), verb: u8, precision: Option<usize>) {
        out.push(b'(');
        self.float(out, parts.0, verb, precision);
        Self { plus: true, ..*self }.float(out, parts.1, verb, precision);
        out.extend_from_slice(b"i)");
    }
}

/// The decimal point always, and for `%g` and `%x` the zeros behind it; of the latter all signs count from the `x` on.
fn sharp(text: &str, verb: u8, precision: Option<usize>) -> String {
    let (mut wanted, is_hexadecimal) = match verb {
        b'g' | b'G' => (precision.unwrap_or(6), false),
        b'x' => (precision.unwrap_or(6), true),
        _ => (0, verb == b'X'),
    };
    let ends = |sign: char| matches!(sign, 'p' | 'P') || !is_hexadecimal && matches!(sign, 'e' | 'E');
    let (mantissa, tail) = text.split_at(text.find(ends).unwrap_or(text.len()));
    let number = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let signs = number.trim_start_matches(['0', '.']).bytes();
    wanted = wanted.saturating_sub(signs.filter(|sign| *sign != b'.').count());
    let mut mantissa = mantissa.to_owned();
    if !mantissa.contains('.') {
        wanted = wanted.saturating_sub(usize::from(number == "0"));
        mantissa.push('.');
    }
    mantissa.push_str(&"0".repeat(wanted));
    format!("{mantissa}{tail}")
}
