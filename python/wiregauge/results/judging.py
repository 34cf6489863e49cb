"""Judges a run directory and stores the result: `measures.json`, and the details of each flow of large runs."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable, Collection
from contextlib import nullcontext
from itertools import chain
from pathlib import Path

from wiregauge.files import cure_for, whole
from wiregauge.measures.extremes import keep
from wiregauge.measures.judge import evaluate
from wiregauge.measures.large import are_many, large_run
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.records import uncollected, write_sealed
from wiregauge.results.show_json import details, details_file, show_chunks

__all__ = ["judge"]


def _warned(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)


def judge(
    run_dir: Path,
    *,
    unkept: Callable[[str], object] = _warned,
    in_full: Collection[int] = (),
    held: bool = False,
) -> Judgement:
    """Judges everything in `run_dir` and writes `measures.json` there, and the extremes that figures draw.

    In a run with more flows than `large.MANY`, latency between every two points is judged only for the flows `in_full`,
    by number, or where a limit is on it.

    A directory that cannot be written (an archive, a full disk) is still judged and stays unchanged: `unkept` gets a
    sentence for the user, by default as a warning. `held`: the caller holds the directory's lock. Raises
    RunDirectoryError, whose text is such a sentence, when the directory cannot be read.
    """
    directory = open_recorded(run_dir)
    with uncollected() if any(are_many(run.flows) for run in directory.plan.runs) else nullcontext():
        directory = keep(directory, unkept, held=held)
        judgement = evaluate(directory, in_full)
        _store(directory, judgement, unkept)
    return judgement


def _store(directory: Recorded, judgement: Judgement, unkept: Callable[[str], object]) -> None:
    path = directory.path / "measures.json"
    try:
        _write_details(directory.path, judgement)
        _write(path, directory, judgement)
    except OSError as error:
        unkept(
            f"{path}: the judgement is not kept ({error.strerror or error}); {cure_for(error)}, "
            f"then `wiregauge show {directory.path}` keeps it"
        )


def _write(path: Path, directory: Recorded, judgement: Judgement) -> None:
    """Replaces `path` completely or not at all; raises OSError where the disk refuses.

    It carries its own digest and that of the manifest it was made from, which holds those of all other files.
    """
    digest = directory.manifest.get("digest")
    sources = {"manifest.json": digest} if digest is not None else {}
    with whole(path) as beside:
        write_sealed(beside, chain(show_chunks(judgement, {"digest": "", "sources": sources}, {}), ["\n"]))


def _write_details(run_dir: Path, judgement: Judgement) -> None:
    """Writes all figures of each flow to files of their own for runs with very many; raises OSError as `_write`.

    Compression makes them a fifth as long at the least effort; more would take time from the figures.
    """
    for run in filter(large_run, judgement.runs):
        path = run_dir / details_file(run.plan.index)
        path.parent.mkdir(exist_ok=True)
        with whole(path) as beside, gzip.open(beside, "wb", compresslevel=1) as file:
            file.writelines(details(judgement, run))
