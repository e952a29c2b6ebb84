"""The names of points, and the keys that a sweep varies."""

from typing import Any

from primus_hydra.report.model import Run
from primus_hydra.report.points import order_values, read_points
from tests.report_runs import make_report, make_run


def _run(name: str, *overrides: str, **changes: Any) -> Run:
    return make_run(name, overrides=("model=tiny", *overrides), differs=" ".join(overrides), **changes)


def test_labels_are_the_values_that_vary_and_a_number_has_its_key() -> None:
    report = make_report(
        _run("0", "remat_policy=full", 'quantization=""', "per_device_batch_size=2"),
        _run("1", "remat_policy=minimal", "quantization=nanoo_fp8", "per_device_batch_size=4"),
    )
    assert [point.label for point in read_points(report)] == [
        'full · quantization="" · per_device_batch_size=2',
        "minimal · nanoo_fp8 · per_device_batch_size=4",
    ]


def test_swept_variables_and_switches_are_named_by_their_last_word() -> None:
    report = make_report(
        _run("0", "platform.env.NCCL_ALGO=1", "+packing=true"), _run("1", "platform.env.NCCL_ALGO=2", "+packing=false")
    )
    points = read_points(report)
    assert [point.label for point in points] == ["NCCL_ALGO=1 · packing=true", "NCCL_ALGO=2 · packing=false"]
    assert dict(points[0].values) == {"platform.env.NCCL_ALGO": "1", "packing": "true"}


def test_a_key_that_a_point_does_not_override_has_its_composed_value() -> None:
    report = make_report(
        _run("0", "scan_layers=false"), _run("1", composed={"scan_layers": True}), _run("2", "scan_layers=true")
    )
    assert [point.values["scan_layers"] for point in read_points(report)] == ["false", "true", "true"]


def test_repeats_of_a_point_come_together() -> None:
    report = make_report(make_run("a"), make_run("a", repeat=2), make_run("b"))
    assert {point.row.point: [run.repeat for run in point.runs] for point in read_points(report)} == {
        "a": [1, 2],
        "b": [1],
    }


def test_values_are_in_the_order_of_numbers_or_else_of_the_folders() -> None:
    report = make_report(
        *(_run(str(number), f"steps={value}", f"remat_policy={policy}") for number, value, policy in _VALUES)
    )
    points = read_points(report)
    assert order_values(points, "steps") == ("9", "10", "100")
    assert order_values(points, "remat_policy") == ("minimal", "full", "custom")


_VALUES = ((0, 100, "minimal"), (1, 9, "full"), (2, 10, "custom"))
