"""What every command does on a terminal: it ends with a documented exit code, and says what is wrong in one line.

0 done and within limits, 1 a limit failed, 2 bad input or usage, 3 this environment cannot run it, 4 incomplete.
"""

from wiregauge.terminal.exits import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, fail, say

__all__ = ["BAD_INPUT", "INCOMPLETE", "NO_ENVIRONMENT", "fail", "say"]
