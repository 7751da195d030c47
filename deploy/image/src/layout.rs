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
        let labels = labels.map(|(name, value)| (format!("org.opencontainers.image.{name}"), value.to_owned()));
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
        let name = [("org.opencontainers.image.ref.name".to_owned(), self.source.version.clone())];
        image.set_annotations(Some(name.into()));
        let named = ImageIndexBuilder::default()
            .schema_version(SCHEMA_VERSION)
            .media_type(MediaType::ImageIndex)
            .manifests(vec![image])
            .build()?;
        let layout = OciLayoutBuilder::default().image_layout_version("1.0.0").build()?;
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
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
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
