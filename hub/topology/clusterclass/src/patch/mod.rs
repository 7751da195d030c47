//! Owns: the patches of a ClusterClass: what they are, the rules that they keep, and what they make of the templates of
//! one cluster.
//! Never: a clock, a file, a server; never applies half of a patch's definition. [`limits`] bounds what the patches of
//! one class may take.
//!
//! The patches of a class are [`read`] and [`check`]ed, and with the [`target`]s of a [`cluster`] they [`apply`]. [`external`] ones are made by
//! extensions. [`offline`] does all of it for files.

pub mod apply;
mod builtins;
pub mod check;
pub mod cluster;
pub mod definition;
pub mod document;
pub mod external;
pub mod finding;
pub mod limits;
mod lookup;
mod numbers;
pub mod offline;
mod operation;
pub mod owned;
pub mod print;
pub mod read;
mod select;
pub mod target;
pub(super) mod values;
