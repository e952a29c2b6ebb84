"""The drawings: every one compiles, shows its data, and takes a user's texts as texts."""

import itertools
import json
from typing import Any

import pytest
import vl_convert

from primus_hydra.report import charts, row_charts, series
from primus_hydra.report.figure_list import Figure, list_figures
from primus_hydra.report.heat_map import HeatCell, HeatMap
from primus_hydra.report.model import Run, Step
from primus_hydra.report.points import read_points
from primus_hydra.report.traces import LastFinite, LossPoint, StepMark, StepTimes, Trace, choose_traced
from primus_hydra.report.vega import CONFIG, Spec
from tests.report_runs import TOKENS, make_report, make_run

HOSTILE = """a.b[0]\\'"`${x}</script><b>&datum["x"]||alert(1)\u2028\u202e"""
ALL = ["scores", "memory", "heat-map", "front", "step-times", "losses"]


def _draw(spec: Spec) -> str:
    """The chart as SVG, by the library that the page embeds."""
    return str(vl_convert.vegalite_to_svg({**spec, "width": 700}, config=CONFIG))


def _grid(*, text: str = "nanoo_fp8") -> list[Run]:
    pairs = [(policy, quantization) for policy in ("full", "minimal") for quantization in ("", text)]
    return [
        make_run(
            f"r{number}", 1000 + 100 * number, overrides=(f"remat_policy={policy}", f"quantization={quantization}")
        )
        for number, (policy, quantization) in enumerate(pairs)
    ]


def _figures(runs: list[Run]) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    points = read_points(make_report(*runs))
    steps = [Step(step=number, loss=5.0 - number / 10, step_time_s=1 + number % 3 / 10) for number in range(12)]
    traces = {point.label: [Trace(steps, 3)] for point, _ in choose_traced(points) if point.row.rank is not None}
    return list_figures(points, TOKENS, traces)


def _values(spec: Spec) -> list[dict[str, Any]]:
    """Every row of data of a specification."""
    return [row for rows in spec["datasets"].values() for row in rows]


def test_every_figure_of_a_sweep_is_drawn_with_its_points() -> None:
    figures, missing = _figures(_grid())
    assert ([figure.name for figure in figures], missing) == (ALL, ())
    for figure in figures:
        for panel in figure.panels:
            svg = _draw(panel.spec)
            assert ("minimal" in svg) is (figure.name != "front")  # its points have their ranks
            assert "var(--" in svg


def test_a_users_text_is_never_a_field_or_an_expression() -> None:
    texts = [HOSTILE, "{{7*7}}", "platform.env.X", "x" * 400, "🚀 ümlaut"]
    runs = [
        make_run(f"{number}{text}", 100 + number, overrides=(f"remat_policy={other}", f"quantization={text}"))
        for number, (text, other) in enumerate(itertools.product(texts, repeat=2))
    ]
    figures, _ = _figures(runs)
    assert [figure.name for figure in figures] == ALL
    for figure in figures:
        for panel in figure.panels:
            assert ("platform.env.X" in _draw(panel.spec)) is (figure.name != "front")
            assert json.loads(json.dumps(panel.spec, allow_nan=False)) == panel.spec


def test_a_swept_key_with_dots_makes_a_heat_map() -> None:
    runs = [
        make_run(f"{x}{y}", 100 * x + y, overrides=(f"platform.env.A={x}", f"platform.xla_flags.b={y}"))
        for x in (1, 2)
        for y in (3, 4)
    ]
    figures, _ = _figures(runs)
    (heat,) = (figure for figure in figures if figure.name == "heat-map")
    assert heat.title == "tokens/s/device over platform.env.A and platform.xla_flags.b"
    assert "platform.env.A" in _draw(heat.panels[0].spec)


def test_without_data_a_chart_is_left_out_with_one_sentence() -> None:
    alone = make_run("a", peak_device_memory_gib=None, peak_host_memory_gib=None)
    figures, missing = _figures([alone])
    assert [figure.name for figure in figures] == ["scores", "step-times", "losses"]
    assert len(missing) == 3
    figures, missing = _figures([make_run("a", state="failed", result={})])
    assert figures == ()
    assert all(sentence.startswith("There ") and sentence.endswith(".") for sentence in missing)
    assert len(missing) == len(ALL)


def test_charts_of_many_points_say_how_many_they_leave_out() -> None:
    figures, _ = _figures([make_run(f"r{number:03}", 1000 + number) for number in range(100)])
    captions = {figure.name: figure.caption for figure in figures}
    assert captions["scores"].startswith("The best 30 of 100 points. ")
    assert captions["memory"].startswith("The best 30 of 100 points. ")
    assert captions["losses"].startswith("The best 12 of 100 points. ")


