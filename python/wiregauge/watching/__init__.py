"""`watch`: the streams of live interfaces, judged second by second by the same code as captures."""

from wiregauge.watching.alarms import PromiseAlarms
from wiregauge.watching.summaries import Summaries
from wiregauge.watching.watch import Second, Watcher, WatchError

__all__ = ["PromiseAlarms", "Second", "Summaries", "WatchError", "Watcher"]
