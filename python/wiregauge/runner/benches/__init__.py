"""The benches, one class each, and what each cannot carry."""
