//! Owns: what the objects of a cluster should be: its plan, from a class with its templates, the Cluster, and what is
//! there; which is made, changed, replaced by another or deleted, and why.
//! Never: a clock, a file, a server; never draws a name. [`offline`] does all of it for files.
//!
//! [`blueprint`] reads a class once for all its clusters, [`current`] finds existing objects, `kinds` compares their
//! kinds, [`upgrade`] chooses each part's next version and [`progress`] its progress, [`names`] makes names,
//! [`variables`] the values for patches; `parts`, `plane`, `workers` and `health` make the objects, [`compare`] finds
//! the differences, and [`plan`] is all of it in order. [`table`] and [`explain`] are plans as people read them.

pub mod blueprint;
pub mod change;
mod changes;
pub mod compare;
pub mod current;
pub mod explain;
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
