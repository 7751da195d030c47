//! Owns: formats of `printf`: directives, widths that are arguments, and the messages about wrong ones.

use super::{
    super::{limits::Failure, meter::Meter, runes, value::Value},
    flags::Flags,
    verbs::argument,
};

/// Largest width, precision or index.
const MAX_NUMBER: usize = 1_000_000;

/// `fmt.Sprintf`.
pub(crate) fn sprintf(meter: &mut Meter, format: &[u8], values: &[Value]) -> Result<Vec<u8>, Failure> {
    let mut formatter = Formatter {
        format,
        at: 0,
        values,
        argument: 0,
        reordered: false,
        good: true,
        out: Vec::new(),
    };
    formatter.run(meter)?;
    Ok(formatter.out)
}

struct Formatter<'a> {
    format: &'a [u8],
    at: usize,
    values: &'a [Value],
    /// Number of the next argument.
    argument: usize,
    /// True if an index was written anywhere.
    reordered: bool,
    /// True if all indexes of this directive are good.
    good: bool,
    out: Vec<u8>,
}

impl Formatter<'_> {
    fn here(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Failure> {
        while self.at < self.format.len() {
            meter.step(1)?;
            meter.text(self.out.len().saturating_sub(super::super::limits::MAX_TEXT - 1))?;
            let rest = &self.format[self.at..];
            let literal = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
            self.out.extend_from_slice(&rest[..literal]);
            self.at += literal;
            if self.here().is_some() {
                self.at += 1;
                self.directive(meter)?;
            }
        }
        if self.reordered || self.argument >= self.values.len() {
            return Ok(());
        }
        self.out.extend_from_slice(b"%!(EXTRA ");
        for (at, value) in self.values[self.argument..].iter().enumerate() {
            if at > 0 {
                self.out.extend_from_slice(b", ");
            }
            if value.is_none() {
                self.out.extend_from_slice(b"<nil>");
            } else {
                self.out.extend_from_slice(value.type_name().as_bytes());
                self.out.push(b'=');
                argument(meter, &mut self.out, &Flags::default(), value, 'v')?;
            }
        }
        self.out.push(b')');
        Ok(())
    }

    fn directive(&mut self, meter: &mut Meter) -> Result<(), Failure> {
        self.good = true;
        let mut flags = Flags::default();
        while let Some(byte) = self.here() {
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
        let mut after = self.index();
        after = self.width(&mut flags, after);
        after = self.precision(&mut flags, after);
        if !after {
            self.index();
        }
        let Some((verb, length)) = runes::first(self.format.get(self.at..).unwrap_or(&[])) else {
            self.out.extend_from_slice(b"%!(NOVERB)");
            return Ok(());
        };
        self.at += length;
        if verb == '%' {
            self.out.push(b'%');
            return Ok(());
        }
        if !self.good {
            self.wrong(verb, "(BADINDEX)");
            return Ok(());
        }
        let Some(value) = self.values.get(self.argument) else {
            self.wrong(verb, "(MISSING)");
            return Ok(());
        };
        self.argument += 1;
        if verb == 'v' {
            flags.syntax = std::mem::take(&mut flags.sharp);
            flags.plus = false;
        }
        meter.text(flags.width.unwrap_or(0).max(flags.precision.unwrap_or(0)))?;
        argument(meter, &mut self.out, &flags, value, verb)
    }

    fn wrong(&mut self, verb: char, what: &str) {
        self.out.extend_from_slice(b"%!");
        runes::push(&mut self.out, verb);
        self.out.extend_from_slice(what.as_bytes());
    }

    fn width(&mut self, flags: &mut Flags, after: bool) -> bool {
        if self.here() == Some(b'*') {
            self.at += 1;
            match self.number_argument() {
                Some(width) => {
                    flags.width = usize::try_from(width.unsigned_abs()).ok();
                    if width < 0 {
                        flags.minus = true;
                        flags.zero = false;
                    }
                }
                None => self.out.extend_from_slice(b"%!(BADWIDTH)"),
            }
            return false;
        }
        flags.width = self.number();
        if after && flags.width.is_some() {
            self.good = false;
        }
        after
    }

    fn precision(&mut self, flags: &mut Flags, after: bool) -> bool {
        if self.here() != Some(b'.') {
            return after;
        }
        self.at += 1;
        if after {
            self.good = false;
        }
        let after = self.index();
        if self.here() != Some(b'*') {
            flags.precision = Some(self.number().unwrap_or(0));
            return after;
        }
        self.at += 1;
        match self.number_argument().map(usize::try_from) {
            Some(Ok(precision)) => flags.precision = Some(precision),
            _ => self.out.extend_from_slice(b"%!(BADPREC)"),
        }
        false
    }

    /// Digits; what is too large takes the rest of the format with it.
    fn number(&mut self) -> Option<usize> {
        let mut number = None;
        while let Some(digit) = self.here().filter(u8::is_ascii_digit) {
            let value = number.unwrap_or(0) * 10 + usize::from(digit - b'0');
            if number.unwrap_or(0) > MAX_NUMBER {
                self.at = self.format.len();
                return None;
            }
            number = Some(value);
            self.at += 1;
        }
        number
    }

    fn number_argument(&mut self) -> Option<i64> {
        let value = self.values.get(self.argument)?;
        self.argument += 1;
        let number = match value {
            Value::Int(int) | Value::Int64(int) | Value::Named(_, int, _) => *int,
            Value::Uint64(int) => i64::try_from(*int).ok()?,
            Value::Byte(byte) => i64::from(*byte),
            _ => return None,
        };
        (number.unsigned_abs() <= MAX_NUMBER as u64).then_some(number)
    }

    /// `[3]`: which argument comes next; whether there was one.
    fn index(&mut self) -> bool {
        if self.here() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = &self.format[self.at..];
        let Some(close) = rest.iter().position(|byte| *byte == b']') else {
            self.good = false;
            self.at += 1;
            return false;
        };
        let digits = &rest[1..close];
        let number = std::str::from_utf8(digits)
            .ok()
            .filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|digits| digits.parse::<usize>().ok());
        self.at += close + 1;
        match number.filter(|number| (1..=self.values.len()).contains(number)) {
            Some(number) => {
                self.argument = number - 1;
                true
            }
            None => {
                self.good = false;
                number.is_some()
            }
        }
    }
}
