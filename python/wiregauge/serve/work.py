"""Work that takes long, in a process of its own: judging, reports, comparisons.

The server answers meanwhile, and the memory that judging takes is given back when the process ends. One piece of work
is done at a time; a page that waits for one asks again. Nothing is written below the folders.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from multiprocessing.connection import Connection
from typing import Any, Final

from msgspec import Struct, field

__all__ = ["Answer", "Work"]

MOST_KEPT: Final = 12
"""Answers that are kept for the next viewer."""
_SPAWN: Final = multiprocessing.get_context("spawn")


class Answer(Struct):
    """What became of a piece of work. `error` is a sentence for the viewer; empty where there is none."""

    done: threading.Event = field(default_factory=threading.Event)
    text: str = ""
    error: str = ""


def _in_process(send: Connection, function: Callable[..., str], given: tuple[Any, ...]) -> None:
    import signal

    from wiregauge.bounds import NoAnswerError
    from wiregauge.bounds.against import NotComparableError
    from wiregauge.config import TestError
    from wiregauge.measures.comparing import MatchError
    from wiregauge.records import RunDirectoryError

    # Ctrl-C is for the server, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    expected = (RunDirectoryError, TestError, MatchError, NoAnswerError, NotComparableError)
    try:
        send.send(("", function(*given)))
    except expected as error:
        send.send((str(error), ""))
    except MemoryError:
        send.send(("there is not enough memory for it", ""))
    finally:
        send.close()


class Work:
    """Pieces of work by name, with the last answers."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._known = threading.Lock()
        self._turn = threading.Lock()
        self._processes: set[Any] = set()

    def of(self, name: Hashable, function: Callable[..., str], *given: Any) -> Answer:
        """The answer under a name that determines it; begins the work if nobody did."""
        with self._known:
            answer = self._answers.get(name)
            if answer is None:
                answer = self._answers[name] = Answer()
                threading.Thread(target=self._do, args=(answer, function, given), daemon=True).start()
            self._answers.move_to_end(name)
            while len(self._answers) > MOST_KEPT and next(iter(self._answers.values())).done.is_set():
                self._answers.popitem(last=False)
        return answer

    def close(self) -> None:
        """Ends the process at work, if there is one."""
        for process in list(self._processes):
            process.kill()

    def _do(self, answer: Answer, function: Callable[..., str], given: tuple[Any, ...]) -> None:
        receive, send = _SPAWN.Pipe(duplex=False)
        with self._turn:
            process = _SPAWN.Process(target=_in_process, args=(send, function, given), daemon=True)
            try:
                process.start()
                self._processes.add(process)
                send.close()
                answer.error, answer.text = receive.recv()
            except (EOFError, OSError):
                answer.error = "the work ended without an answer; the terminal of the server shows why"
            finally:
                receive.close()
                process.join()
                self._processes.discard(process)
        answer.done.set()
