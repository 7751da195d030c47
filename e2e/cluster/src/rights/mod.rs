//! Owns: the rights of the charts' accounts: the one table of them, what the charts' roles hold, what a cluster grants,
//! and what it denied.
//! Never: grants anything, or plays what needs a right (`permissions` does).
//!
//! * `table`: the rights, as `e2e/fixtures/permissions.yaml` lists them; a rule of the charts is a line there.
//! * `roles`: the rights in rendered roles, and the same roles without one of them.
//! * `ask`: whether an API server lets an account do something.
//! * `denied`: what the audit logs say was denied to the accounts.

pub mod ask;
pub mod denied;
pub mod roles;
mod table;

pub use table::{Account, Line, Right, Table};
