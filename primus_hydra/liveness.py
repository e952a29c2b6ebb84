"""Who executes a run, and whether he is still there."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil


def this_worker() -> dict[str, Any]:
    """Who executes: enough to recognise later that this very process is gone."""
    return {
        "host": socket.gethostname(),
        "boot_id": _boot_id(),
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
    }


def is_abandoned(record: Mapping[str, Any]) -> bool:
    """Whether the record says `running` although its worker is dead.

    A worker on another host cannot be seen from here: the answer is False then, and the folder's lock decides.
    """
    if record.get("state") != "running":
        return False
    worker = record.get("worker")
    if not isinstance(worker, Mapping) or not isinstance(worker.get("pid"), int):
        return True
    if worker.get("host") != socket.gethostname():
        return False
    if worker.get("boot_id") != _boot_id():
        return True
    try:
        process = psutil.Process(worker["pid"])
        # A zombie has stopped working; a start time that differs means that the pid was given to somebody else.
        return process.status() == psutil.STATUS_ZOMBIE or abs(process.create_time() - worker["started"]) > 1.0
    except (psutil.NoSuchProcess, KeyError, TypeError, ValueError):  # gone, or a damaged record that names no process
        return True


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return str(int(psutil.boot_time()))
