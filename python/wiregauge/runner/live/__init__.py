"""Live figures of a run, and what acts on them: alarms, their commands, the endpoint, a bound on the disk."""
