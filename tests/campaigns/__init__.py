"""Long seeded campaigns against the whole program: `make nightly`."""
