//! `tributary status`, `get` and `explain`: what the hub knows now.
//!
//! * `pages.rs`: all pages of an answer. `problems.rs`: what needs attention; it asks nobody.
//! * `arrival.rs`: where an import arrived; it asks nobody.

mod arrival;
mod explain;
mod get;
pub(crate) mod pages;
mod problems;
mod status;

pub use explain::ExplainArgs;
pub(crate) use explain::explain;
pub use get::GetArgs;
pub(crate) use get::get;
pub use status::StatusArgs;
pub(crate) use status::status;

use shared::model::ServiceKey;

/// Reads NAMESPACE/NAME.
fn service(text: &str) -> Result<ServiceKey, String> {
    let (namespace, name) = text.split_once('/').ok_or("write it as NAMESPACE/NAME")?;
    ServiceKey::new(namespace, name).map_err(|error| error.to_string())
}

/// The lines of a table below its title; nothing without rows.
fn section(title: &str, header: &[&str], rows: Vec<Vec<String>>, output: crate::output::Output) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let header = header.iter().map(|&name| name.to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    format!("\n{title}\n{}", crate::output::table(&rows, output))
}
