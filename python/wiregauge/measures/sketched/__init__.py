"""Figures of flows too large to be held in memory: counts from all messages, distributions from sketches.

Judging such a flow begins like any other, with the sample that is held. Then figures of all messages replace those of
the sample: every count, and every figure of a measure that tracking keeps a sketch of. The sample remains the source of
figures that need single messages: series, runs of losses, latency between points that have no measure of their own.
"""
