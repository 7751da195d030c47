//! The name of an image, as a flag has it. Pure.

use std::str::FromStr;

/// An image, without its registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    /// The repository, as `team/tributary`.
    pub(super) repository: String,
    /// Empty: the version of the chart.
    pub(super) tag: String,
    /// As `sha256:…`; it wins over the tag.
    pub(super) digest: String,
}

impl FromStr for Image {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, digest) = text.split_once('@').unwrap_or((text, ""));
        let (repository, tag) = name.split_once(':').unwrap_or((name, ""));
        let wrong = repository.is_empty()
            || tag.contains(['/', ':'])
            || (text.contains('@') && !digest.starts_with("sha256:"));
        if wrong {
            return Err(
                "write REPOSITORY, REPOSITORY:TAG or REPOSITORY@sha256:DIGEST; the registry goes to --image-registry"
                    .to_owned(),
            );
        }
        Ok(Self {
            repository: repository.to_owned(),
            tag: tag.to_owned(),
            digest: digest.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_no_registry() {
        let image: Image = "tributary:1.2".parse().expect("an image");
        assert_eq!(
            (image.repository.as_str(), image.tag.as_str()),
            ("tributary", "1.2")
        );
        assert!("team/tributary@sha256:00".parse::<Image>().is_ok());
        for wrong in ["registry:5000/tributary", "tributary@1", "", "a:b:c"] {
            assert!(wrong.parse::<Image>().is_err(), "{wrong}");
        }
    }
}
