"""The bench of this machine's network namespaces."""
