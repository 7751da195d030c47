//! Compiles the part of etcd's interface that is used, without protoc.

const FILE: &str = "proto/etcd.proto";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed={FILE}");
    let descriptors = protox::compile([FILE], ["."])?;
    tonic_prost_build::configure()
        .build_server(false)
        .bytes(".etcdserverpb.KeyValue.value")
        .compile_fds(descriptors)?;
    Ok(())
}
