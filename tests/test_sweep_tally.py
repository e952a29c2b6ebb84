"""Counting what became of jobs, and how long the rest of a sweep takes."""

from typing import Any

import pytest

from primus_hydra.objective import OBJECTIVES
from primus_hydra.sweep.ending import Ending
from primus_hydra.sweep.tally import Tally, estimate_rest_s

LOSS = OBJECTIVES["final_loss"]


def completed(loss: float | None, **record: Any) -> Ending:
    record = {"state": "completed", "wall_s": 10.0, "result": {"final_loss": loss}, **record}
    return Ending(state="completed", record=record)


def test_the_best_follows_the_objectives_direction() -> None:
    tally = Tally(LOSS, 4, [("earlier", completed(3.0).record)])
    news = [tally.add(str(loss), completed(loss)) for loss in (4.0, 2.0, None, 2.0)]
    assert news == [False, True, False, False]
    assert tally.best == (2.0, "2.0")


def test_only_completed_points_are_compared() -> None:
    tally = Tally(LOSS, 2, [])
    skipped = Ending(state="skipped", record={"state": "skipped", "wall_s": 1.0, "result": {"final_loss": 1.0}})
    assert not tally.add("a", skipped)
    assert not tally.add("b", Ending(state="abandoned"))
    assert (tally.best, tally.walls_s, dict(tally.states)) == (None, [], {"skipped": 1, "abandoned": 1})
    assert tally.position.startswith("2/")


def test_damaged_records_of_earlier_starts_are_forgiven() -> None:
    tally = Tally(LOSS, 1, [("a", {"state": "completed", "result": None, "wall_s": "soon"}), ("b", {})])
    assert (tally.best, tally.walls_s) == (None, [])


@pytest.mark.parametrize(
    ("walls_s", "running", "num_waiting", "num_slots", "rest_s"),
    [
        ([], [(5.0, None)], 3, 1, None),
        ([], [(5.0, 15.0)], 3, 1, 75.0),
        ([10.0, 20.0, 90.0], [], 4, 2, 40.0),
        ([10.0], [(4.0, None), (50.0, None)], 0, 2, 6.0),  # the second is late already
        ([10.0], [(4.0, 100.0)], 1, 4, 100.0),  # one long run holds up the end
    ],
)
def test_the_rest_of_a_sweep_is_estimated_from_medians(
    walls_s: list[float],
    running: list[tuple[float, float | None]],
    num_waiting: int,
    num_slots: int,
    rest_s: float | None,
) -> None:
    assert estimate_rest_s(walls_s, running, num_waiting=num_waiting, num_slots=num_slots) == rest_s
