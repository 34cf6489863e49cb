"""Benchmarks against peers. Each prints ratios measured in one run; none asserts an absolute time."""
