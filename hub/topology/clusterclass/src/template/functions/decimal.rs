//! Owns: exact decimal numbers, in which `addf` and its sisters calculate.

use std::cmp::Ordering;

use super::super::{limits::Failure, meter::Meter};

/// Digits behind the point of a quotient.
const QUOTIENT_DIGITS: i64 = 16;

/// A number: `±digits × 10^exponent`.
#[derive(Debug, Clone)]
pub(super) struct Decimal {
    negative: bool,
    /// From 0 to 9, the first of them not 0; none for zero.
    digits: Vec<u8>,
    exponent: i64,
}

fn stripped(digits: Vec<u8>) -> Vec<u8> {
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    digits[zeros..].to_vec()
}

fn compare(one: &[u8], two: &[u8]) -> Ordering {
    one.len().cmp(&two.len()).then_with(|| one.cmp(two))
}

fn sum(one: &[u8], two: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut carry = 0;
    for at in 0..one.len().max(two.len()) + 1 {
        let digit = |digits: &[u8]| digits.len().checked_sub(at + 1).map_or(0, |at| digits[at]);
        let total = digit(one) + digit(two) + carry;
        out.push(total % 10);
        carry = total / 10;
    }
    out.reverse();
    stripped(out)
}

/// The larger number minus the smaller one.
fn difference(one: &[u8], two: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut borrow = 0;
    for at in 0..one.len() {
        let digit = |digits: &[u8]| {
            digits
                .len()
                .checked_sub(at + 1)
                .map_or(0, |at| i16::from(digits[at]))
        };
        let left = digit(one) - digit(two) - borrow;
        borrow = i16::from(left < 0);
        out.push(u8::try_from(left.rem_euclid(10)).unwrap_or(0));
    }
    out.reverse();
    stripped(out)
}

impl Decimal {
    /// The shortest decimal number that reads back as the float.
    pub(super) fn new(value: f64) -> Result<Self, Failure> {
        if !value.is_finite() {
            return Err(Failure::new(format!("Cannot create a Decimal from {value}")));
        }
        let text = format!("{:e}", value.abs());
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = mantissa
            .bytes()
            .filter(u8::is_ascii_digit)
            .map(|digit| digit - b'0');
        Ok(Self {
            negative: value < 0.0,
            digits: stripped(digits.collect()),
            exponent: power.parse::<i64>().unwrap_or(0) - i64::try_from(fraction).unwrap_or(0),
        })
    }

    /// The nearest float.
    pub(super) fn float(&self) -> f64 {
        if self.digits.is_empty() {
            return 0.0;
        }
        let digits: String = self.digits.iter().map(|digit| char::from(digit + b'0')).collect();
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{digits}e{}", self.exponent)
            .parse()
            .unwrap_or(f64::NAN)
    }

    fn scaled(&self, meter: &mut Meter, exponent: i64) -> Result<Vec<u8>, Failure> {
        let mut digits = self.digits.clone();
        let more = usize::try_from(self.exponent - exponent).unwrap_or(0);
        meter.text(digits.len().saturating_add(more))?;
        if !digits.is_empty() {
            digits.extend(std::iter::repeat_n(0, more));
        }
        Ok(digits)
    }

    /// The sum.
    pub(super) fn plus(&self, meter: &mut Meter, other: &Self) -> Result<Self, Failure> {
        let exponent = self.exponent.min(other.exponent);
        let (one, two) = (self.scaled(meter, exponent)?, other.scaled(meter, exponent)?);
        let (negative, digits) = if self.negative == other.negative {
            (self.negative, sum(&one, &two))
        } else if compare(&one, &two).is_ge() {
            (self.negative, difference(&one, &two))
        } else {
            (other.negative, difference(&two, &one))
        };
        Ok(Self {
            negative,
            digits,
            exponent,
        })
    }

    /// The number with the other sign.
    pub(super) fn negated(&self) -> Self {
        Self {
            negative: !self.negative,
            ..self.clone()
        }
    }

    /// The product.
    pub(super) fn times(&self, meter: &mut Meter, other: &Self) -> Result<Self, Failure> {
        meter.step((self.digits.len() * other.digits.len() / 64) as u64)?;
        meter.text(self.digits.len() + other.digits.len())?;
        let mut out = vec![0_u32; self.digits.len() + other.digits.len()];
        for (at, one) in self.digits.iter().rev().enumerate() {
            let mut carry = 0;
            for (by, two) in other.digits.iter().rev().enumerate() {
                let total = out[at + by] + u32::from(*one) * u32::from(*two) + carry;
                out[at + by] = total % 10;
                carry = total / 10;
            }
            out[at + other.digits.len()] += carry;
        }
        let digits = out
            .into_iter()
            .rev()
            .map(|digit| u8::try_from(digit).unwrap_or(0))
            .collect();
        Ok(Self {
            negative: self.negative != other.negative,
            digits: stripped(digits),
            exponent: self.exponent + other.exponent,
        })
    }

    /// The quotient, rounded to [`QUOTIENT_DIGITS`] behind the point, halves away from zero.
    pub(super) fn over(&self, meter: &mut Meter, other: &Self) -> Result<Self, Failure> {
        if other.digits.is_empty() {
            return Err(Failure::new("decimal division by 0"));
        }
        let shift = self.exponent - other.exponent + QUOTIENT_DIGITS;
        let power = |digits: &[u8], shift: i64| {
            let mut digits = digits.to_vec();
            digits.extend(std::iter::repeat_n(0, usize::try_from(shift).unwrap_or(0)));
            digits
        };
        meter.text(usize::try_from(shift.abs()).unwrap_or(usize::MAX))?;
        let (top, bottom) = (power(&self.digits, shift), power(&other.digits, -shift));
        meter.step((top.len() as u64).saturating_mul(bottom.len() as u64) / 64)?;
        let (mut digits, mut rest) = (Vec::new(), Vec::new());
        for digit in top {
            rest.push(digit);
            rest = stripped(rest);
            let mut times = 0;
            while compare(&rest, &bottom).is_ge() {
                rest = difference(&rest, &bottom);
                times += 1;
            }
            digits.push(times);
        }
        let mut digits = stripped(digits);
        if compare(&sum(&rest, &rest), &bottom).is_ge() {
            digits = sum(&digits, &[1]);
        }
        Ok(Self {
            negative: self.negative != other.negative,
            digits,
            exponent: -QUOTIENT_DIGITS,
        })
    }
}
