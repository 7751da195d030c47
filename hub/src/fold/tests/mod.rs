//! Tests of the fold: given/when/then by kind of event, tables for merging and conflicts, and laws.

mod brake;
mod certified;
mod conflicts;
mod connectivity;
mod explanations;
mod given;
mod imports;
mod keys;
mod leaving;
mod legal;
mod listings;
mod lost;
mod membership;
mod model;
mod observations;
mod operations;
mod policies;
mod ports;
mod profiles;
mod properties_of_laws;
mod shapes;
mod slices;
mod snapshots;
mod tokens;
