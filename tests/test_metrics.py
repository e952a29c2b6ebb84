"""Reading MaxText's metrics file while it grows, and its step lines."""

import json
import math
from pathlib import Path

import pytest

from primus_hydra.maxtext.metrics import (
    MetricsTail,
    StepHistory,
    StepRecord,
    parse_log_line,
    parse_metrics_line,
    parse_platform_line,
)

REAL_LINE = (
    "I1201 04:05:47.905265 140040413186944 metric_logger.py:265] completed step: 1, seconds: 0.180, "
    "TFLOP/s/device: 0.500, Tokens/s/device: 712.108, total_weights: 128, loss: 14.107, lm_loss: 14.108, "
    "perplexity: 1337859.750"
)


def metrics_line(step: int, loss: float = 5.0) -> str:
    return json.dumps(
        {
            "learning/loss": loss,
            "learning/total_weights": 128.0,
            "perf/step_time_seconds": 0.5,
            "perf/per_device_tflops": 2.0,
            "perf/per_device_tokens": 128.0,
            "step": float(step),
            "run_name": "x",
        }
    )


def test_a_metrics_line_is_read_with_all_its_digits() -> None:
    assert parse_metrics_line(metrics_line(3, 5.123456789)) == StepRecord(
        step=3, step_time_s=0.5, loss=5.123456789, tokens_per_device=128.0, tflops_per_device=2.0, total_weights=128.0
    )


def test_a_bare_nan_is_read() -> None:
    record = parse_metrics_line(metrics_line(3, float("nan")))
    assert record is not None
    assert math.isnan(record.loss)


@pytest.mark.parametrize(
    "line", ["", "{", "[1]", "7", '{"eval/avg_loss": 1.0, "step": 0.0}', '{"learning/loss": 1.0}', "\ufffd", "NaN"]
)
def test_what_is_no_training_step_is_passed_over(line: str) -> None:
    assert parse_metrics_line(line) is None


def test_a_step_line_of_the_log_is_read() -> None:
    record = parse_log_line(REAL_LINE)
    assert record is not None
    assert (record.step, record.step_time_s, record.loss, record.total_weights) == (1, 0.18, 14.107, 128)
    assert record.tokens_per_device == pytest.approx(128.18, abs=0.01)
    assert record.tflops_per_device == pytest.approx(0.09)


@pytest.mark.parametrize("loss", ["nan", "inf", "-inf"])
def test_a_loss_that_is_not_finite_is_read_from_the_log(loss: str) -> None:
    record = parse_log_line(REAL_LINE.replace(" loss: 14.107", f" loss: {loss}"))
    assert record is not None
    assert not math.isfinite(record.loss)


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "-0.5", "null", '"0.5"', "true", "[]", "1e999"])
def test_a_figure_that_is_none_is_unknown_and_the_step_counts(figure: str) -> None:
    line = metrics_line(3).replace(": 0.5", f": {figure}").replace(": 2.0", f": {figure}")
    record = parse_metrics_line(line)
    assert record is not None
    assert (record.step, record.step_time_s, record.tflops_per_device) == (3, None, None)
    assert record.tokens_per_device == 128


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1.000", "1.2.3"])
def test_a_step_line_without_a_time_is_a_step(seconds: str) -> None:
    record = parse_log_line(REAL_LINE.replace("seconds: 0.180", f"seconds: {seconds}"))
    assert record is not None
    assert (record.step, record.step_time_s, record.tokens_per_device, record.loss) == (1, None, None, 14.107)


def test_json_that_is_nested_too_deeply_is_passed_over() -> None:
    assert parse_metrics_line("[" * 100_000) is None


@pytest.mark.parametrize(
    "line", ["Completed eval step: 0, seconds: 0.013, running loss=14.1", "completed step: x", "", "loss: 3"]
)
def test_other_lines_are_no_steps(line: str) -> None:
    assert parse_log_line(line) is None


def test_backend_and_devices_are_learnt_from_the_log() -> None:
    assert parse_platform_line("max_utils.py:837] System Information: Jax Backend: cpu") == {"jax_platform": "cpu"}
    assert parse_platform_line("x] Num_devices: 8, shape (1, 8)") == {"num_devices": 8}
    assert parse_platform_line("anything else") == {}


def test_the_tail_reads_a_growing_file_and_waits_for_the_end_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    tail = MetricsTail(path)
    assert tail.poll() == []
    path.write_text(metrics_line(0) + "\n" + metrics_line(1)[:40], encoding="utf-8")
    assert [record.step for record in tail.poll()] == [0]
    assert tail.poll() == []
    with path.open("a", encoding="utf-8") as stream:
        stream.write(metrics_line(1)[40:] + "\n" + metrics_line(2) + "\n")
    assert [record.step for record in tail.poll()] == [1, 2]


def test_the_tail_notices_a_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    tail = MetricsTail(path)
    path.write_text("".join(metrics_line(step) + "\n" for step in range(5)), encoding="utf-8")
    assert len(tail.poll()) == 5
    path.write_text(metrics_line(5) + "\n", encoding="utf-8")
    assert [record.step for record in tail.poll()] == [5]


def test_the_tail_notices_a_file_that_was_truncated_and_grew_past_the_old_end(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    tail = MetricsTail(path)
    path.write_text(metrics_line(0) + "\n", encoding="utf-8")
    tail.poll()
    path.write_text("".join(metrics_line(step) + "\n" for step in range(1, 9)), encoding="utf-8")
    assert [record.step for record in tail.poll()] == list(range(1, 9))


def test_metrics_beat_the_log_whichever_comes_first() -> None:
    exact, rounded = parse_metrics_line(metrics_line(1)), parse_log_line(REAL_LINE)
    assert exact is not None
    assert rounded is not None
    early, late = StepHistory(), StepHistory()
    early.add_log(rounded)
    early.add_metrics([exact])
    late.add_metrics([exact])
    late.add_log(rounded)
    assert early.records() == late.records() == (exact,)
    assert early.latest == late.latest == exact


def test_a_repeated_step_counts_as_progress_but_not_as_another_step() -> None:
    first, again = parse_metrics_line(metrics_line(1, 5.0)), parse_metrics_line(metrics_line(1, 4.0))
    assert first is not None
    assert again is not None
    history = StepHistory()
    history.add_metrics([first, again])
    assert history.records() == (again,)
    assert history.num_seen == 2
