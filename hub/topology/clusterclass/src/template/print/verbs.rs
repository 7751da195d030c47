//! Owns: what each verb of `printf` does with each type.
//! Never: goes deeper into a value than [`MAX_NESTING`](super::super::limits::MAX_NESTING).

use super::{
    super::{
        limits::{Failure, nested},
        meter::Meter,
        quote, runes,
        value::Value,
    },
    flags::Flags,
};

/// `%v` without flags.
pub(super) fn plain(meter: &mut Meter, out: &mut Vec<u8>, value: &Value) -> Result<(), Failure> {
    argument(meter, out, &Flags::default(), value, 'v')
}

/// One argument.
pub(super) fn argument(
    meter: &mut Meter,
    out: &mut Vec<u8>,
    flags: &Flags,
    value: &Value,
    verb: char,
) -> Result<(), Failure> {
    if verb == 'T' {
        flags.text(out, value.type_name().as_bytes());
        return Ok(());
    }
    if value.is_none() && verb == 'v' {
        flags.pad(out, b"<nil>");
        return Ok(());
    }
    let mut printer = Printer {
        meter,
        flags,
        failing: false,
    };
    printer.value(out, value, verb, 0)
}

struct Printer<'a> {
    meter: &'a mut Meter,
    flags: &'a Flags,
    /// A verb was wrong: what follows is what is shown instead.
    failing: bool,
}

type Written = Result<(), Failure>;

impl Printer<'_> {
    fn value(&mut self, out: &mut Vec<u8>, value: &Value, verb: char, depth: usize) -> Written {
        self.meter.step(1)?;
        nested(depth)?;
        if out.len() > super::super::limits::MAX_TEXT {
            return self.meter.text(out.len());
        }
        if let (false, 'v' | 's' | 'x' | 'X' | 'q', Some(text)) = (self.failing, verb, value.stringer())
            && !self.flags.syntax
        {
            return self.text(out, value, text.as_bytes(), verb);
        }
        let flags = self.flags;
        match value {
            Value::Missing | Value::Nil => match verb {
                'v' if flags.syntax => out.extend_from_slice(b"interface {}(nil)"),
                _ if depth > 0 => out.extend_from_slice(b"<nil>"),
                _ => return self.bad(out, value, verb),
            },
            Value::Bool(truth) => match verb {
                't' | 'v' => flags.pad(out, truth.to_string().as_bytes()),
                _ => return self.bad(out, value, verb),
            },
            Value::Int(int) | Value::Int64(int) | Value::Named(_, int, _) => {
                return self.integer(out, value, *int < 0, int.unsigned_abs(), verb);
            }
            Value::Uint64(int) => return self.integer(out, value, false, *int, verb),
            Value::Byte(byte) => return self.integer(out, value, false, u64::from(*byte), verb),
            Value::Float(float) => match float_verb(verb) {
                Some((verb, precision)) => flags.float(out, *float, verb, precision),
                None => return self.bad(out, value, verb),
            },
            Value::Complex(real, imaginary) => match float_verb(verb) {
                Some((verb, precision)) => flags.complex(out, (*real, *imaginary), verb, precision),
                None => return self.bad(out, value, verb),
            },
            Value::Text(text) => {
                self.meter.text(text.len())?;
                return self.text(out, value, text, verb);
            }
            Value::List(list) => return self.list(out, list, value, verb, depth),
            Value::Dict(dict) => return self.dict(out, dict, value, verb, depth),
            Value::Version(_) | Value::Release(_) | Value::Time(_) => {
                let text = value.stringer().unwrap_or_default();
                out.extend_from_slice(text.as_bytes());
            }
        }
        Ok(())
    }

    fn text(&mut self, out: &mut Vec<u8>, value: &Value, text: &[u8], verb: char) -> Written {
        match verb {
            'v' if self.flags.syntax => self.flags.quoted(out, text),
            'v' | 's' => self.flags.text(out, text),
            'x' | 'X' => self.flags.hex(out, text, verb == 'X'),
            'q' => self.flags.quoted(out, text),
            _ => return self.bad(out, value, verb),
        }
        Ok(())
    }

    fn integer(
        &mut self,
        out: &mut Vec<u8>,
        value: &Value,
        negative: bool,
        size: u64,
        verb: char,
    ) -> Written {
        let character = if negative { None } else { u32::try_from(size).ok() };
        let character = character.and_then(char::from_u32).unwrap_or(runes::BAD);
        match verb {
            'v' if self.flags.syntax && matches!(value, Value::Uint64(_) | Value::Byte(_)) => {
                Flags {
                    sharp: true,
                    ..*self.flags
                }
                .integer(out, negative, size, 'x');
            }
            'v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X' => self.flags.integer(out, negative, size, verb),
            'c' => self.flags.pad(out, character.encode_utf8(&mut [0; 4]).as_bytes()),
            'q' => self
                .flags
                .pad(out, &quote::quote_char(character, self.flags.plus)),
            'U' => {
                let code = if negative { size.wrapping_neg() } else { size };
                self.flags.unicode(out, code);
            }
            _ => return self.bad(out, value, verb),
        }
        Ok(())
    }

    fn list(
        &mut self,
        out: &mut Vec<u8>,
        list: &super::super::value::List,
        value: &Value,
        verb: char,
        depth: usize,
    ) -> Written {
        let syntax = self.flags.syntax && verb == 'v';
        if syntax {
            out.extend_from_slice(value.type_name().as_bytes());
            if list.nil {
                out.extend_from_slice(b"(nil)");
                return Ok(());
            }
        }
        out.push(if syntax { b'{' } else { b'[' });
        for (at, item) in list.items.iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(if syntax { b", " } else { b" " });
            }
            self.value(out, item, verb, depth + 1)?;
        }
        out.push(if syntax { b'}' } else { b']' });
        Ok(())
    }

    fn dict(
        &mut self,
        out: &mut Vec<u8>,
        dict: &super::super::value::Dict,
        value: &Value,
        verb: char,
        depth: usize,
    ) -> Written {
        let syntax = self.flags.syntax && verb == 'v';
        if syntax {
            out.extend_from_slice(value.type_name().as_bytes());
            if dict.nil {
                out.extend_from_slice(b"(nil)");
                return Ok(());
            }
            out.push(b'{');
        } else {
            out.extend_from_slice(b"map[");
        }
        for (at, (key, item)) in dict.snapshot().into_iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(if syntax { b", " } else { b" " });
            }
            self.value(out, &Value::Text(key), verb, depth + 1)?;
            out.push(b':');
            self.value(out, &item, verb, depth + 1)?;
        }
        out.push(if syntax { b'}' } else { b']' });
        Ok(())
    }

    /// A verb that the type does not have.
    fn bad(&mut self, out: &mut Vec<u8>, value: &Value, verb: char) -> Written {
        let before = std::mem::replace(&mut self.failing, true);
        out.extend_from_slice(b"%!");
        runes::push(out, verb);
        out.push(b'(');
        if value.is_none() {
            out.extend_from_slice(b"<nil>");
        } else {
            out.extend_from_slice(value.type_name().as_bytes());
            out.push(b'=');
            self.value(out, value, 'v', 0)?;
        }
        out.push(b')');
        self.failing = before;
        Ok(())
    }
}

fn float_verb(verb: char) -> Option<(u8, Option<usize>)> {
    Some(match verb {
        'v' => (b'g', None),
        'b' | 'g' | 'G' | 'x' | 'X' => (verb as u8, None),
        'f' | 'e' | 'E' => (verb as u8, Some(6)),
        'F' => (b'f', Some(6)),
        _ => return None,
    })
}
