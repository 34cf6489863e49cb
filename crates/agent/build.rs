//! Generates the control plane from its contract, without an external protocol compiler.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/agent.proto");
    let files = protox::compile(["proto/agent.proto"], ["proto"])?;
    tonic_prost_build::configure().build_client(true).build_server(true).compile_fds(files)?;
    Ok(())
}
