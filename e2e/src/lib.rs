//! tributary-e2e
