"""The recipes for continuous integration: their shell is run as the two forges run it, run after run.

Everything but the installation is run. What a forge does itself (checkout, cache, artifacts) is only looked at.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

RECIPES = Path(__file__).resolve().parents[2] / "examples" / "ci"
TEST = """<test xmlns="urn:wiregauge:test:2" name="ci" seed="1">
<network><end-system name="a"/><end-system name="b"/><link between="a b" rate="100Mbit/s"/></network>
<flows><flow id="10" protocol="udp" from="a" to="b"/></flows>
<tasks><send flow="10" period="2ms" payload="64B" count="400"/><receive flow="10"/></tasks>
<limits><limit measure="lost" at-most="0"/></limits></test>"""
FAILING = TEST.replace('measure="lost" at-most="0"', 'measure="latency.max" at-most="1ns"')
SLOWER = TEST.replace("100Mbit/s", "10Mbit/s").replace('seed="1"', 'seed="2"')


def checked_out(place: Path) -> None:
    """A forge begins with the repository and its cache; the results of the run before are not there."""
    for name in ("junit.xml", "trend.html"):
        (place / name).unlink(missing_ok=True)


def shell(text: str, place: Path, *options: str, **variables: str) -> int:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path} | variables
    done = subprocess.run(
        ["bash", *options, "-c", text],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode


def github(place: Path, number: int) -> int:
    """The steps of the job: each in a shell of its own that ends at the first error; the job fails with a step."""
    job = yaml.safe_load((RECIPES / "github-actions.yml").read_text())["jobs"]["measure"]
    # The expressions that the recipe uses, and no other.
    known = {"github.run_number": str(number)}
    variables = {
        name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], value)
        for name, value in job["env"].items()
    }
    checked_out(place)
    failed = 0
    for step in job["steps"]:
        if "run" not in step or step["name"] == "Install":
            continue
        assert step.get("if", "success() || failure()") == "success() || failure()"
        if not failed or "if" in step:
            failed = shell(step["run"], place, "-e", **variables) or failed
    return failed


def gitlab(place: Path, number: int) -> int:
    """The lines of the job, in one shell that ends at the first error or failed pipe."""
    job = yaml.safe_load((RECIPES / "gitlab-ci.yml").read_text())["network"]
    variables = {
        name: value.replace("$CI_PIPELINE_IID", str(number)) for name, value in job["variables"].items()
    }
    checked_out(place)
    return shell("\n".join(job["script"]), place, "-e", "-o", "pipefail", **variables)


def failures(place: Path) -> int:
    """Limits that failed, of a JUnit file without errors."""
    suites = list(ET.parse(place / "junit.xml").getroot().iter("testsuite"))
    assert suites
    assert sum(int(suite.get("errors", 0)) for suite in suites) == 0
    return sum(int(suite.get("failures", 0)) for suite in suites)


@pytest.mark.parametrize("forge", [github, gitlab])
def test_a_recipe_passes_and_fails_with_its_network(
    forge: Callable[[Path, int], int], tmp_path: Path
) -> None:
    test = tmp_path / "test.xml"
    test.write_text(TEST)
    assert forge(tmp_path, 1) == 0
    assert not (tmp_path / "trend.html").exists(), "one run is no trend"
    assert failures(tmp_path) == 0
    assert forge(tmp_path, 2) == 0
    assert (tmp_path / "trend.html").stat().st_size > 1000
    # Ten times slower, and within its limits: the trend alone sees it.
    test.write_text(SLOWER)
    assert forge(tmp_path, 3) == 1
    assert failures(tmp_path) == 0
    test.write_text(FAILING)
    assert forge(tmp_path, 4) == 1
    assert failures(tmp_path) == 1
    test.write_text("<test/>")
    assert forge(tmp_path, 5) == 2


def kept(recipe: dict[str, Any], name: str) -> list[str]:
    """What the forge keeps of the job."""
    if name == "gitlab":
        return list(recipe["network"]["artifacts"]["paths"])
    (step,) = (one for one in recipe["jobs"]["measure"]["steps"] if "upload-artifact" in one.get("uses", ""))
    return str(step["with"]["path"]).split()


@pytest.mark.parametrize(("file", "name"), [("github-actions.yml", "github"), ("gitlab-ci.yml", "gitlab")])
def test_a_recipe_keeps_what_a_reader_opens(file: str, name: str) -> None:
    recipe = yaml.safe_load((RECIPES / file).read_text())
    found = kept(recipe, name)
    assert {"junit.xml", "trend.html"} <= set(found)
    assert any(path.endswith("/report.html") for path in found)
