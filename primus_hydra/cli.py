"""The program: the command line before Hydra, then what was composed, then the exit code.

Exit codes: 0 everything ran, 1 a run failed, 2 the configuration is wrong (nothing was started; a retry cannot help),
130 interrupted.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hydra._internal.utils import get_args_parser

from primus_hydra.errors import ConfigError, Problem, format_refusal
from primus_hydra.overrides import CommandLine, rewrite_override, typed_name
from primus_hydra.paths import conf_dir
from primus_hydra.redaction import redact, secret_values
from primus_hydra.resolvers import detected_platform

EXIT_CONFIG = 2
_AUTO = "platform=auto"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code.

    Args:
        arguments: without the program's name; default: those of this process.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        prepared, problems = prepare_arguments(typed)
        sys.argv = [sys.argv[0], *prepared]
        return _compose_and_perform(problems)
    except ConfigError as error:
        print(redact(format_refusal(error.problems), _typed_secrets(typed)), file=sys.stderr)
        return EXIT_CONFIG


def prepare_arguments(typed: Sequence[str]) -> tuple[list[str], list[Problem]]:
    """Arguments for Hydra: every override checked and rewritten.

    Returns:
        The arguments without the overrides that are wrong, and what is wrong with those: the rest is still
        composed, so that all problems are told at once.

    Raises:
        ConfigError: presets that do not exist (nothing can be composed then), or GPUs that no platform preset fits.
    """
    options, unknown = get_args_parser().parse_known_args(typed)
    if options.shell_completion or options.help or options.hydra_help:
        return list(typed), []
    folders = tuple(Path(folder).absolute() for folder in (options.config_dir, options.config_path) if folder)
    line = CommandLine(folders=(*folders, conf_dir()), multirun=bool(options.multirun))
    overrides = [*options.overrides, *unknown]
    rewritten = {text: rewrite_override(text, line) for text in overrides}
    problems = [problem for _, problem in rewritten.values() if problem is not None]
    if any(problem is not None and typed_name(text) in line.groups for text, (_, problem) in rewritten.items()):
        raise ConfigError(problems)
    arguments = [
        rewritten[text][0] if text in rewritten else text for text in typed if not rewritten.get(text, ("", None))[1]
    ]
    if options.config_dir and not options.config_path:
        arguments = _put_first(arguments, Path(options.config_dir).absolute())
    if all(text == _AUTO for text in overrides if typed_name(text) == "platform"):
        arguments = [text.replace(_AUTO, f"platform={detected_platform()}") for text in arguments]
    return arguments, problems


def _put_first(arguments: Sequence[str], folder: Path) -> list[str]:
    """Let a user's preset folder win by name: Hydra searches `--config-dir` after the program's own presets.

    So the user's folder becomes the main one and the shipped presets the additional one; what it replaces is told.

    Raises:
        ConfigError: the folder does not exist.
    """
    if not folder.is_dir():
        problem = Problem(
            what=f"The preset folder {folder} does not exist.",
            fix="Give --config-dir a folder with groups in it, for example presets/model/mine.yaml.",
            origin="command line: --config-dir",
        )
        raise ConfigError([problem])
    replaced = [file for file in sorted(folder.rglob("*.yaml")) if (conf_dir() / file.relative_to(folder)).exists()]
    for file in replaced:
        print(f"Note: {file} replaces the shipped preset of that name.", file=sys.stderr)
    kept, skip = [], False
    for argument in arguments:
        if not skip and not argument.startswith(("--config-dir=", "-cd=")) and argument not in ("--config-dir", "-cd"):
            kept.append(argument)
        skip = argument in ("--config-dir", "-cd")
    return [*kept, "--config-path", str(folder), "--config-dir", str(conf_dir())]


def _typed_secrets(typed: Sequence[str]) -> list[str]:
    """Credentials in the environment and on the command line, which an error message must not repeat."""
    assignments = [text.partition("=") for text in typed]
    return secret_values({**os.environ, **{name: value for name, _, value in assignments}})


def _compose_and_perform(problems: Sequence[Problem]) -> int:
    # Imported late: what is wrong with the options themselves is told before the rest is loaded.
    from primus_hydra.actions import perform
    from primus_hydra.app import compose, points

    try:
        compose()
    except SystemExit as stopped:
        # Hydra has printed what is wrong and ends with 1 for every composition error.
        return EXIT_CONFIG if stopped.code else 0
    if problems:
        raise ConfigError([*problems, *(problem for point in points for problem in point.problems)])
    return perform(points)
