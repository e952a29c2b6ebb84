"""What is declared is what is imported; and the program finds its presets however it was installed."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import primus_hydra
from primus_hydra.maxtext.keys import package_dir
from tests.conftest import REPOSITORY, run_command

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONSTRAINTS = (REPOSITORY / "constraints.txt").read_text().splitlines()
NEEDED_BY = re.compile(r'^    "(?P<name>[a-z0-9-]+)>=.*# (?P<file>[a-z0-9_/]+\.py)')
PACKAGES = ("primus_hydra", "hydra_plugins")
CHILD = Path("primus_hydra/maxtext/child.py")
SEARCH = Path("primus_hydra/sweep/search.py")
"""Needs the extra `optuna`."""


def requirements(*texts: str) -> dict[str, Requirement]:
    """Canonical name -> requirement, without our own name (one extra includes another)."""
    parsed = [Requirement(text) for text in texts]
    return {canonicalize_name(found.name): found for found in parsed if found.name != PROJECT["name"]}


@cache
def providers() -> dict[str, set[str]]:
    """Top-level module -> canonical names of the installed distributions that provide it."""
    found = packages_distributions()
    return {module: {canonicalize_name(name) for name in names} for module, names in found.items()}


def imported_modules(file: Path) -> Iterator[str]:
    """Top-level names of the modules that a source file imports, anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def test_constraints_are_nothing_but_names_and_versions() -> None:
    assert [line for line in CONSTRAINTS if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)] == []


def test_every_declared_dependency_admits_the_version_that_is_pinned() -> None:
    pins: dict[str, str] = {}
    for line in CONSTRAINTS:
        name, _, version = line.partition("==")
        pins[canonicalize_name(name)] = version
    declared = requirements(*PROJECT["dependencies"], *(text for extra in EXTRAS.values() for text in extra))
    assert declared.keys() - pins.keys() == set()
    assert [str(found) for name, found in declared.items() if not found.specifier.contains(pins[name])] == []


def test_base_dependencies_are_exactly_what_the_package_imports() -> None:
    files = [file for folder in PACKAGES for file in (REPOSITORY / folder).rglob("*.py")]
    files = [file for file in files if file.relative_to(REPOSITORY) not in (CHILD, SEARCH)]
    modules = {module for file in files for module in imported_modules(file)} - {*PACKAGES}
    foreign = {module for module in modules if module not in sys.stdlib_module_names}
    used = {name for module in foreign for name in providers()[module]}
    assert used == requirements(*PROJECT["dependencies"]).keys()


def test_every_maxtext_dependency_is_imported_by_the_file_that_its_comment_names() -> None:
    lines = [NEEDED_BY.match(line) for line in (REPOSITORY / "pyproject.toml").read_text().splitlines()]
    needed_by = {found["name"]: found["file"] for found in lines if found and (package_dir() / found["file"]).exists()}
    assert needed_by.keys() == requirements(*EXTRAS["cpu"]).keys() - {"maxtext"}
    for name, file in needed_by.items():
        modules = set(imported_modules(package_dir() / file))
        assert any(name in providers().get(module, ()) for module in modules), f"{file} does not import {name}"


def test_a_missing_python_is_told_with_what_to_install(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash
    script = [bash, str(REPOSITORY / "scripts" / "find_python.sh")]
    finished = run_command(script, tmp_path, {"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path)})
    assert finished.code == 2
    assert "MaxText needs Python 3.12" in finished.err
    assert "pyenv install 3.12" in finished.err


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-input", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(REPOSITORY)], check=True)
    return next(folder.glob("*.whl"))


def make_environment(folder: Path) -> Path:
    """A fresh virtual environment that sees the packages of this one but not an editable install; returns its bin/."""
    venv.create(folder, symlinks=True)
    site_packages = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    # A folder that a .pth file names is searched for modules; its own .pth files (an editable install's) are not read.
    Path(site_packages, "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bin/ of an environment that has the wheel."""
    binaries = make_environment(tmp_path_factory.mktemp("installed"))
    pip = [sys.executable, "-m", "pip", "--python", str(binaries / "python")]
    subprocess.run([*pip, "install", "-qq", "--no-input", "--no-deps", str(wheel)], check=True)
    return binaries


def compose(command: list[str], cwd: Path) -> str:
    """What a program prints, from a folder that holds nothing of ours."""
    finished = run_command(command, cwd, {"PYTHONPATH": None})
    assert finished.code == 0, finished.err
    return finished.out


@pytest.mark.slow
def test_a_wheel_carries_every_preset_and_every_rule(wheel: Path) -> None:
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith(".py")}
    presets = {file.relative_to(REPOSITORY) for file in (REPOSITORY / "conf").rglob("*") if file.is_file()}
    rules = {str(file.relative_to(REPOSITORY)) for file in (REPOSITORY / "primus_hydra").rglob("*.yaml")}
    assert {f"primus_hydra/{preset}" for preset in presets} | rules <= shipped
    plugins = {str(file.relative_to(REPOSITORY)) for file in (REPOSITORY / "hydra_plugins").rglob("*.py")}
    assert plugins <= set(zipfile.ZipFile(wheel).namelist())
    assert wheel.name.startswith(f"primus_hydra-{primus_hydra.__version__}-")


@pytest.mark.slow
def test_an_installed_wheel_finds_its_presets_from_any_folder(installed: Path, tmp_path: Path) -> None:
    info = compose([str(installed / "primus-hydra"), "--info", "searchpath"], tmp_path)
    assert str(installed.parent) in info
    module = compose([str(installed / "python"), "-m", "primus_hydra", "--cfg", "job"], tmp_path)
    script = compose([str(installed / "primus-hydra"), "--cfg", "job"], tmp_path)
    assert module == script
    assert "decoder_block" in compose([str(installed / "primus-hydra"), "--cfg", "job", "model=grok1"], tmp_path)
    assert "LocalLauncher" in compose([str(installed / "primus-hydra"), "--cfg", "hydra"], tmp_path)


@pytest.mark.slow
def test_a_plain_checkout_runs_without_being_installed(tmp_path: Path) -> None:
    binaries = make_environment(tmp_path / "environment")
    checkout = tmp_path / "checkout"
    for folder in (*PACKAGES, "conf"):
        shutil.copytree(REPOSITORY / folder, checkout / folder)
    assert "steps: 7" in compose([str(binaries / "python"), "-m", "primus_hydra", "--cfg", "job", "steps=7"], checkout)


@pytest.mark.slow
def test_a_users_preset_folder_adds_presets_and_overrides_shipped_ones_by_name(installed: Path, tmp_path: Path) -> None:
    presets = tmp_path / "presets"
    for name, lines in {
        "model/mine.yaml": "defaults: [model_base, _self_]\nmodel_name: gpt3-52k\n",
        "data/synthetic.yaml": "dataset_type: synthetic\nmax_target_length: 77\n",
    }.items():
        (presets / name).parent.mkdir(parents=True)
        (presets / name).write_text(f"# @package _global_\n{lines}")
    command = [str(installed / "primus-hydra"), "--config-dir", os.fspath(presets), "--cfg", "job"]
    composed = compose([*command, "model=mine", "data=synthetic"], tmp_path)
    assert "model_name: gpt3-52k" in composed
    assert "max_target_length: 77" in composed
