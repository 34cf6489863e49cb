"""Executes the example notebook and writes its outputs into it; with --check, compares them with the stored ones.

Every figure in it comes from a simulation with a fixed seed, so all text that it prints is the same everywhere.
Pictures are not compared: fonts differ between machines.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parent.parent / "docs" / "guide" / "notebook.ipynb"
SECONDS = 60
COMPARED = ("text/plain", "text/html")


def execute(source: Any) -> Any:
    """The notebook with fresh outputs; it runs in its own directory."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory(prefix="wiregauge-notebook-") as folder:
        os.environ |= {"JUPYTER_RUNTIME_DIR": folder, "IPYTHONDIR": folder, "JUPYTER_PLATFORM_DIRS": "1"}
        place = Path(folder) / "work"
        place.mkdir()
        client = NotebookClient(source, timeout=SECONDS, resources={"metadata": {"path": str(place)}})
        made = client.execute()
    for cell in made.cells:
        cell.metadata = {}
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                output["data"] = {"image/svg+xml": data["image/svg+xml"]}
    made.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return made


def figures(notebook: Any) -> list[tuple[str, str]]:
    """All texts that the cells printed, with their cell."""
    return [
        (f"cell {number}", text if isinstance(text, str) else "".join(text))
        for number, cell in enumerate(notebook.cells, start=1)
        for output in cell.get("outputs", [])
        for text in (
            [output["text"]]
            if "text" in output
            else [output["data"][kind] for kind in COMPARED if kind in output.get("data", {})]
        )
    ]


def main() -> int:
    """Exit code 0 if equal, 1 if the outputs differ."""
    import nbformat

    kept = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]  # nbformat is untyped
    before = figures(kept)
    made = execute(kept)
    if "--check" not in sys.argv[1:]:
        nbformat.validate(made)
        nbformat.write(made, NOTEBOOK)  # type: ignore[no-untyped-call]  # nbformat is untyped
        return 0
    after = figures(made)
    for (where, old), (_, new) in zip(before, after, strict=False):
        if old != new:
            sys.stderr.write(f"{NOTEBOOK.name}, {where}: was\n{old}\nis\n{new}\n")
            return 1
    if len(before) != len(after) or not before:
        sys.stderr.write(
            f"{NOTEBOOK.name}: {len(before)} outputs kept, {len(after)} made; run `make notebook`\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
