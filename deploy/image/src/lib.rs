//! Owns: images and archives of the two programs, and what OCI images are in general.
//! Never: runs an image, or pushes one.

pub mod architecture;
pub mod command;
mod compile;
mod inspect;
pub mod layer;
pub mod layout;
mod native;
mod package;
mod reproduce;
mod run;
mod sbom;
mod source;
mod zig;
