//! The parts of scenarios beside clustersets; the scenarios are in `tests/e2e`. Never shipped.
//!
//! * [`suite`]: how tests are registered and run.
//! * [`permissions`]: that each right of the charts' accounts is needed.
//! * [`reference`]: the generated pages of docs/reference.
//! * [`verify`]: compares our plans and templates with those of upstream.

pub mod permissions;
pub mod reference;
pub mod suite;
pub mod verify;
