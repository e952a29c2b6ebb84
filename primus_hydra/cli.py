"""The program: the command line before Hydra, then what was composed, then the exit code.

Exit codes: 0 everything ran, 1 a run failed, 2 the configuration is wrong (nothing was started; a retry cannot help),
130 interrupted.
"""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType

from primus_hydra.arguments import prepare_arguments, take_up_sweep
from primus_hydra.errors import ConfigError, Problem, SweepRefused, format_refusal
from primus_hydra.tell import prepare_streams, tell

EXIT_CONFIG = 2
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code.

    Args:
        arguments: without the program's name; default: those of this process.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    prepare_streams()
    signal.signal(signal.SIGTERM, _stop)
    try:
        prepared, problems = prepare_arguments(take_up_sweep(typed))
        sys.argv = [sys.argv[0], *prepared]
        code = _compose_and_perform(problems)
        sys.stdout.flush()
        return code
    except ConfigError as error:
        tell(format_refusal(error.problems), file=sys.stderr)
        return EXIT_CONFIG
    except KeyboardInterrupt:
        tell("Interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output is gone; what it was told is enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INTERRUPTED


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _compose_and_perform(problems: Sequence[Problem]) -> int:
    # Imported late: what is wrong with the options themselves is told before the rest is loaded.
    from primus_hydra import app

    app.session.command_line_problems = tuple(problems)
    try:
        app.compose()
    except SweepRefused as refused:
        raise ConfigError(refused.problems) from refused
    except SystemExit as stopped:
        return _read_exit(stopped)
    except Exception as error:
        # Options of Hydra that contradict each other; HYDRA_FULL_ERROR=1 brings composition errors here as well.
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            traceback.print_exc()
        else:
            tell(f"{type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_CONFIG
    points = app.session.points
    if problems:
        raise ConfigError([*problems, *(problem for point in points for problem in point.problems)])
    if app.session.is_sweep:
        return app.finish()
    from primus_hydra.actions import perform

    return perform(points)


def _read_exit(stopped: SystemExit) -> int:
    """The exit code of a sweep that ended inside Hydra, or ours for what Hydra says about a wrong configuration."""
    if type(stopped) is not SystemExit:  # SweepEnded: everything is told
        return int(stopped.code or 0)
    # Hydra has printed what is wrong and ends with 1 for every composition error.
    return EXIT_CONFIG if stopped.code else 0
