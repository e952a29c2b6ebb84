"""From `sweep.grid`, `sweep.zip` and `sweep.points` to single points: plain data in, plain data out."""

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from primus_hydra.errors import Problem

type Values = dict[str, Any]
"""Key, setting or config group -> the value that one point has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """What the `sweep` settings ask for, as it was composed; the shapes may be wrong."""

    grid: Any
    zip: Any
    points: Any

    def __bool__(self) -> bool:
        return bool(self.grid or self.zip or self.points)


def check_shapes(space: Space, tell_origin: Callable[[str], str]) -> list[Problem]:
    """Everything that is wrong with the shapes of a space.

    Args:
        space: as composed, or as a file has it.
        tell_origin: dotted name such as `sweep.grid.steps` -> where it was set.
    """
    found = [*_check_grid(space.grid), *_check_zip(space.zip), *_check_points(space.points)]
    if not found:
        names = Counter(name for names in (space.grid, *space.zip) for name in names)
        found = [
            ("sweep.zip", f"{name} has values in more than one place of sweep.grid and sweep.zip.", "Keep one of them.")
            for name, number in names.items()
            if number > 1
        ]
    return [Problem(what=what, fix=fix, origin=tell_origin(setting)) for setting, what, fix in found]


def list_places(name: str) -> tuple[str, str, str]:
    """Settings that can give a name its values."""
    return f"sweep.grid.{name}", "sweep.zip", "sweep.points"


def expand(space: Space, taken: Collection[str]) -> list[Values]:
    """Every combination of the grid and the paired lists, then the single points; no point twice.

    Args:
        space: checked by `check_shapes`.
        taken: names that the command line gives; what the space says about them is left out.

    Returns:
        At least one point; the empty one where the space says nothing.
    """
    axes = [[{name: value} for value in values] for name, values in space.grid.items() if name not in taken]
    axes += [_pair(_without(names, taken)) for names in space.zip if _without(names, taken)]
    grid: list[Values] = [_join(chosen) for chosen in itertools.product(*axes)] if space.grid or space.zip else []
    points = grid + [_without(point, taken) for point in space.points]
    return list({repr(sorted(point.items())): point for point in points}.values()) or [{}]


def _pair(lists: Mapping[str, Sequence[Any]]) -> list[Values]:
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _join(parts: Sequence[Values]) -> Values:
    return {name: value for part in parts for name, value in part.items()}


def _without(names: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in names.items() if name not in taken}


type _Finding = tuple[str, str, str]
"""Setting, what is wrong, what to write."""


def _check_grid(grid: Any) -> Iterator[_Finding]:
    if not isinstance(grid, Mapping):
        yield (
            "sweep.grid",
            f"sweep.grid={grid!r} is no mapping.",
            "Write one list per name: {remat_policy: [full, minimal]}.",
        )
        return
    for name, values in grid.items():
        yield from _check_list(f"sweep.grid.{name}", values)


def _check_zip(groups: Any) -> Iterator[_Finding]:
    example = "Write a list of mappings: [{per_device_batch_size: [1, 2], max_target_length: [4096, 2048]}]."
    if not isinstance(groups, list) or not all(isinstance(lists, Mapping) for lists in groups):
        yield "sweep.zip", f"sweep.zip={groups!r} is no list of mappings.", example
        return
    for position, lists in enumerate(groups):
        wrong = [
            found for name, values in lists.items() for found in _check_list(f"sweep.zip[{position}].{name}", values)
        ]
        yield from (("sweep.zip", what, fix) for _, what, fix in wrong)
        lengths = {name: len(values) for name, values in lists.items() if isinstance(values, list)}
        if not wrong and len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            yield (
                "sweep.zip",
                f"The lists of sweep.zip[{position}] are not equally long: {shown}.",
                ("Values go together by position, so give each name as many; sweep.grid makes every combination."),
            )


def _check_points(points: Any) -> Iterator[_Finding]:
    if not isinstance(points, list) or not all(isinstance(point, Mapping) and point for point in points):
        yield (
            "sweep.points",
            f"sweep.points={points!r} is no list of mappings.",
            ("Write one mapping for each point: [{remat_policy: full, per_device_batch_size: 4}]."),
        )


def _check_list(setting: str, values: Any) -> Iterator[_Finding]:
    if isinstance(values, Mapping):
        inner = next(iter(values), "NAME")
        name = setting.removeprefix("sweep.grid.")
        yield setting, f"{setting} is a mapping.", f"Write the name in one piece: {name}.{inner}: [...]."
    elif not isinstance(values, list):
        yield setting, f"{setting}={values!r} is no list.", f"Write [{values}], or set the key itself beside `sweep`."
    elif not values:
        yield setting, f"{setting} is an empty list.", "Give at least one value, or remove the name."
