"""Figures of flows too large to be held in memory: counts from all messages, distributions from sketches.

Judging such a flow begins like any other, with the sample that is held, and what the sample cannot say of the whole is
then put in its place: every count, and every figure of a measure that tracking keeps a sketch of. What remains of the
sample is what needs single messages: series, runs of losses, latency between points that have no measure of their own.
"""
