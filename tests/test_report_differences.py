"""What differs between points, and what they share."""

from primus_hydra.report.differences import Difference, Shared, list_differences, list_shared
from primus_hydra.report.labels import UNKNOWN
from primus_hydra.report.model import Run
from primus_hydra.report.points import Point, read_points
from tests.report_runs import make_report, make_run


def _points(*runs: Run) -> tuple[Point, ...]:
    return read_points(make_report(*runs))


def test_keys_variables_flags_and_versions_that_differ_are_listed() -> None:
    common = {"steps": 8, "run_name": "ignored"}
    points = _points(
        make_run(
            "a",
            2000,
            composed=common | {"remat_policy": "full", "packing": True},
            environment={"NCCL_DEBUG": "1", "XLA_FLAGS": "--xla_one=1 --xla_two=''"},
            versions={"jax": "0.12.0"},
        ),
        make_run(
            "b",
            1000,
            composed=common | {"remat_policy": "minimal", "packing": True, "run_name": "other"},
            environment={"NCCL_DEBUG": "1", "XLA_FLAGS": "--xla_one=2 --xla_two=''"},
            versions={"jax": "0.12.1"},
            platform="cpu",
        ),
    )
    assert list_differences(points) == (
        Difference("key", "remat_policy", ("full", "minimal")),
        Difference("XLA flag", "xla_one", ("1", "2")),
        Difference("version", "jax", ("0.12.0", "0.12.1")),
        Difference("machine", "platform", ("gpu", "cpu")),
    )
    assert list_shared(points) == (
        Shared("environment", "NCCL_DEBUG", "1"),
        Shared("XLA flag", "xla_two", "''"),
        Shared("machine", "device_kind", "MI300X"),
        Shared("machine", "num_devices", "8"),
    )


def test_a_key_that_one_point_lacks_is_not_set_there() -> None:
    points = _points(make_run("a", 2, composed={"steps": 1, "x": 1}), make_run("b", 1, composed={"steps": 1}))
    assert list_differences(points) == (Difference("key", "x", ("1", "(not set)")),)


def test_a_run_whose_configuration_is_not_known_makes_no_difference() -> None:
    points = _points(
        make_run("a", 3, composed={"steps": 1}),
        make_run("b", 2, composed={"steps": 2}),
        make_run("c", 1, state="foreign"),
    )
    assert list_differences(points) == (Difference("key", "steps", ("1", "2", UNKNOWN)),)
    assert list_differences(points[1:]) == ()


def test_flags_that_are_no_flags_are_compared_as_they_are() -> None:
    points = _points(make_run("a", 2, environment={"XLA_FLAGS": "no flag"}), make_run("b", 1, environment={}))
    assert list_shared(points)[0] == Shared("XLA flag", "XLA_FLAGS", "no flag")


def test_a_point_that_was_never_composed_has_the_values_of_its_overrides() -> None:
    points = _points(
        make_run("a", 2, overrides=("steps=1",), composed={"steps": 1, "dtype": "x"}),
        make_run("b", 1, overrides=("steps=2",), composed={"steps": 2, "dtype": "y"}),
        make_run("c", state="invalid", overrides=("steps=3",), result={}),
    )
    assert list_differences(points) == (
        Difference("key", "dtype", ("x", "y", UNKNOWN)),
        Difference("key", "steps", ("1", "2", "3")),
    )
