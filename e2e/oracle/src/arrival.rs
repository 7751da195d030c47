//! The clusters that an export names in its condition `tributary.dev/Arrived`.

use serde_json::Value;

/// The type of the condition.
pub const ARRIVED: &str = "tributary.dev/Arrived";

/// Checks that an export says where it arrived, and that nothing of it is to come by itself.
pub fn arrival_is_said(export: &Value) -> anyhow::Result<()> {
    let name = &export["metadata"]["name"];
    let conditions = export["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let arrived = conditions.find(|condition| condition["type"] == ARRIVED);
    let said = arrived.and_then(|condition| condition["message"].as_str());
    let said = said.unwrap_or("nothing");
    anyhow::ensure!(
        said.starts_with("in ") && !said.contains("not yet in") && !said.contains("not known of"),
        "the export {name} says of where it arrived: {said}"
    );
    Ok(())
}
