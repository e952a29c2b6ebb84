"""Fixtures shared by the tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def pytest_configure() -> None:
    """Let Ctrl-C reach the programs under test even where a shell started pytest in its background, ignoring it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """What one command left behind."""

    code: int
    """The exit code."""
    out: str
    err: str


class RunCli(Protocol):
    """Type of the `run_cli` fixture."""

    def __call__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout_s: float = 120,
    ) -> Finished:
        """Run the program in its own process group; see `run_cli`."""


@pytest.fixture(scope="module")
def hydra_app() -> Iterator[None]:
    """Hydra's compose API over the shipped presets, with our schema and resolvers."""
    # Imported here: only the tests that compose in this process pay for Hydra.
    from hydra import initialize_config_dir

    from primus_hydra.paths import conf_dir
    from primus_hydra.resolvers import register_resolvers
    from primus_hydra.schema import register

    register()
    register_resolvers()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        yield


@pytest.fixture
def run_cli(tmp_path: Path) -> RunCli:
    """`python -m primus_hydra ARGUMENTS`, for real, in an empty folder unless `cwd` says otherwise.

    `env` changes the inherited environment; None removes a variable. Past `timeout_s` the process group is killed.
    """

    def run(
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout_s: float = 120,
    ) -> Finished:
        command = [sys.executable, "-m", "primus_hydra", *arguments]
        return run_command(command, cwd or tmp_path, {"PYTHONPATH": str(REPOSITORY), **(env or {})}, timeout_s)

    return run


def run_command(command: list[str], cwd: Path, env: Mapping[str, str | None], timeout_s: float = 120) -> Finished:
    """Run a program in its own process group, which is killed past `timeout_s`; `env` changes the inherited one."""
    # Without byte code every start compiles the package again, which no user's start does.
    changed = {**os.environ, "PYTHONDONTWRITEBYTECODE": None, **env}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={name: value for name, value in changed.items() if value is not None},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return Finished(code=process.returncode, out=out, err=err)
