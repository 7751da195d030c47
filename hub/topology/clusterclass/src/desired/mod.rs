//! Owns: what the objects of a cluster should be: its plan, from a class with its templates, the Cluster, and what is
//! there; which is made, changed, replaced by another or deleted, and why.
//! Never: a clock, a file, a server; never draws a name. [`offline`] does all of it for files.
//!
//! [`blueprint`] reads a class once for all its clusters, [`current`] finds what is there, `kinds` compares their kinds, [`upgrade`] says who has which
//! version next and [`progress`] how far that is, [`names`] what is called how, [`variables`] what patches are told; `parts`, `plane`, `workers` and `health`
//! make the objects, `extended` asks extensions, [`compare`] finds the differences, and [`plan`] is all of it in order. [`dry`] is what a server says of it.
//! [`table`] and [`explain`] are plans as people read them.

pub mod blueprint;
pub mod change;
mod changes;
pub mod compare;
pub mod current;
pub mod dry;
pub mod explain;
mod extended;
mod health;
mod kinds;
mod named;
mod names;
pub mod objects;
pub mod offline;
mod overlay;
mod parts;
pub mod plan;
mod plane;
mod progress;
pub mod table;
mod upgrade;
mod variables;
mod versions;
mod workers;
