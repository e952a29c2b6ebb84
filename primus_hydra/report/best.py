"""`best.yaml`: the winner of a report as an experiment preset that composes to exactly the winning configuration.

python -m primus_hydra --config-dir SWEEP/presets experiment=best
"""

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from primus_hydra.atomic_files import write_in_order
from primus_hydra.errors import ConfigError
from primus_hydra.identity import IDENTITY_FREE_KEYS, NOT_SET
from primus_hydra.objective import describe_figure, format_figure
from primus_hydra.own_command import normalise, own_command
from primus_hydra.report.model import FOREIGN, PENDING, Report, Row, Run
from primus_hydra.report.plain_text import make_plain
from primus_hydra.report.points import read_points
from primus_hydra.report.preset_yaml import to_preset_yaml
from primus_hydra.report.ranking import describe_ranking
from primus_hydra.report.rows import is_scored
from primus_hydra.report.winner_config import WinnerConfig, read_config
from primus_hydra.runs import RecordError, RunFolder

PRESETS = "presets"
"""Folder for --config-dir, in the folder of the report."""
BEST = Path(PRESETS) / "experiment" / "best.yaml"
_WIDTH = 118


def write_best(report: Report, folder: Path) -> tuple[str, list[str]]:
    """Write the winner's preset into `folder`, or remove an earlier one where there is no winner any more.

    Returns:
        One sentence (the command that runs the winner, or why there is none; empty where it could not be written), and
        the problems, as of `files.write_all`.
    """
    path = normalise(folder) / BEST
    try:
        winner = find_winner(report)
        if winner is None:
            path.unlink(missing_ok=True)
            return _explain_no_winner(report), []
        preset = make_preset(report, *winner, command=_command(folder))
        path.parent.mkdir(parents=True, exist_ok=True)
        # Staged in the sweep's folder, where the next start removes what a killed writer left.
        write_in_order([(path, preset)], staging=folder)
    except RecordError as error:
        return "", [f"The winner could not be written as a preset: {error}"]
    except ConfigError as error:
        return "", [f"The winner could not be written as a preset: {error.problems[0].what}"]
    except OSError as error:
        return "", [f"{path} could not be written: {error.strerror}."]
    presets = str(normalise(folder) / PRESETS)
    return f"The best again: {own_command('primus_hydra', '--config-dir', presets, 'experiment=best')}", []


def find_winner(report: Report) -> tuple[Row, Run] | None:
    """The best point that we composed, and its first run with figures; None where nothing of ours leads."""
    leaders = (point for point in read_points(report) if point.row.rank == 1)
    scored = ((point.row, run) for point in leaders for run in point.runs if is_scored(run))
    return next(((row, run) for row, run in scored if run.state != FOREIGN), None)


def _explain_no_winner(report: Report) -> str:
    leader = next((row for row in report.rows if row.rank == 1), None)
    if leader is None:
        is_over = all(run.state not in PENDING for run in report.runs)
        return f"No run has a score. So there is no {BEST}." if is_over else "No run has a score yet."
    return (
        f"The best is {make_plain(leader.point)}, which was run without primus_hydra: nothing proves its "
        f"configuration. So there is no {BEST}."
    )


def _command(folder: Path) -> str:
    """For the preset's first line, which may be read on another machine."""
    return f"python -m primus_hydra --config-dir {shlex.quote(str(normalise(folder) / PRESETS))} experiment=best"


def make_preset(report: Report, row: Row, run: Run, *, command: str) -> str:
    """YAML text of the preset.

    Args:
        report: for what the score rests on, and for what differs.
        row: the winning point.
        run: its run folder is read.
        command: runs the preset.

    Raises:
        RecordError: the run folder cannot be read.
        ConfigError: the recorded XLA_FLAGS are none.
    """
    config = read_config(RunFolder(run.folder))
    differing = [key for key in config.keys if _differs(key, run, report.runs)]
    defaults = ["_self_", *({f"override /{group}": choice} for group, choice in config.choices.items())]
    parts = [
        "# @package _global_",
        *(f"# {line}" for line in _head(report, row, run, config, command)),
        to_preset_yaml({"defaults": defaults}),
        *_keys_of("What differs between the points.", config.keys, differing),
        *_keys_of("What they share.", config.keys, [key for key in config.keys if key not in differing]),
        *_keys_of("What train.log and the console show.", config.private, list(config.private)),
        "\n# How the run is executed and measured.",
        to_preset_yaml({"run": config.run}),
        "\n# The machine, and the environment and XLA flags that reached the trainer.",
        to_preset_yaml({"platform": config.platform}),
    ]
    return "\n".join(parts) + "\n"


def _head(report: Report, row: Row, run: Run, config: WinnerConfig, command: str) -> list[str]:
    objective = report.objective
    assert row.score is not None
    score = describe_figure(row.score, objective)
    if row.score_low != row.score_high and row.score_low is not None and row.score_high is not None:
        score += f" ({format_figure(row.score_low, objective)} to {format_figure(row.score_high, objective)})"
    ties = [other.differs for other in report.rows if other.rank == 1 and other is not row]
    texts = [f"{score}: {row.differs}", f"Run folder: {run.folder}"]
    texts += [f"Not to be told apart from: {text}" for text in ties]
    texts.append(describe_ranking(report))
    if config.replaced:
        texts.append(f"Values of {', '.join(config.replaced)} are written out: no preset that ships gives them.")
    texts.append("Written by primus_hydra.report, which writes it again; copy it to keep it.")
    lines = [command]
    for text in texts:
        lines += textwrap.wrap(make_plain(text), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return lines


def _keys_of(comment: str, values: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [f"\n# {comment}", to_preset_yaml({name: values[name] for name in names})] if names else []


def _differs(key: str, run: Run, runs: Sequence[Run]) -> bool:
    others = [other for other in runs if other.composed]
    value = run.composed.get(key, NOT_SET)
    return key not in IDENTITY_FREE_KEYS and any(other.composed.get(key, NOT_SET) != value for other in others)
