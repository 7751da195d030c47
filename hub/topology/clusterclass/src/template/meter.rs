//! Owns: what one rendering has taken so far, and the maps that it made.
//! Never: lets a map be dropped while others may hold it: `set` can make maps hold themselves, or nest them so
//! deep that dropping them would overflow the stack.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use super::{
    limits::{Failure, MAX_BYTES, MAX_ITEMS, MAX_STEPS, MAX_TEXT},
    value::{Dict, Element, Entries, Text, Value},
};

/// Bytes that a function reads for one step.
const BYTES_PER_STEP: usize = 256;
/// Bytes that an element of a list counts for.
const ITEM_BYTES: usize = 64;

/// The cost of one rendering so far.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    steps: u64,
    bytes: usize,
    maps: Vec<Entries>,
    /// Nothing is counted.
    free: bool,
}

impl Meter {
    /// For a file that a person gave, whose size is bounded.
    pub(crate) fn of_a_file() -> Self {
        let mut meter = Self::default();
        meter.free = true;
        meter
    }

    /// Counts steps.
    pub(crate) fn step(&mut self, steps: u64) -> Result<(), Failure> {
        if self.free {
            return Ok(());
        }
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS {
            return Err(Failure::new(format!("takes more than {MAX_STEPS} steps")));
        }
        Ok(())
    }

    /// Steps so far, at most [`MAX_STEPS`].
    pub(crate) fn steps(&self) -> u64 {
        self.steps.min(MAX_STEPS)
    }

    /// Counts bytes that are read.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), Failure> {
        self.step((bytes / BYTES_PER_STEP) as u64)
    }

    /// Counts a text that a function is about to return.
    pub(crate) fn text(&mut self, length: usize) -> Result<(), Failure> {
        if length > MAX_TEXT && !self.free {
            return Err(Failure::new(format!(
                "makes a text of more than {MAX_TEXT} bytes"
            )));
        }
        self.hold(length)
    }

    /// Counts a list that a function is about to return.
    pub(crate) fn items(&mut self, length: usize) -> Result<(), Failure> {
        if length > MAX_ITEMS && !self.free {
            return Err(Failure::new(format!(
                "makes a list of more than {MAX_ITEMS} elements"
            )));
        }
        self.hold(length * ITEM_BYTES)
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES && !self.free {
            return Err(Failure::new(format!(
                "makes more than {MAX_BYTES} bytes of values"
            )));
        }
        self.read(bytes)
    }

    /// A map of these entries.
    pub(crate) fn dict(&mut self, entries: BTreeMap<Text, Value>) -> Result<Value, Failure> {
        self.dict_of(entries, Element::Any)
    }

    /// A map of these entries, which are of one type.
    pub(crate) fn dict_of(
        &mut self,
        entries: BTreeMap<Text, Value>,
        element: Element,
    ) -> Result<Value, Failure> {
        self.items(entries.len() + 1)?;
        let entries = Rc::new(RefCell::new(entries));
        self.maps.push(Rc::clone(&entries));
        Ok(Value::Dict(Dict {
            entries,
            element,
            nil: false,
        }))
    }
}

impl Drop for Meter {
    /// Empties every map first, so that none is dropped within another.
    fn drop(&mut self) {
        let mut values = Vec::new();
        for map in &self.maps {
            values.extend(std::mem::take(&mut *map.borrow_mut()).into_values());
        }
        drop(values);
    }
}
