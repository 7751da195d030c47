//! A ClusterProperty of Kubernetes → a property of the model. A long value is stated, never cut.

use model::{
    ClusterProperty, PropertyValue,
    bytes::first_16,
    fact::PROPERTY_VALUE_CHARACTERS_MAX,
    validate::{self, InvalidValue},
};

/// Takes a property: its value, or size and digest of a value too long to travel.
pub fn property_from(property: &crate::ClusterProperty) -> Result<ClusterProperty, InvalidValue> {
    let value = property.spec.value.as_str();
    let characters = value.chars().count();
    let taken = ClusterProperty {
        name: property.metadata.name.as_deref().unwrap_or_default().into(),
        value: if characters <= PROPERTY_VALUE_CHARACTERS_MAX {
            PropertyValue::Text(value.into())
        } else {
            PropertyValue::Oversize {
                characters: characters as u64,
                digest: first_16(blake3::hash(value.as_bytes()).as_bytes()),
            }
        },
    };
    validate::cluster_property(&taken)?;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(name: &str, value: &str) -> Result<ClusterProperty, InvalidValue> {
        let spec = crate::ClusterPropertySpec { value: value.into() };
        property_from(&crate::ClusterProperty::new(name, spec))
    }

    #[test]
    fn values_travel_up_to_their_bound_in_characters_not_bytes() {
        let longest = "ü".repeat(PROPERTY_VALUE_CHARACTERS_MAX);
        assert_eq!(
            convert("a.b", &longest).unwrap().value,
            PropertyValue::Text(longest.as_str().into())
        );
        let longer = format!("{longest}x");
        let digest = first_16(blake3::hash(longer.as_bytes()).as_bytes());
        assert_eq!(
            convert("a.b", &longer).unwrap().value,
            PropertyValue::Oversize {
                characters: 1_025,
                digest
            }
        );
    }

    #[test]
    fn no_name_and_no_value_are_refused() {
        assert_eq!(convert("", "x").unwrap_err().field, "name");
        assert_eq!(convert("A", "x").unwrap_err().field, "name");
        assert_eq!(convert("a", "").unwrap_err().field, "value");
    }
}
