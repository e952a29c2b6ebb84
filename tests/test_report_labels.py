"""The names of points, in one sweep and in several."""

from dataclasses import replace

from primus_hydra.report.labels import UNKNOWN, show_overrides
from primus_hydra.report.model import Run
from primus_hydra.report.points import read_points
from tests.report_runs import make_report, make_run


def _run(name: str, *overrides: str, sweep: str = "one") -> Run:
    return make_run(name, overrides=overrides, differs=" ".join(overrides), sweep=sweep)


def _labels(*runs: Run) -> list[str]:
    return sorted(point.label for point in read_points(make_report(*runs)))


def test_labels_are_unique_across_sweeps_and_within_one() -> None:
    runs = [_run("0", "remat_policy=full"), _run("1", "remat_policy=minimal")]
    other = [replace(run, sweep="two") for run in runs]
    labels = _labels(*runs, *other, _run("2", "remat_policy=full"))
    assert len(set(labels)) == 5
    assert "two: minimal" in labels


def test_of_several_sweeps_a_label_has_what_differs_inside_of_its_own() -> None:
    runs = [_run(str(size), "model=tiny", f"steps={size}", sweep="small") for size in (8, 16)]
    runs += [_run(policy, "model=large", f"remat_policy={policy}", sweep="big") for policy in ("full", "minimal")]
    runs += [_run("0", "model=large", sweep="baseline")]
    assert _labels(*runs) == ["baseline", "big: full", "big: minimal", "small: steps=16", "small: steps=8"]


def test_a_point_of_unknown_configuration_is_called_by_its_folder_and_has_no_invented_values() -> None:
    foreign = [replace(make_run(name, state="foreign", sweep="old"), differs="") for name in ("a", "old/full")]
    points = read_points(make_report(_run("0", "steps=1"), _run("1", "steps=2"), *foreign))
    assert {point.label: point.values["steps"] for point in points} == {
        "one: steps=1": "1",
        "one: steps=2": "2",
        "old: a": UNKNOWN,
        "old/full": UNKNOWN,
    }


def test_a_number_has_four_digits_unless_two_of_them_would_look_the_same() -> None:
    rates = [_run(rate, f"learning_rate={rate}") for rate in ("6.497213e-05", "0.0003012345")]
    assert _labels(*rates) == ["learning_rate=0.0003012", "learning_rate=6.497e-05"]
    close = [_run(rate, f"learning_rate={rate}") for rate in ("0.0001000001", "0.0001000002")]
    assert _labels(*close) == ["learning_rate=0.0001000001", "learning_rate=0.0001000002"]
    assert _labels(*(_run(size, f"steps={size}") for size in ("100001", "200001"))) == ["steps=100001", "steps=200001"]


def test_a_long_label_is_cut_where_nothing_differs_and_one_that_steers_text_is_spelt_out() -> None:
    assert _labels(make_run("a" * 90), make_run("x\u202egnp.exe")) == ["a" * 59 + "…", "x\\u202egnp.exe"]
    paths = _labels(*(_run(name, f"dataset_path=/{'long/' * 20}{name}") for name in ("web", "code")))
    assert {(len(label), label[0], label.rpartition("/")[2]) for label in paths} == {
        (60, "…", "code"),
        (60, "…", "web"),
    }


def test_overrides_are_shown_without_quotes_that_nobody_needs() -> None:
    text = """platform.env.A='1' quantization= b='' c="fp8" d='two words' e=[1,2]"""
    assert show_overrides(text) == """platform.env.A=1 quantization="" b="" c=fp8 d='two words' e=[1,2]"""
