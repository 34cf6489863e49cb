"""The command line. Every command ends with a documented code (`wiregauge.terminal`), never with a traceback."""

from wiregauge.cli.program import app, main

__all__ = ["app", "main"]
