"""primus_hydra.liveness: is the worker of a run still there?"""

import os
from typing import Any

import psutil
import pytest

from primus_hydra.liveness import is_abandoned, this_worker


def test_a_run_of_a_living_worker_is_not_abandoned() -> None:
    assert not is_abandoned({"state": "running", "worker": this_worker()})


@pytest.mark.parametrize("state", ["planned", "completed", "failed"])
def test_only_a_running_record_can_be_abandoned(state: str) -> None:
    assert not is_abandoned({"state": state})


def test_a_run_is_abandoned_when_its_worker_is_gone() -> None:
    worker = this_worker()
    unused = next(pid for pid in range(2, 1 << 22) if not psutil.pid_exists(pid))
    for change in ({"pid": unused}, {"started": worker["started"] - 100}, {"boot_id": "another boot"}):
        assert is_abandoned({"state": "running", "worker": worker | change})
    assert is_abandoned({"state": "running"})


@pytest.mark.parametrize("change", [{"pid": "x"}, {"pid": -1}, {"pid": None}, {"started": "x"}])
def test_a_damaged_record_of_a_worker_names_nobody(change: dict[str, Any]) -> None:
    assert is_abandoned({"state": "running", "worker": this_worker() | change})
    assert is_abandoned({"state": "running", "worker": {}})


def test_a_worker_on_another_host_is_left_to_the_lock() -> None:
    assert not is_abandoned({"state": "running", "worker": this_worker() | {"host": "elsewhere", "pid": os.getpid()}})
