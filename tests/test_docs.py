"""The documentation is true: links lead somewhere, and command blocks do what they show.

Every fenced `bash` block of the README and of docs/ is run, in order, in one copy of the checkout for each document.
A block that cannot run here says why, on the line before it: `<!-- not run: it needs an MI300X -->`. What `.ci/run`
runs as it stands, `make demo` and the like, is not run a second time.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, run_command

README = REPOSITORY / "README.md"
DOCUMENTS = [README, *sorted(REPOSITORY.glob("docs/**/*.md"))]
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^(?:<!-- not run: (?P<reason>.+?) -->\n+)?```bash\n(?P<script>.*?)^```", re.MULTILINE | re.DOTALL)
RUN_BY_CI = set(re.findall(r"^run_part (.+)$", (REPOSITORY / ".ci" / "run").read_text(), re.MULTILINE))
NOT_COPIED = shutil.ignore_patterns(".*", "outputs", "multirun", "__pycache__", "build", "dist")


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One command block of a document."""

    line: int
    """Line of the document on which the block starts."""
    script: str


def name_of(document: Path) -> str:
    """The document's path in the repository."""
    return str(document.relative_to(REPOSITORY))


def read_blocks(document: Path) -> list[Block]:
    """The blocks of a document that are meant to run."""
    text = document.read_text()
    return [
        Block(line=text.count("\n", 0, found.start("script")), script=found["script"])
        for found in BLOCK.finditer(text)
        if not found["reason"] and found["script"].strip() not in RUN_BY_CI
    ]


def relative_links(document: Path) -> Iterator[tuple[str, str]]:
    """Path and anchor of every link that stays in the repository; no path: a link into the same document."""
    for found in LINK.finditer(CODE.sub("", document.read_text())):
        if not re.match(r"[a-z]+:", found["target"]):
            path, _, anchor = found["target"].partition("#")
            yield path, anchor


def anchors_of(document: Path) -> set[str]:
    """Anchors of a document's headings, made as code forges make them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_stays_short() -> None:
    assert len(README.read_text().splitlines()) < 150


@pytest.mark.parametrize("document", [*DOCUMENTS, *REPOSITORY.glob("C*.md")], ids=name_of)
def test_every_relative_link_resolves(document: Path) -> None:
    dead = []
    for path, anchor in relative_links(document):
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            dead.append(f"{path}#{anchor}")
    assert dead == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("document", [document for document in DOCUMENTS if read_blocks(document)], ids=name_of)
def test_every_command_block_runs(document: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "primus_hydra"
    shutil.copytree(REPOSITORY, checkout, ignore=NOT_COPIED)
    (checkout / ".venv").symlink_to(sys.prefix)
    environment = {"PATH": f"{checkout}/.venv/bin{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(checkout)}
    for block in read_blocks(document):
        command = ["bash", "-euo", "pipefail", "-c", block.script]
        finished = run_command(command, checkout, environment, timeout_s=300)
        where = f"{name_of(document)}:{block.line}"
        assert finished.code == 0, f"{where}\n{block.script}{finished.out}{finished.err}"
