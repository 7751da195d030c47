//! Owns: an OCI image layout: blobs by digest, a manifest for each architecture, the index over them.
//! Never: compiles, or knows what the programs do.

use std::{fs, path::Path};

use anyhow::Context;
use oci_spec::image::{
    ConfigBuilder, Descriptor, DescriptorBuilder, ImageConfigurationBuilder, ImageIndexBuilder,
    ImageManifestBuilder, MediaType, OciLayoutBuilder, Os, PlatformBuilder, RootFsBuilder, SCHEMA_VERSION,
    Sha256Digest,
};
use sha2::{Digest, Sha256};

use crate::{
    architecture::Architecture,
    layer::{self, File},
    source::Source,
};

/// Neither root nor any user that a machine knows.
const USER: &str = "65532:65532";
/// The pod's command names a program; without one the image says how it is used.
const COMMAND: [&str; 2] = ["/usr/local/bin/tributary-hub", "--help"];
/// Compressed, one architecture stays below so many bytes.
const LAYER_BYTES_MAX: usize = 15 << 20;

/// The layout as files, to be written into a directory or an archive.
pub(crate) struct Layout<'a> {
    source: &'a Source,
    files: Vec<File>,
    manifests: Vec<Descriptor>,
}

impl<'a> Layout<'a> {
    /// One without an image.
    pub(crate) fn new(source: &'a Source) -> Self {
        Self {
            source,
            files: Vec::new(),
            manifests: Vec::new(),
        }
    }

    /// Adds the image of one architecture, with these files in it; how many bytes it has compressed.
    pub(crate) fn add(&mut self, architecture: Architecture, content: &[File]) -> anyhow::Result<usize> {
        let archive = layer::archive(content, self.source.created)?;
        let unpacked = digest(&archive)?;
        let layer = layer::compressed(&archive)?;
        let size = layer.len();
        anyhow::ensure!(
            size <= LAYER_BYTES_MAX,
            "the image of {architecture} has {size} bytes compressed; at most {LAYER_BYTES_MAX} are wanted"
        );
        let layer = self.blob(MediaType::ImageLayerGzip, layer)?;
        let config = self.config(architecture, &unpacked)?;
        let config = self.blob(MediaType::ImageConfig, config)?;
        let manifest = ImageManifestBuilder::default()
            .schema_version(SCHEMA_VERSION)
            .media_type(MediaType::ImageManifest)
            .config(config)
            .layers(vec![layer])
            .build()?;
        let mut manifest = self.blob(MediaType::ImageManifest, manifest.to_string()?.into_bytes())?;
        let platform = PlatformBuilder::default()
            .architecture(architecture.oci())
            .os(Os::Linux)
            .build()?;
        manifest.set_platform(Some(platform));
        self.manifests.push(manifest);
        Ok(size)
    }

    fn config(&self, architecture: Architecture, layer: &Sha256Digest) -> anyhow::Result<Vec<u8>> {
        let labels = [
            ("title", "tributary"),
            ("version", &self.source.version),
            ("revision", &self.source.revision),
            ("licenses", "Apache-2.0"),
        ];
        let labels =
            labels.map(|(name, value)| (format!("org.opencontainers.image.{name}"), value.to_owned()));
        let config = ConfigBuilder::default()
            .user(USER)
            .cmd(COMMAND.map(String::from).to_vec())
            .working_dir("/")
            .labels(std::collections::HashMap::from(labels))
            .build()?;
        let layers = RootFsBuilder::default()
            .typ("layers")
            .diff_ids(vec![format!("sha256:{}", layer.digest())])
            .build()?;
        let configuration = ImageConfigurationBuilder::default()
            .architecture(architecture.oci())
            .os(Os::Linux)
            .config(config)
            .rootfs(layers)
            .build()?;
        // Through a value, whose maps are ordered: the labels of the library are not.
        Ok(serde_json::to_vec(&serde_json::to_value(configuration)?)?)
    }

    fn blob(&mut self, kind: MediaType, bytes: Vec<u8>) -> anyhow::Result<Descriptor> {
        let digest = digest(&bytes)?;
        let descriptor = DescriptorBuilder::default()
            .media_type(kind)
            .digest(digest.clone())
            .size(bytes.len() as u64)
            .build()?;
        self.files.push(File {
            path: format!("blobs/sha256/{}", digest.digest()),
            mode: 0o644,
            bytes,
        });
        Ok(descriptor)
    }

