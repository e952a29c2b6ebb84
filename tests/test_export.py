"""primus_hydra.export: what MaxText is given, and how."""

import functools
import itertools
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from rich.console import Console

from primus_hydra.atomic_files import list_half_written
from primus_hydra.export import format_argument, maxtext_arguments, write_run_folder
from primus_hydra.launch import read_plan
from primus_hydra.replay import to_omegaconf_yaml
from primus_hydra.runs import RunFolder, RunFolderError
from primus_hydra.worker import execute
from tests.processes import in_a_process_of_its_own, kill_before_change
from tests.run_folders import make_stub_plan

VALUES: list[Any] = [
    "plain",
    "",
    "1e3",
    "007",
    "true",
    "null",
    "none",
    "a b",
    "a=b",
    "it's",
    'say "hi"',
    "[not, a, list]",
    "{a: b}",
    "${steps}",
    "#comment",
    "é",
    3,
    0.5,
    1e-8,
    True,
    None,
    ["silu", "linear"],
    [["mlp", ["fsdp"]], ["embed", "data"]],
    {"a": 1, "b": "1e3"},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_an_argument_is_read_back_as_the_same_value(value: Any) -> None:
    loaded = OmegaConf.from_cli([f"key={format_argument(value)}"])
    assert OmegaConf.to_container(loaded, resolve=True) == {"key": value}


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_exported_file_is_read_back_as_the_same_value(value: Any, tmp_path: Path) -> None:
    file = tmp_path / "maxtext.yml"
    file.write_text(to_omegaconf_yaml({"key": value}), encoding="utf-8")
    assert OmegaConf.to_container(OmegaConf.load(file), resolve=True) == {"key": value}


def test_only_keys_that_a_model_file_would_win_travel_as_arguments(tmp_path: Path) -> None:
    keys = {"model_name": "llama3-8b", "override_model_config": True, "steps": 5, "base_emb_dim": 64}
    folder = RunFolder(tmp_path)
    assert maxtext_arguments(keys, folder) == [
        str(folder.maxtext_yml),
        "override_model_config=true",
        "base_emb_dim=64",
    ]
    assert maxtext_arguments({"model_name": "default", "steps": 5}, folder) == [str(folder.maxtext_yml)]


def test_sharding_rules_always_travel_as_an_argument(tmp_path: Path) -> None:
    keys = {"model_name": "default", "override_model_config": True, "logical_axis_rules": [["mlp", ["fsdp"]]]}
    assert 'logical_axis_rules=[["mlp", ["fsdp"]]]' in maxtext_arguments(keys, RunFolder(tmp_path))


@pytest.mark.parametrize("earlier", [None, "failed"])
def test_a_kill_at_any_point_leaves_a_folder_that_planning_again_completes(tmp_path: Path, earlier: str | None) -> None:
    states = set()
    for number in itertools.count(1):
        folder = RunFolder(tmp_path / str(number))
        plan = make_stub_plan(folder.path)
        if earlier:
            write_run_folder(plan)
            folder.write_record(folder.read_record() | {"state": earlier, "attempt": 1, "reason": "the first attempt"})
        done = in_a_process_of_its_own(
            functools.partial(write_run_folder, plan), kill_before_change(number, folder.path)
        )
        states.add(state := folder.read_record()["state"] if folder.run_json.exists() else None)
        if state in (None, "planning"):
            with pytest.raises(RunFolderError):
                execute(folder, console=Console(quiet=True))
        write_run_folder(plan)
        assert not list(list_half_written(folder.path))
        assert (folder.read_record()["state"], folder.read_record()["attempt"]) == ("planned", 1 if earlier else 0)
        if earlier:
            assert "the first attempt" in folder.record_of_attempt(1).read_text(encoding="utf-8")
        assert read_plan(folder)[0]["fingerprint"] == plan.fingerprint
        if done == 0:
            break
        assert done == -signal.SIGKILL
    assert states == {earlier, "planning", "planned"}


def test_a_killed_plan_is_not_taken_over_by_another_configuration(tmp_path: Path) -> None:
    path = tmp_path / "run"
    number = next(
        number
        for number in itertools.count(1)
        if in_a_process_of_its_own(lambda: write_run_folder(make_stub_plan(path)), kill_before_change(number, path))
        and RunFolder(path).run_json.exists()
    )
    assert number > 1
    with pytest.raises(RunFolderError, match=r"platform.env.A: '\(not set\)' there, '1' now"):
        write_run_folder(make_stub_plan(path, env={"A": "1"}))


def test_a_full_disk_at_any_size_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    outcomes = []
    for size_kib in range(4, 40, 4):
        disk = tmp_path / str(size_kib)
        disk.mkdir()
        work = functools.partial(plan_on_a_small_disk, disk, size_kib)
        outcomes.append(in_a_process_of_its_own(work))
    if 4 in outcomes:
        pytest.skip("no file system of its own can be mounted here")
    assert outcomes == sorted(outcomes, reverse=True)
    assert set(outcomes) == {3, 0}


def plan_on_a_small_disk(disk: Path, size_kib: int) -> None:
    """In a mount namespace of its own; exit code 4 where that is not possible, 1 where the folder is damaged."""
    ids = os.geteuid(), os.getegid()
    try:
        os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(disk)]
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        for kind, outside in zip(("uid", "gid"), ids, strict=True):
            Path(f"/proc/self/{kind}_map").write_text(f"0 {outside} 1", encoding="ascii")
        subprocess.run(mount, check=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit(4)
    folder = RunFolder(disk / "run")
    try:
        write_run_folder(make_stub_plan(folder.path))
    except OSError:
        assert [path.name for path in folder.path.iterdir()] == [".lock"]
        raise


def test_the_record_says_which_run_it_is(tmp_path: Path) -> None:
    plan = replace(make_stub_plan(tmp_path, env={"XLA_FLAGS": "--xla_a=1", "API_KEY": "secret"}), number=3, repeat=2)
    write_run_folder(plan)
    record = RunFolder(tmp_path).read_record()
    assert (record["point"], record["repeat"], record["fingerprint"]) == (3, 2, plan.fingerprint)
    assert record["identity"] == plan.identity
    assert record["identity"]["platform.xla_flags.xla_a"] == "1"
    assert "secret" not in RunFolder(tmp_path).run_json.read_text(encoding="utf-8")
