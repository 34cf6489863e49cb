"""Computes figures from records: every measure of every flow of a run, with its n and its uncertainty."""
