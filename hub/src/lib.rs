//! tributary-hub