def test_the_scores_chart_has_one_row_of_data_a_point() -> None:
    points = [series.ScorePoint("a", 31018.4, 30870, 31117, 1), series.ScorePoint("b", 29157, 29057, 29294, 2)]
    rows = _values(row_charts.draw_scores(points, TOKENS))
    assert [(row["label"], row["shown"], row["place"]) for row in rows[:2]] == [
        ("a", "31,018", "first"),
        ("b", "29,157", "other"),
    ]
    assert rows[0]["interval"] == "30,870 to 31,117"


def test_cells_without_a_score_say_why() -> None:
    cells = (HeatCell("full", "", 10.0, 6, "completed"), HeatCell("full", "fp8", None, None, "wont_fit"))
    heat = HeatMap("remat_policy", "quantization", None, ("full",), ("", "fp8"), (("", cells),), 1)
    (panel,) = charts.draw_heat_map(heat, TOKENS)
    svg = _draw(panel.spec)
    assert "wont fit" in svg
    assert "var(--h6)" in svg
    assert "var(--hnone)" in svg


def test_a_loss_that_is_not_finite_is_a_gap_and_a_cross() -> None:
    points = [LossPoint("a", step, None if step == 2 else 1.0 + step) for step in range(5)]
    svg = _draw(charts.draw_losses(points, [LastFinite("a", 4, 5.0)]))
    assert "var(--bad)" in svg
    line = svg.split('class="mark-line', 1)[1].split("<path", 1)[1].split(">", 1)[0]
    assert line.count("M") == 2


def test_curves_that_share_a_colour_differ_in_their_dashes() -> None:
    points = [LossPoint(f"r{number}", step, 1.0) for number in range(16) for step in (0, 1)]
    layer = charts.draw_losses(points, [])["layer"][0]
    colors = layer["encoding"]["color"]["scale"]["range"]
    dashes = layer["encoding"]["strokeDash"]["scale"]["range"]
    assert len({(color, *dash) for color, dash in zip(colors, dashes, strict=True)}) == 16


def test_a_step_that_compiles_does_not_squeeze_the_measured_ones() -> None:
    times = [StepTimes("a", 0.9, 0.95, 1.0, 1.05, 1.1, 50)]
    marks = [StepMark("a", 0, 60.0, True), StepMark("a", 1, 0.001, True), StepMark("a", 30, 1.5, False)]
    assert list(row_charts.find_time_range(times, marks)) == pytest.approx([0.36, 2.75])
    drawn = {row["step"]: row["drawn"] for row in _values(row_charts.draw_step_times(times, marks)) if "drawn" in row}
    assert drawn == {0: "either, beyond the axis", 1: "either, beyond the axis", 30: "far-off step"}


def test_step_times_of_very_different_points_are_on_a_logarithmic_axis() -> None:
    def spread(label: str, middle: float) -> StepTimes:
        return StepTimes(label, middle * 0.9, middle * 0.95, middle, middle * 1.05, middle * 1.1, 50)

    assert '"type": "log"' in json.dumps(row_charts.draw_step_times([spread("a", 0.01), spread("b", 10.0)], []))
    assert '"type": "log"' not in json.dumps(row_charts.draw_step_times([spread("a", 1.0), spread("b", 2.0)], []))


def test_equal_figures_are_drawn() -> None:
    times = [StepTimes(label, 1.0, 1.0, 1.0, 1.0, 1.0, 5) for label in "ab"]
    assert "1.000 s" in _draw(row_charts.draw_step_times(times, []))
    points = [series.ScorePoint(label, 5.0, 5.0, 5.0, 1) for label in "ab"]
    assert "5.000" in _draw(row_charts.draw_scores(points, TOKENS))


def test_texts_that_were_not_combined_make_no_heat_map() -> None:
    runs = [make_run(f"{n}", 100 + n, overrides=(f"learning_rate={n}", f"steps={n}")) for n in range(5)]
    figures, missing = _figures(runs)
    assert "heat-map" not in [figure.name for figure in figures]
    (sentence,) = missing
    assert sentence.startswith("There is no heat map: the values of learning_rate and steps were not combined; ")


def test_curves_that_coincide_are_narrower_one_above_the_other() -> None:
    points = [LossPoint(f"r{number}", step, 1.0) for number in range(4) for step in (0, 1)]
    rows = _values(charts.draw_losses(points, []))
    widths = [row["width"] for row in rows if row["step"] == 0]
    assert widths == sorted(set(widths), reverse=True)
