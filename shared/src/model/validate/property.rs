//! Rules of cluster properties and of the control plane's health.

use super::{InvalidValue, identity, text::dns_subdomain};
use crate::model::{
    ClusterProperty, Health, PropertyValue,
    fact::{FAILED_CHECKS_MAX, PROPERTY_VALUE_CHARACTERS_MAX},
};

/// Checks a property: its name, and that its value is in the form its length asks for.
pub fn cluster_property(property: &ClusterProperty) -> Result<(), InvalidValue> {
    property_name(&property.name)?;
    match &property.value {
        PropertyValue::Text(value) => match value.chars().count() {
            1..=PROPERTY_VALUE_CHARACTERS_MAX => Ok(()),
            count => {
                let problem = format!(
                    "has {count} characters; 1 to {PROPERTY_VALUE_CHARACTERS_MAX} travel as they are, \
                     a longer value as size and digest"
                );
                Err(InvalidValue::new("value", problem))
            }
        },
        PropertyValue::Oversize { characters, .. } if *characters <= PROPERTY_VALUE_CHARACTERS_MAX as u64 => {
            let problem = format!("has {characters} characters only; send the value itself");
            Err(InvalidValue::new("oversize", problem))
        }
        PropertyValue::Oversize { .. } => Ok(()),
    }
}

/// Checks a property's name.
pub fn property_name(name: &str) -> Result<(), InvalidValue> {
    dns_subdomain("name", name)
}

/// Checks a health: version, and checks that are bounded and sorted.
pub fn health(health: &Health) -> Result<(), InvalidValue> {
    if !health.kubernetes_version.is_empty() {
        identity("kubernetesVersion", &health.kubernetes_version)?;
    }
    let checks = &health.failed_checks;
    if checks.len() > FAILED_CHECKS_MAX {
        let problem = format!("are {}; name the first {FAILED_CHECKS_MAX}", checks.len());
        return Err(InvalidValue::new("failedChecks", problem));
    }
    for (index, check) in checks.iter().enumerate() {
        identity(&format!("failedChecks[{index}]"), check)?;
    }
    // One health has one form: otherwise an unchanged one would look changed.
    if !checks.is_sorted_by(|one, next| one < next) {
        return Err(InvalidValue::new(
            "failedChecks",
            "are not sorted, or one is there twice; sort them, each once",
        ));
    }
    Ok(())
}
