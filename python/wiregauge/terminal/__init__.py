"""What every command does on a terminal: a documented exit code, errors in one line, tables that are not cut.

0 done and within limits, 1 a limit failed, 2 bad input or usage, 3 this environment cannot run it, 4 incomplete.
"""

from wiregauge.terminal.exits import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, fail, say
from wiregauge.terminal.tables import print_table

__all__ = ["BAD_INPUT", "INCOMPLETE", "NO_ENVIRONMENT", "fail", "print_table", "say"]
