"""Points that lie in the sweep's folder already, under another number or spelling: they keep the folder they have."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from primus_hydra.export import complete_keys
from primus_hydra.points import Plan, Point
from primus_hydra.runs import RunFolder
from primus_hydra.sweep.records import read_if_there


def adopt_folders(points: Sequence[Point]) -> list[Point]:
    """Give a point without a run folder the one in the sweep's folder that trains exactly the same.

    A grid that got another value, or another order, numbers its points anew; no result may be run twice for that.

    Args:
        points: of one sweep, without further repeats.
    """
    own = {point.folder.path for point in points}
    homeless = [point for point in points if point.plan is not None and not point.folder.run_json.exists()]
    found = _list_folders(homeless[0].folder.path.parent, own) if homeless else {}
    moved = {
        point.number: _move(point, point.plan, found[fingerprint])
        for point in homeless
        if found and point.plan is not None and (fingerprint := point.plan.fingerprint) in found
    }
    return [moved.get(point.number, point) for point in points]


def _list_folders(sweep_dir: Path, own: set[Path]) -> dict[str, RunFolder]:
    """Fingerprint -> the folder of the first run of such a point; folders of these points themselves are left out."""
    folders = [RunFolder(file.parent) for file in sorted(sweep_dir.glob("*/run.json")) if file.parent not in own]
    found: dict[str, RunFolder] = {}
    for folder in folders:
        record = read_if_there(folder) or {}
        if isinstance(record.get("fingerprint"), str) and record.get("repeat") == 1:
            found.setdefault(record["fingerprint"], folder)
    return found


def _move(point: Point, plan: Plan, folder: RunFolder) -> Point:
    keys, origins = complete_keys(plan.composition, folder)
    return replace(point, folder=folder, plan=replace(plan, folder=folder, keys=keys, origins=origins))
