"""Which points a sweep has: those of the command line, each with those that its presets ask for."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from primus_hydra.errors import ConfigError, Problem, SweepRefused
from primus_hydra.grammar import typed_name
from primus_hydra.origins import preset_folders
from primus_hydra.overrides import CommandLine, rewrite_override, write_override
from primus_hydra.sweep.composer import Composer, open_composer
from primus_hydra.sweep.expand import Space, Values, check_shapes, expand, list_places

_SPACE = ("sweep.grid", "sweep.zip", "sweep.points")
_PARAMS = "hydra.sweeper.params"
_NOTHING = Space(grid={}, zip=[], points=[])


def list_jobs(
    loader: ConfigLoader, master: DictConfig, arguments: Sequence[str], params: Mapping[str, Any]
) -> list[list[str]]:
    """The overrides of every point, those of presets first: what the command line says wins.

    Args:
        loader: Hydra's, over the preset folders.
        master: what Hydra composed from the command line.
        arguments: the command line's overrides, as Hydra got them.
        params: `hydra.sweeper.params`: name -> values as a command line has them.

    Raises:
        SweepRefused: names, values or shapes are wrong, all of them.
    """
    composer = open_composer(loader, master)
    line = CommandLine(folders=preset_folders(loader), multirun=True)
    names = {typed_name(text) for text in arguments}
    written = [rewrite_override(f"{name}={value}", line) for name, value in params.items() if name not in names]
    problems = [replace(problem, origin=f"{_PARAMS}: {text}") for text, problem in written if problem]
    if problems:
        raise SweepRefused(problems)
    typed = _cross([*(text for text, _ in written), *arguments], loader)
    jobs, problems = _add_spaces(composer, typed, line)
    if problems:
        raise SweepRefused(list(dict.fromkeys(problems)))
    return jobs


def _cross(texts: Sequence[str], loader: ConfigLoader) -> list[list[str]]:
    """Every combination of the values on the command line."""
    overrides = OverridesParser.create(config_loader=loader).parse_overrides(list(texts))
    swept = [override for override in overrides if override.is_sweep_override()]
    if continuous := [override for override in swept if not override.is_discrete_sweep()]:
        what = "{} has no list of values, so it makes no grid."
        fix = "Write choice(...) or range(...), or search with hydra/sweeper=optuna."
        raise SweepRefused([Problem(what=what.format(override.input_line), fix=fix) for override in continuous])
    last = {override.get_key_element(): override for override in overrides}
    return [list(chosen) for chosen in itertools.product(*(_spell(override) for override in last.values()))]


def _spell(override: Override) -> list[str]:
    if not override.is_sweep_override():
        return [str(override.input_line)]
    return [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]


def _add_spaces(
    composer: Composer, typed: Sequence[list[str]], line: CommandLine
) -> tuple[list[list[str]], list[Problem]]:
    """The points of each typed combination, and all that is wrong with what its presets ask for."""
    jobs: list[list[str]] = []
    problems: list[Problem] = []
    spaces: dict[tuple[str, ...], tuple[Space, list[Problem]]] = {}
    for overrides in typed:
        # What a space says depends on the presets, and on the few overrides of the space itself.
        key = tuple(text for text in overrides if composer.chooses(text) or typed_name(text).startswith(_SPACE))
        if key not in spaces:
            spaces[key] = _read_space(composer, key)
        space, wrong = spaces[key]
        problems += wrong
        if wrong:
            continue
        for values in expand(space, {typed_name(text) for text in overrides}):
            written = [*_write(composer, key, values, line)]
            texts = [text for text, _ in written]
            found = [problem for _, problem in written if problem is not None]
            problems += found or _check_nesting(composer, texts, key, space)
            jobs.append([*texts, *overrides])
    return jobs, problems


def _check_nesting(composer: Composer, texts: Sequence[str], key: Sequence[str], space: Space) -> list[Problem]:
    """A preset that a grid chooses, and that asks for more values itself: nobody would see those."""
    chosen = [text for text in texts if composer.chooses(text)]
    if not chosen or _read_space(composer, [*chosen, *key])[0] in (space, _NOTHING):
        return []
    what = (
        f"{' '.join(chosen)} is a value in a grid, and brings values for sweep.grid, sweep.zip or sweep.points itself."
    )
    return [Problem(what=what, fix=f"Name it on the command line, which may list several: {chosen[0]},...")]


def _read_space(composer: Composer, overrides: Sequence[str]) -> tuple[Space, list[Problem]]:
    try:
        sweep = composer.compose(overrides).sweep
    except ConfigError as error:
        # Our launcher composes the whole point and tells what is wrong with it; others start whatever they are given.
        ours = composer.master.hydra.runtime.choices["hydra/launcher"] == "local"
        return _NOTHING, [] if ours else list(error.problems)
    space = Space(grid=_plain(sweep, "grid"), zip=_plain(sweep, "zip"), points=_plain(sweep, "points"))
    return space, check_shapes(space, lambda setting: _tell_origin(composer, overrides, setting))


def _plain(sweep: DictConfig, name: str) -> Any:
    """A part of the space; lists behind an interpolation are looked up, single values keep theirs for the point."""
    node = sweep[name]
    if name == "grid" and isinstance(node, DictConfig):
        return {str(key): _to_plain(node[key]) for key in node}
    return _to_plain(node)


def _to_plain(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=False) if OmegaConf.is_config(value) else value


def _write(
    composer: Composer, overrides: Sequence[str], values: Values, line: CommandLine
) -> Iterator[tuple[str, Problem | None]]:
    for name, value in values.items():
        text, problem = write_override(name, value, line)
        if problem is not None:
            origins = dict.fromkeys(_tell_origin(composer, overrides, setting) for setting in list_places(name))
            problem = replace(problem, origin="; ".join(origin for origin in origins if origin))
        yield text, problem


def _tell_origin(composer: Composer, overrides: Sequence[str], setting: str) -> str:
    origins = composer.find_template(overrides).origins
    typed = [text for text in overrides if typed_name(text) == setting.split("[")[0]]
    return f"command line: {typed[0].lstrip('+')}" if typed else str(origins.get(setting, ""))
