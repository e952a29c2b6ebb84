"""The table at the end of one run: its figures, and what they rest on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from primus_hydra.objective import OBJECTIVES, format_figure
from primus_hydra.progress import format_duration
from primus_hydra.report.digits import format_count
from primus_hydra.report.plain_text import make_plain

UNKNOWN = "-"
TOO_FEW = "too few steps"


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a run."""

    title: str
    show: Callable[[Mapping[str, Any], Mapping[str, Any]], str]
    """(record, its result) -> text."""


def run_table(record: Mapping[str, Any]) -> RenderableType:
    """What a person reads when a run is over; of a failed one also the reason, the last error lines and the log.

    Args:
        record: content of run.json of a run that has ended.
    """
    table = Table(title=Text(make_plain(str(record["name"]))), title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for column in COLUMNS:
        table.add_row(Text(column.title), Text(make_plain(column.show(record, record["result"] or {}))))
    return table if record["state"] == "completed" else Group(table, _failure(record))


def _failure(record: Mapping[str, Any]) -> Text:
    lines = [*record["last_error_lines"], f"whole log: {_log(record, {})}"]
    shown = [make_plain(f"{record['name']}: {record['reason']}"), *(f"    {make_plain(line)}" for line in lines)]
    return Text("\n".join(shown), overflow="fold")


def _state(record: Mapping[str, Any], _result: Mapping[str, Any]) -> str:
    failure = record["failure"]
    return f"{record['state']} ({failure.replace('_', ' ')})" if failure else str(record["state"])


def _steps(record: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    if not result.get("num_steps"):
        return "0"
    text = f"{result['num_steps']} ({result['first_step']} to {result['last_step']})"
    resumed = record["resumed_at_step"]
    return f"{text}, resumed at step {resumed}" if resumed else text


def _step_time(_record: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Median and middle half, with what they were taken from."""
    if not result.get("num_steps"):
        return UNKNOWN
    measured, warmup = result["num_steps_measured"], result["warmup_steps"]
    taken = f"{format_count(measured, 'step')} after {format_count(warmup, 'warm-up step')}"
    time = result["step_time_s"]
    if time is None:
        return f"{TOO_FEW} ({taken})"
    return f"{time['median']:.4g} s ({time['p25']:.4g} to {time['p75']:.4g}; median of {taken})"


def _speed(key: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], str]:
    def show(_record: Mapping[str, Any], result: Mapping[str, Any]) -> str:
        if result.get("num_steps") and result["too_few_steps"]:
            return TOO_FEW
        value = result.get(key)
        return UNKNOWN if value is None else format_figure(value, OBJECTIVES[key])

    return show


def _loss(_record: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    if not result.get("num_steps"):
        return UNKNOWN
    first, last = (
        "not finite" if result[key] is None else f"{result[key]:.4f}" for key in ("first_loss", "final_loss")
    )
    return f"{first} -> {last}"


def _memory(_record: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    parts = [
        f"{label} {result[key]:.2f} GiB"
        for label, key in (("device", "peak_device_memory_gib"), ("host", "peak_host_memory_gib"))
        if result.get(key) is not None
    ]
    return ", ".join(parts) or UNKNOWN


def _platform(_record: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    kind, count = result.get("device_kind"), result.get("num_devices")
    parts = [result.get("platform"), format_count(count, "device") if count else None]
    parts.insert(1, kind if kind != result.get("platform") else None)
    return ", ".join(str(part) for part in parts if part) or UNKNOWN


def _compile_time(_record: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    seconds = result.get("compile_time_s")
    return UNKNOWN if seconds is None else f"{seconds:.1f} s"


def _wall_time(record: Mapping[str, Any], _result: Mapping[str, Any]) -> str:
    return UNKNOWN if record["wall_s"] is None else format_duration(record["wall_s"])


def _log(record: Mapping[str, Any], _result: Mapping[str, Any]) -> str:
    return str(record["log"])


COLUMNS = (
    Column("state", _state),
    Column("steps", _steps),
    Column("step time", _step_time),
    Column("tokens/s/device", _speed("tokens_per_second_per_device")),
    Column("TFLOP/s/device", _speed("tflops_per_second_per_device")),
    Column("loss", _loss),
    Column("peak memory", _memory),
    Column("ran on", _platform),
    Column("compile time", _compile_time),
    Column("wall time", _wall_time),
    Column("log", _log),
)
"""What is said about a run, in this order."""
