"""The program: the command line before Hydra, then what was composed, then the exit code.

Exit codes: 0 everything ran, 1 a run failed, 2 the configuration is wrong (nothing was started; a retry cannot help),
130 interrupted.
"""

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from hydra._internal.utils import get_args_parser

from primus_hydra.errors import ConfigError, Problem, format_refusal
from primus_hydra.overrides import CommandLine, rewrite_override, typed_name
from primus_hydra.paths import conf_dir
from primus_hydra.preset_files import check_preset_folder
from primus_hydra.redaction import SECRET_KEYS, is_secret_name
from primus_hydra.resolvers import detected_platform
from primus_hydra.tell import tell

EXIT_CONFIG = 2
EXIT_INTERRUPTED = 130
_AUTO = "platform=auto"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code.

    Args:
        arguments: without the program's name; default: those of this process.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a letter must not end a run
    signal.signal(signal.SIGTERM, _stop)
    try:
        prepared, problems = prepare_arguments(typed)
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


def prepare_arguments(typed: Sequence[str]) -> tuple[list[str], list[Problem]]:
    """Arguments for Hydra: every override checked and rewritten, options first; credentials moved to the environment.

    Returns:
        The arguments without the overrides that are wrong, and what is wrong with those: the rest is still
        composed, so that all problems are told at once.

    Raises:
        ConfigError: presets that do not exist (nothing can be composed then), preset files that cannot be read, or
            GPUs that no platform preset fits.
    """
    options, unknown = get_args_parser().parse_known_args(typed)
    if options.shell_completion or options.help or options.hydra_help:
        return list(typed), []
    folders = tuple(Path(folder).absolute() for folder in (options.config_dir, options.config_path) if folder)
    line = CommandLine(folders=(*folders, conf_dir()), multirun=bool(options.multirun))
    overrides = [*options.overrides, *unknown]
    option_words = [word for word in typed if word not in overrides]
    overrides = [text for text in overrides if not take_secret(text)]
    if all(text == _AUTO for text in overrides if typed_name(text) == "platform"):
        detected = detected_platform()
        overrides = [f"platform={detected}" if text == _AUTO else text for text in overrides]
    rewritten = [rewrite_override(text, line) for text in overrides]
    problems = [problem for _, problem in rewritten if problem is not None]
    wrong_groups = [text for text, problem in rewritten if problem is not None and typed_name(text) in line.groups]
    unreadable = [problem for folder in folders for problem in check_preset_folder(folder, options.config_name)]
    if wrong_groups or unreadable:
        raise ConfigError([*unreadable, *problems])
    if options.config_dir and not options.config_path:
        option_words = _put_first(option_words, Path(options.config_dir).absolute())
    return [*option_words, *(text for text, problem in rewritten if problem is None)], problems


def take_secret(text: str) -> bool:
    """Move a credential that was typed as an override into the environment, where it reaches the trainer and no file.

    Returns:
        Whether the override was one.
    """
    name, _, value = text.lstrip("+").partition("=")
    variable = "HF_TOKEN" if name in SECRET_KEYS else name.removeprefix("platform.env.")
    if "." in variable or not (name in SECRET_KEYS or name.startswith("platform.env.")) or not is_secret_name(variable):
        return False
    if value.startswith("${"):
        return False
    os.environ[variable] = value.strip("'\"")
    tell(
        f"Note: {name} was typed as an override. It reaches the trainer as {variable} and is written to no file; "
        f"set the variable {variable} instead, for everybody on this machine can read a command line.",
        file=sys.stderr,
    )
    return True


def _put_first(arguments: Sequence[str], folder: Path) -> list[str]:
    """Let a user's preset folder win by name: Hydra searches `--config-dir` after the program's own presets.

    So the user's folder becomes the main one and the shipped presets the additional one; what it replaces is told.
    """
    replaced = [file for file in sorted(folder.rglob("*.yaml")) if (conf_dir() / file.relative_to(folder)).exists()]
    for file in replaced:
        tell(f"Note: {file} replaces the shipped preset of that name.", file=sys.stderr)
    kept, skip = [], False
    for argument in arguments:
        if not skip and not argument.startswith(("--config-dir=", "-cd=")) and argument not in ("--config-dir", "-cd"):
            kept.append(argument)
        skip = argument in ("--config-dir", "-cd")
    return [*kept, "--config-path", str(folder), "--config-dir", str(conf_dir())]


def _compose_and_perform(problems: Sequence[Problem]) -> int:
    # Imported late: what is wrong with the options themselves is told before the rest is loaded.
    from primus_hydra.actions import perform
    from primus_hydra.app import compose, points

    try:
        compose()
    except SystemExit as stopped:
        # Hydra has printed what is wrong and ends with 1 for every composition error.
        return EXIT_CONFIG if stopped.code else 0
    except Exception as error:
        # Options of Hydra that contradict each other; HYDRA_FULL_ERROR=1 brings composition errors here as well.
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            traceback.print_exc()
        else:
            tell(f"{type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_CONFIG
    if problems:
        raise ConfigError([*problems, *(problem for point in points for problem in point.problems)])
    return perform(points)
