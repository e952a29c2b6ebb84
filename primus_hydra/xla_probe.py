"""Ask the installed jaxlib, in a bare child process, whether it accepts a set of XLA flags.

XLA ends the process at the first flag that it does not know or cannot read, and Python cannot catch
that; so it must not happen first in a training run, once per run. The probe does not import jax: it
makes jaxlib parse XLA_FLAGS, which takes about 0.4 s.
"""

import difflib
import importlib.util
import mmap
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from primus_hydra.errors import Problem
from primus_hydra.xla_flags import Flags, format_flag, format_flags

_PROGRAM = "from jaxlib import xla_client; xla_client.CompileOptions()"
_TIMEOUT_S = 120
_LOG_LINE = re.compile(r"^[EF]\d{4} .*?\] (.*)$", flags=re.MULTILINE)
_UNKNOWN = re.compile(r"Unknown flags? in XLA_FLAGS")


def probe_flags(
    flags: Mapping[str, str | None], python: str = sys.executable, origins: Mapping[str, str] | None = None
) -> list[Problem]:
    """Every flag that XLA rejects, with the reason that XLA gives; empty when it accepts all of them.

    XLA reports unreadable values first and unknown flags only when there are none of those, so rejected
    flags are dropped and the rest is asked again until it is accepted.

    Args:
        flags: name without dashes -> value, as `primus_hydra.xla_flags` reads them.
        python: interpreter with the jaxlib that will train.
        origins: name -> where the flag came from, for the errors.
    """
    origins = origins or {}
    problems: list[Problem] = []
    remaining: Flags = dict(flags)
    while remaining:
        code, stderr = _parse_in_child(remaining, python)
        if code == 0:
            break
        complaints = [line for line in _LOG_LINE.findall(stderr) if "Flag parsing failed" not in line]
        rejected = {name: line for name in remaining for line in complaints if _names_flag(line, name)}
        if not rejected:
            problems.append(_unclear_answer(remaining, code, stderr))
            break
        for name, complaint in rejected.items():
            problems.append(_rejected_flag(name, remaining.pop(name), complaint, origins.get(name, "")))
    return problems


def _parse_in_child(flags: Flags, python: str) -> tuple[int, str]:
    """Exit code and stderr of an interpreter that only parses the flags."""
    try:
        child = subprocess.run(
            [python, "-P", "-c", _PROGRAM],
            env=os.environ | {"XLA_FLAGS": format_flags(flags)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, str(error)
    return child.returncode, child.stderr


def _names_flag(complaint: str, name: str) -> bool:
    return re.search(rf"(?<![\w-])(?:--)?{re.escape(name)}(?![\w-])", complaint) is not None


def _rejected_flag(name: str, value: str | None, complaint: str, origin: str) -> Problem:
    remove = f"remove it with platform.xla_flags.{name}=null"
    if not _UNKNOWN.search(complaint):
        return Problem(
            what=f"XLA cannot read the value of {format_flag(name, value)}.",
            fix=f"Write platform.xla_flags.{name}=<another value>, or {remove}.",
            origin=origin,
            evidence=f"the installed jaxlib says: {complaint}",
        )
    if value is None and name in read_known_flags():
        fact, fix = f"The XLA flag {name} needs a value.", f"Write platform.xla_flags.{name}=<value>, or {remove}."
    else:
        closest = difflib.get_close_matches(name, read_known_flags(), n=3, cutoff=0.75)
        fact = f"The installed jaxlib does not know the XLA flag {name}, and would end the run at its start."
        fix = f"Did you mean {' or '.join(closest)}? Otherwise {remove}." if closest else f"R{remove[1:]}."
    return Problem(what=fact, fix=fix, origin=origin, evidence=f"the installed jaxlib says: {complaint[:300]}")


def _unclear_answer(flags: Flags, code: int, stderr: str) -> Problem:
    """XLA was not reached, or it failed without naming a flag: only the run itself can tell."""
    last_line = (stderr.strip().splitlines() or ["no output"])[-1]
    return Problem(
        what=f"XLA's flags could not be checked: the probing child ended with code {code} ({last_line[:300]}).",
        fix=f"Check that jaxlib is installed here. The flags are: {format_flags(flags)}",
        severity="warn",
    )


@cache
def read_known_flags() -> tuple[str, ...]:
    """Names of XLA flags in this environment's jaxlib, for suggestions only; about 0.5 s.

    XLA has no complete list to ask for (its `--help` is cut off by the log), so these are the
    C strings of its library that look like a flag; a few of them are something else.
    """
    spec = importlib.util.find_spec("jaxlib")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    libraries = [path for folder in folders for path in folder.glob("*.so")]
    if not libraries:
        return ()
    largest = max(libraries, key=lambda path: path.stat().st_size)
    with largest.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
        names = re.findall(rb"\0(xla_[a-z0-9]+_[a-z0-9_]+)(?=\0)", library)
    return tuple(sorted({name.decode() for name in names}))
