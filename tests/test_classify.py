"""Verdicts that the stub trainer cannot bring about, or not cheaply. The others are in test_worker.py."""

import math
import signal
from typing import Any

import pytest

from primus_hydra.classify import Outcome, Verdict, classify, exit_signal
from primus_hydra.log_lines import ERROR, INFO, WARNING, Line
from primus_hydra.maxtext.metrics import StepRecord
from primus_hydra.parent import StopOrder
from primus_hydra.supervisor import Exit


def record(step: int, loss: float = 5.0) -> StepRecord:
    return StepRecord(
        step=step, step_time_s=1.0, loss=loss, tokens_per_device=1.0, tflops_per_device=1.0, total_weights=1.0
    )


def judge(
    returncode: int | None,
    *,
    last: int | None = 9,
    tail: list[Line] | None = None,
    expected_steps: int | None = 10,
    oom_killed: bool = False,
    records: list[StepRecord] | None = None,
    **exit_: Any,
) -> Verdict:
    made = [record(step) for step in range(last + 1)] if last is not None else []
    how = {"max_rss_bytes": None, "stop": None, "stop_signal": None, "problem": "", **exit_}
    return classify(
        Outcome(
            exit=Exit(returncode=returncode, **how),
            expected_steps=expected_steps,
            records=made if records is None else records,
            tail=tail or [],
            oom_killed=oom_killed,
        )
    )


def test_the_last_step_with_a_finite_loss_and_exit_code_zero_is_completed() -> None:
    assert judge(0) == Verdict(state="completed", failure=None, reason="Reached its last step, 9.", last_error_lines=())


def test_one_step_short_is_not_completed() -> None:
    assert judge(0, last=8).failure == "incomplete"


def test_the_last_step_does_not_excuse_a_crash_at_the_end() -> None:
    verdict = judge(1)
    assert (verdict.state, verdict.failure, verdict.reason) == ("failed", "crash", "Exit code 1 after step 9.")


def test_an_unknown_number_of_steps_is_said() -> None:
    verdict = judge(0, last=4, expected_steps=None)
    assert verdict.state == "completed"
    assert "is not known" in verdict.reason


def test_one_infinite_loss_in_the_middle_fails_the_run() -> None:
    verdict = judge(0, records=[record(step, math.inf if step == 4 else 5.0) for step in range(10)])
    assert (verdict.failure, verdict.reason) == ("not_finite_loss", "The loss is not finite at step 4 (it is inf).")


def test_target_eval_loss_completes_a_run_before_its_last_step() -> None:
    line = Line(INFO, "x] Training stopped: Target loss self.config.target_eval_loss=3.0 is achieved.")
    assert judge(0, last=4, tail=[line]).state == "completed"


def test_a_sigterm_that_maxtext_swallowed_is_named() -> None:
    line = Line(INFO, "x] Training stopped: Job received termination signal (SIGTERM).")
    verdict = judge(0, last=4, tail=[line])
    assert (verdict.failure, verdict.reason) == (
        "incomplete",
        "The trainer received SIGTERM and stopped after step 4 of 10 steps.",
    )


def test_sigkill_with_the_out_of_memory_killer_at_work_is_out_of_memory() -> None:
    assert judge(-9, last=4, oom_killed=True).failure == "out_of_memory"
    assert judge(137, last=4, oom_killed=True).failure == "out_of_memory"
    assert judge(-9, last=4).failure == "crash"


def test_an_out_of_memory_warning_of_the_autotuner_does_not_explain_another_crash() -> None:
    tail = [
        Line(WARNING, "W0000 RESOURCE_EXHAUSTED: Out of memory while trying a GEMM algorithm"),
        Line(ERROR, "Traceback (most recent call last):"),
        Line(ERROR, "KeyError: 'x'"),
    ]
    verdict = judge(1, last=4, tail=tail)
    assert (verdict.failure, verdict.reason) == ("crash", "Exit code 1 after step 4: KeyError: 'x'")


def test_a_platform_that_was_not_meant_is_a_wrong_configuration() -> None:
    said = "PRIMUS_HYDRA PLATFORM: JAX runs on cpu, but the platform preset means rocm."
    verdict = judge(4, last=None, tail=[Line(ERROR, said)])
    assert (verdict.failure, verdict.reason) == ("config", "JAX runs on cpu, but the platform preset means rocm.")
    assert verdict.last_error_lines == (said,)


def test_exit_code_3_of_another_trainer_means_nothing_special() -> None:
    assert judge(3, last=None).failure == "crash"


def test_finishing_while_being_stopped_is_still_completed() -> None:
    assert judge(0, stop="interrupted", stop_signal=signal.SIGINT).state == "completed"
    assert judge(-15, stop="interrupted", stop_signal=signal.SIGINT).state == "interrupted"


def test_a_run_that_was_stopped_on_purpose_has_the_words_of_whoever_stopped_it() -> None:
    order = StopOrder(word="slow", reason="It is slower than half of the best.")
    tail = [Line(ERROR, "Traceback (most recent call last):"), Line(ERROR, "KeyError: 'x'")]
    assert judge(-15, last=4, stop="ordered", order=order, tail=tail) == Verdict(
        state="skipped", failure="slow", reason="It is slower than half of the best.", last_error_lines=()
    )
    assert judge(0, stop="ordered", order=order).state == "completed"


def test_a_run_whose_parent_died_is_interrupted() -> None:
    verdict = judge(-15, last=4, stop="orphaned")
    assert (verdict.state, verdict.failure) == ("interrupted", None)
    assert verdict.reason == "Interrupted after step 4: the program that started it died."


def test_a_trainer_that_could_not_be_killed_is_said() -> None:
    verdict = judge(None, last=4, stop="hung", problem="it could not be killed: it is stuck in the kernel")
    assert verdict.failure == "hung"
    assert "could not be killed" in verdict.reason


@pytest.mark.parametrize(("code", "number"), [(None, None), (0, None), (1, None), (-11, 11), (139, 11), (255, None)])
def test_signals_are_found_behind_a_shell_too(code: int | None, number: int | None) -> None:
    assert exit_signal(code) == number
