//! tributary-hub

pub mod log;
