"""From what a person typed to the arguments that Hydra gets."""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from hydra._internal.utils import get_args_parser

from primus_hydra.errors import ConfigError, Problem
from primus_hydra.grammar import try_parse, typed_name
from primus_hydra.hydra_job import announce_sweep
from primus_hydra.overrides import CommandLine, rewrite_override
from primus_hydra.paths import conf_dir
from primus_hydra.preset_files import check_preset_folder
from primus_hydra.redaction import SECRET_KEYS, is_secret_setting
from primus_hydra.resolvers import detected_platform
from primus_hydra.tell import tell

_AUTO = "platform=auto"
_OPTUNA = "hydra/sweeper=optuna"
_FOREIGN = ("hydra/launcher=", "hydra/sweeper=")


def take_up_sweep(typed: Sequence[str]) -> list[str]:
    """For `sweep.resume=DIR` what was typed to start that sweep, and what is typed beside it now, which wins.

    The working directory becomes the one in which the sweep was started.

    Raises:
        ConfigError: DIR is no sweep folder.
    """
    named = [text for text in typed if typed_name(text) == "sweep.resume"]
    if not named:
        return list(typed)
    # Imported here: only a sweep has a record.
    from primus_hydra.sweep.resume import recorded_arguments

    folder = os.path.abspath(Path(named[-1].partition("=")[2].strip("'\"")).expanduser())  # noqa: PTH100
    recorded, cwd = recorded_arguments(Path(folder))
    os.chdir(cwd)
    added = [text for text in typed if text not in (*named, "--multirun", "-m")]
    names = {typed_name(text) for text in added if "=" in text}
    return [*(text for text in recorded if "=" not in text or typed_name(text) not in names), *added]


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
    if _OPTUNA in overrides and find_spec("hydra_plugins.hydra_optuna_sweeper") is None:
        fix = "Install the extra: pip install 'primus-hydra[optuna]', in a checkout pip install -e '.[optuna]'."
        raise ConfigError([Problem(what="The sweeper optuna is not installed.", fix=fix, origin=_OPTUNA), *problems])
    wrong_groups = [text for text, problem in rewritten if problem is not None and typed_name(text) in line.groups]
    unreadable = [problem for folder in folders for problem in check_preset_folder(folder, options.config_name)]
    if wrong_groups or unreadable:
        raise ConfigError([*unreadable, *problems])
    kept = [text for text, problem in rewritten if problem is None]
    if line.multirun:
        if problems and any(text.startswith(_FOREIGN) for text in kept):
            raise ConfigError(problems)  # only our own sweeper and launcher compose everything before they run anything
        _announce(option_words, overrides, kept)
    if options.config_dir and not options.config_path:
        option_words = _put_first(option_words, Path(options.config_dir).absolute())
    return [*option_words, *kept], problems


def _announce(options: Sequence[str], typed: Sequence[str], kept: Iterable[str]) -> None:
    """Settle what all processes of this sweep agree on, and what its record says was typed."""
    from primus_hydra.sweep.resume import record_command

    announce_sweep(text for text in kept if not _is_swept(text))
    record_command([*options, *typed], Path.cwd())


def _is_swept(text: str) -> bool:
    """Whether an override gives its name several values."""
    parsed = try_parse(text)
    return parsed is not None and parsed.is_sweep_override()


def take_secret(text: str) -> bool:
    """Move a credential that was typed as an override into the environment, where it reaches the trainer and no file.

    Returns:
        Whether the override was one.
    """
    name, _, value = text.lstrip("+").partition("=")
    if not is_secret_setting(name) or "${" in value or _is_swept(text):
        return False
    variable = "HF_TOKEN" if name in SECRET_KEYS else name.removeprefix("platform.env.")
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
