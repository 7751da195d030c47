//! Tests of the fold: given/when/then by kind of event, tables for merging and conflicts, and laws.

#[cfg(test)]
mod brake;
#[cfg(test)]
mod certified;
#[cfg(test)]
mod conflicts;
#[cfg(test)]
mod connectivity;
#[cfg(test)]
mod explanations;
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) mod given;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod leaving;
#[cfg(test)]
mod legal;
#[cfg(test)]
mod listings;
#[cfg(test)]
mod lost;
#[cfg(test)]
mod membership;
#[cfg(test)]
mod model;
#[cfg(test)]
mod observations;
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) mod operations;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod ports;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod properties_of_laws;
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) mod shapes;
#[cfg(test)]
mod slices;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod tokens;
