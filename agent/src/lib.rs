//! tributary-agent
