//! Owns: the proof that agent and hub need every right that the charts give them.
//! Never: lists rights (`rights` does).
//!
//! * `scenario`: what agent and hub do with their rights, under a deadline that is an argument.
//! * `red`: the command that takes each right away and wants to see its scenario fail.

pub mod red;
pub mod scenario;
