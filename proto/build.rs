//! Compiles the contract without protoc and keeps its descriptor for server reflection.

use std::{env, fs, path::PathBuf};

use prost::Message as _;

const FILES: [&str; 11] = [
    "tributary/v1/answer.proto",
    "tributary/v1/fact.proto",
    "tributary/v1/event.proto",
    "tributary/v1/sync.proto",
    "tributary/v1/desired.proto",
    "tributary/v1/state.proto",
    "tributary/v1/membership.proto",
    "tributary/v1/policy.proto",
    "tributary/v1/snapshot.proto",
    "tributary/v1/join.proto",
    "tributary/v1/token.proto",
];

/// The attribute of the module of each client and server.
const SERVICES: &str = "#[cfg(feature = \"services\")]";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in FILES {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(FILES, ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?).join("tributary_v1.bin");
    fs::write(out, descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .codec_path("crate::SmallBuffers")
        .client_mod_attribute(".", SERVICES)
        .server_mod_attribute(".", SERVICES)
        .bytes(".tributary.v1.Desired.items")
        .bytes(".tributary.v1.Observation.fact")
        .bytes(".tributary.v1.StoredEvent.fact")
        .bytes(".tributary.v1.StoredEvent.fact_difference")
        .bytes(".tributary.v1.SnapshotFact.fact")
        .bytes(".tributary.v1.SnapshotTakenBack.fact")
        .compile_fds(descriptors)?;
    Ok(())
}
