"""The testmaster: makes the runs of a plan on agents."""
