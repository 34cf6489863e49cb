"""Generated from crates/agent/proto/agent.proto by tools/generate_rpc.py."""
