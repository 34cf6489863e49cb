"""Writes the generated part of each study's README. `make reference` runs it.

The READMEs are committed; a test makes that part again and compares.
"""

from __future__ import annotations

from wiregauge.studies import names, open_study
from wiregauge.studies.readme import readme


def main() -> None:
    """Writes the READMEs."""
    for name in names():
        study = open_study(name)
        text = readme(study)
        (study.folder / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
