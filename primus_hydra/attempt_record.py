"""How one attempt is written down in run.json: its begin, and its end."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from primus_hydra.classify import Outcome, classify, exit_signal, signal_name
from primus_hydra.launch import resolved_steps
from primus_hydra.listener import RunListener
from primus_hydra.liveness import this_worker
from primus_hydra.progress import Voice
from primus_hydra.redaction import redact
from primus_hydra.results import compute_result, resumed_at_step
from primus_hydra.runs import Record, RecordError, RunFolder, RunFolderError, read_json
from primus_hydra.supervisor import Exit

_RESERVE_BYTES = 1 << 16


def begin_attempt(folder: RunFolder, record: Record, env: Mapping[str, str]) -> Record:
    """Move an earlier attempt's files away and say that this one runs.

    Args:
        folder: what is executed.
        record: content of its run.json.
        env: the trainer's environment; what it says about visible devices is recorded, because no plan knows it.

    Raises:
        OSError: there is no room for the record of the run and of its end; the record on disk is as it was.
    """
    folder.reserve_file.write_bytes(os.urandom(_RESERVE_BYTES))
    folder.keep_record()
    folder.rotate_attempt(max(1, record["attempt"]))
    folder.train_log.touch()
    running = {
        **record,
        "state": "running",
        "attempt": record["attempt"] + 1,
        "worker": this_worker(),
        "log": str(folder.train_log),
        "visible_devices": {name: value for name, value in env.items() if name.endswith("VISIBLE_DEVICES")},
        "started_at": _now(),
        **dict.fromkeys(("failure", "ended_at", "wall_s", "exit_code", "signal", "resumed_at_step", "result")),
        "reason": "",
        "last_error_lines": [],
    }
    folder.write_record(running)
    return running


def end_attempt(
    folder: RunFolder,
    record: Record,
    listener: RunListener,
    exit_: Exit,
    *,
    oom_killed: bool,
    wall_s: float,
    secrets: Sequence[str],
) -> Record:
    """The record with everything that is known at the end.

    Secrets are masked in the texts that come from outside, and nowhere else: a variable with a secret's name may
    hold an ordinary word (API_KEY=completed), and the plan's own values were masked when it was written.
    """
    records = listener.history.records()
    child = listener.seen | _read_if_there(folder.child_json)
    verdict = classify(
        Outcome(
            exit=exit_,
            expected_steps=resolved_steps(record["composed"], _read_if_there(folder.effective_json)),
            records=records,
            tail=tuple(listener.pump.tail),
            oom_killed=oom_killed,
        )
    )
    number = exit_signal(exit_.returncode)
    versions = child.get("versions")
    return {
        **record,
        "state": verdict.state,
        "failure": verdict.failure,
        "reason": redact(verdict.reason, secrets),
        "last_error_lines": [redact(line, secrets) for line in verdict.last_error_lines],
        "warnings": [*record["warnings"], *(redact(text, secrets) for text in [listener.pump.problem] if text)],
        "versions": record["versions"] | (versions if isinstance(versions, dict) else {}),
        "ended_at": _now(),
        "wall_s": round(wall_s, 3),
        "exit_code": exit_.returncode if exit_.returncode is not None and exit_.returncode >= 0 else None,
        "signal": signal_name(number) if number is not None else None,
        "resumed_at_step": resumed_at_step(records, child),
        "result": compute_result(
            records,
            warmup_steps=record["settings"]["run"]["warmup_steps"],
            child=child,
            max_rss_bytes=exit_.max_rss_bytes,
        ),
    }


def write_end(folder: RunFolder, record: Record, voice: Voice) -> None:
    """Write the record; on a full disk, into the room that was kept for it."""
    try:
        folder.write_record(record)
    except OSError:
        folder.reserve_file.unlink(missing_ok=True)
        try:
            folder.write_record(record)
        except OSError as error:
            voice.say(f"The end of the run could not be recorded in {folder.run_json}: {error.strerror}.")


@contextlib.contextmanager
def before_the_start(folder: RunFolder, before: Record) -> Iterator[None]:
    """Tell an OSError as what it means before anything was started, and leave the record as it was.

    Raises:
        RunFolderError: the folder cannot be written.
    """
    try:
        yield
    except OSError as error:
        with contextlib.suppress(OSError, RecordError):
            folder.reserve_file.unlink(missing_ok=True)
            if folder.read_record() != before:
                folder.write_record(before)
        raise RunFolderError(
            f"The run folder {folder.path} cannot be written: {error.strerror}. Nothing was started; "
            "make room there, or start the run in another folder."
        ) from error


def _read_if_there(path: Path) -> dict[str, Any]:
    with contextlib.suppress(RecordError):
        return read_json(path)
    return {}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
