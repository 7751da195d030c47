//! Owns: an OCI image layout: blobs by digest, a manifest for each architecture, the index over them.
//! Never: compiles, or knows what the programs do.

use std::{collections::HashMap, fs, path::Path};

use anyhow::Context;
use oci_spec::image::{
    ConfigBuilder, Descriptor, DescriptorBuilder, ImageConfigurationBuilder, ImageIndexBuilder,
    ImageManifestBuilder, MediaType, OciLayoutBuilder, Os, PlatformBuilder, RootFsBuilder, SCHEMA_VERSION,
    Sha256Digest,
};
use sha2::{Digest, Sha256};

use crate::{
    architecture::Architecture,
    layer::{self, Effort, File},
};

/// The annotation that names an image in an index: by a tag, or by its whole name.
const REFERENCE: &str = "org.opencontainers.image.ref.name";
/// The annotation in which containerd looks for a whole name first.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// The program and the user of an image's container.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    /// User and group; the runtime's choice without it.
    pub user: Option<&'static str>,
    /// The program with what always comes first.
    pub entrypoint: Vec<String>,
    /// The rest, which may be replaced when a container is started.
    pub command: Vec<String>,
    /// Labels of the image.
    pub labels: Vec<(String, String)>,
}

/// The layout as files, to be written into a directory or an archive.
pub struct Layout {
    /// Name of the image in its index: a name or a tag.
    name: String,
    effort: Effort,
    files: Vec<File>,
    manifests: Vec<Descriptor>,
}

impl Layout {
    /// One without an image.
    pub fn new(name: &str, effort: Effort) -> Self {
        Self {
            name: name.to_owned(),
            effort,
            files: Vec::new(),
            manifests: Vec::new(),
        }
    }

    /// Adds the image of one architecture, with this archive as its one layer; how many bytes it has compressed.
    pub fn add(&mut self, architecture: Architecture, archive: &[u8], runs: &Runs) -> anyhow::Result<usize> {
        let layer = layer::compressed(archive, self.effort)?;
        let size = layer.len();
        let layer = self.blob(MediaType::ImageLayerGzip, layer)?;
        let config = configuration(architecture, &digest(archive)?, runs)?;
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
    pub fn into_files(mut self) -> anyhow::Result<Vec<File>> {
        let index = ImageIndexBuilder::default()
            .schema_version(SCHEMA_VERSION)
            .media_type(MediaType::ImageIndex)
            .manifests(std::mem::take(&mut self.manifests))
            .build()?;
        let mut image = self.blob(MediaType::ImageIndex, index.to_string()?.into_bytes())?;
        let mut name = vec![(REFERENCE.to_owned(), self.name.clone())];
        if self.name.contains('/') {
            // A tag alone names no image to containerd.
            name.push((CONTAINERD_NAME.to_owned(), self.name));
        }
        image.set_annotations(Some(name.into_iter().collect()));
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

fn configuration(architecture: Architecture, layer: &Sha256Digest, runs: &Runs) -> anyhow::Result<Vec<u8>> {
    let mut config = ConfigBuilder::default()
        .entrypoint(runs.entrypoint.clone())
        .cmd(runs.command.clone())
        .working_dir("/")
        .labels(runs.labels.iter().cloned().collect::<HashMap<_, _>>());
    if let Some(user) = runs.user {
        config = config.user(user);
    }
    let layers = RootFsBuilder::default()
        .typ("layers")
        .diff_ids(vec![format!("sha256:{}", layer.digest())])
        .build()?;
    let configuration = ImageConfigurationBuilder::default()
        .architecture(architecture.oci())
        .os(Os::Linux)
        .config(config.build()?)
        .rootfs(layers)
        .build()?;
    // Through a value, whose maps are ordered: the labels of the library are not.
    Ok(serde_json::to_vec(&serde_json::to_value(configuration)?)?)
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
pub fn hexadecimal(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Writes files into a directory.
pub fn write(files: &[File], directory: &Path) -> anyhow::Result<()> {
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

    const USER: &str = "65532:65532";

    fn program(bytes: Vec<u8>) -> Vec<File> {
        vec![File {
            path: "usr/local/bin/program".into(),
            mode: 0o555,
            bytes,
        }]
    }

    fn files() -> BTreeMap<String, Vec<u8>> {
        let mut layout = Layout::new("1.2.3", Effort::Best);
        let runs = Runs {
            user: Some(USER),
            labels: vec![("b".into(), "2".into()), ("a".into(), "1".into())],
            ..Runs::default()
        };
        for (architecture, bytes) in Architecture::ALL.into_iter().zip([b"one", b"two"]) {
            let archive = layer::archive(&program(bytes.to_vec()), 7).unwrap();
            layout.add(architecture, &archive, &runs).unwrap();
        }
        let files = layout.into_files().unwrap();
        files.into_iter().map(|file| (file.path, file.bytes)).collect()
    }

    /// Returns the blob of a descriptor, and checks its digest and size.
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
}