    /// All files, the index last: who finds it finds everything.
    pub(crate) fn into_files(mut self) -> anyhow::Result<Vec<File>> {
        let index = ImageIndexBuilder::default()
            .schema_version(SCHEMA_VERSION)
            .media_type(MediaType::ImageIndex)
            .manifests(std::mem::take(&mut self.manifests))
            .build()?;
        let mut image = self.blob(MediaType::ImageIndex, index.to_string()?.into_bytes())?;
        let name = [(
            "org.opencontainers.image.ref.name".to_owned(),
            self.source.version.clone(),
        )];
        image.set_annotations(Some(name.into()));
        let named = ImageIndexBuilder::default()
            .schema_version(SCHEMA_VERSION)
            .media_type(MediaType::ImageIndex)
            .manifests(vec![image])
            .build()?;
        let layout = OciLayoutBuilder::default()
            .image_layout_version("1.0.0")
            .build()?;
        let mut files = self.files;
        files.push(text("oci-layout", layout.to_string()?));
        files.push(text("index.json", named.to_string()?));
        Ok(files)
    }
}

fn text(path: &str, text: String) -> File {
    File {
        path: path.into(),
        mode: 0o644,
        bytes: text.into_bytes(),
    }
}

fn digest(bytes: &[u8]) -> anyhow::Result<Sha256Digest> {
    Ok(hexadecimal(bytes).parse()?)
}

/// The sha256 of bytes, as people and files write it.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Writes files into a directory.
pub(crate) fn write(files: &[File], directory: &Path) -> anyhow::Result<()> {
    for File { path, bytes, .. } in files {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    fn source() -> Source {
        Source {
            root: "/".into(),
            target: "/".into(),
            version: "1.2.3".into(),
            revision: "c0ffee".into(),
            created: 7,
        }
    }

    fn program(bytes: Vec<u8>) -> Vec<File> {
        vec![File {
            path: "usr/local/bin/program".into(),
            mode: 0o555,
            bytes,
        }]
    }

    fn files() -> BTreeMap<String, Vec<u8>> {
        let source = source();
        let mut layout = Layout::new(&source);
        for (architecture, bytes) in Architecture::ALL.into_iter().zip([b"one", b"two"]) {
            layout.add(architecture, &program(bytes.to_vec())).unwrap();
        }
        let files = layout.into_files().unwrap();
        files.into_iter().map(|file| (file.path, file.bytes)).collect()
    }

    /// What a descriptor names: it must be there, with that digest and that size.
    fn named<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'a [u8] {
        let digest = descriptor["digest"]
            .as_str()
            .unwrap()
            .strip_prefix("sha256:")
            .unwrap();
        let bytes = &files[&format!("blobs/sha256/{digest}")];
        assert_eq!(
            (hexadecimal(bytes).as_str(), Some(bytes.len() as u64)),
            (digest, descriptor["size"].as_u64())
        );
        bytes
    }

    fn json(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn the_index_leads_to_each_architectures_programs() {
        let files = files();
        assert_eq!(
            json(&files["oci-layout"]),
            serde_json::json!({"imageLayoutVersion": "1.0.0"})
        );
        let top = json(&files["index.json"]);
        assert_eq!(
            top["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"],
            "1.2.3"
        );
        let image = json(named(&files, &top["manifests"][0]));
        for (index, (name, text)) in [("amd64", "one"), ("arm64", "two")].into_iter().enumerate() {
            let descriptor = &image["manifests"][index];
            assert_eq!(
                descriptor["platform"],
                serde_json::json!({"architecture": name, "os": "linux"})
            );
            let manifest = json(named(&files, descriptor));
            let config = json(named(&files, &manifest["config"]));
            assert_eq!(
                (&config["architecture"], &config["config"]["User"]),
                (&name.into(), &USER.into())
            );
            let mut unpacked = Vec::new();
            let layer = flate2::read::GzDecoder::new(named(&files, &manifest["layers"][0]));
            std::io::copy(&mut { layer }, &mut unpacked).unwrap();
            assert_eq!(
                config["rootfs"]["diff_ids"][0],
                format!("sha256:{}", hexadecimal(&unpacked))
            );
            let mut archive = tar::Archive::new(&*unpacked);
            let mut entries = archive.entries().unwrap().map(Result::unwrap);
            let program = entries.find(|entry| entry.path_bytes().ends_with(b"/program"));
            let program = program.unwrap();
            assert_eq!(program.header().mode().unwrap(), 0o555);
            assert_eq!(std::io::read_to_string(program).unwrap(), text);
        }
    }

    #[test]
    fn equal_programs_give_an_equal_layout() {
        assert_eq!(files(), files());
    }

    #[test]
    fn what_is_too_large_is_no_image() {
        // No two bytes in a row are alike to gzip.
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        let source = source();
        let error = Layout::new(&source)
            .add(
                Architecture::Amd64,
                &program(noise.take(LAYER_BYTES_MAX + 1).collect()),
            )
            .unwrap_err();
        assert!(error.to_string().starts_with("the image of amd64 has"), "{error}");
    }
}
