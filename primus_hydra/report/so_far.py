"""How far a run has come that still goes on."""

from dataclasses import replace

from primus_hydra.launch import expected_steps
from primus_hydra.objective import OBJECTIVES, describe_figure, read_figure
from primus_hydra.report.foreign_run import WARMUP_STEPS
from primus_hydra.report.model import Run
from primus_hydra.report.step_files import LOG_ENDINGS, read_records
from primus_hydra.results import compute_result

_SPEED = OBJECTIVES["tokens_per_second_per_device"]


def tell_progress(run: Run) -> Run:
    """The run with its last step, and its speed so far, as its reason.

    Its log, which may be long, is read only where it has no metrics file yet.
    """
    metrics = [file for file in run.step_files if file.suffix not in LOG_ENDINGS]
    records = read_records(metrics) or read_records(run.step_files)
    if not records:
        return run
    total = expected_steps({key: {"value": value} for key, value in run.composed.items()})
    result = compute_result(records, warmup_steps=WARMUP_STEPS, child={}, max_rss_bytes=None)
    speed = read_figure(result, _SPEED)
    parts = [f"step {records[-1].step + 1} of {total or '?'}", describe_figure(speed, _SPEED) if speed else ""]
    return replace(run, reason=f"{', '.join(filter(None, parts))} so far")
