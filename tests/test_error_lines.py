"""The few lines that say what went wrong."""

from primus_hydra.error_lines import MAX_CHARACTERS, find_error_lines, find_exception, shorten
from primus_hydra.log_lines import ERROR, INFO, Line

TRACEBACK = [
    Line(ERROR, "Traceback (most recent call last):"),
    Line(ERROR, '  File "train.py", line 1, in main'),
    Line(ERROR, "    run()"),
    Line(ERROR, "    ^^^^^"),
    Line(ERROR, "AssertionError: Remat policy needs to be on list of remat policies"),
    Line(ERROR, "--------------------"),
    Line(ERROR, "For simplicity, JAX has removed its internal frames from the traceback of the following exception."),
]


def test_the_exception_of_the_last_traceback_is_found() -> None:
    first = [Line(ERROR, "Traceback (most recent call last):"), Line(ERROR, "KeyError: 'cause'"), Line(ERROR, "")]
    tail = [*first, Line(ERROR, "The above exception was the direct cause of the following exception:"), *TRACEBACK]
    assert find_exception(tail) == "AssertionError: Remat policy needs to be on list of remat policies"


def test_error_lines_of_the_log_are_found_beside_the_exception() -> None:
    error = "E1201 04:05:47.905265 140040413186944 pjrt.cc:1] device lost"
    lines = find_error_lines([Line(INFO, "all is well"), Line(ERROR, error), *TRACEBACK])
    assert lines == ("AssertionError: Remat policy needs to be on list of remat policies", error)


def test_without_any_error_the_last_lines_are_shown_but_no_steps() -> None:
    tail = [Line(INFO, text) for text in ("a", "b", "c", "d", "", "x] completed step: 3, seconds: 1")]
    assert find_error_lines(tail) == ("b", "c", "d")


def test_maxtexts_refusal_is_shown_without_its_frame() -> None:
    prefix = "E1201 08:08:40.917595 140062978825088 pyconfig.py:393] "
    frame = Line(ERROR, prefix + "=" * 80)
    refusal = Line(ERROR, prefix + "MAXTEXT CONFIG ERROR: steps must be positive")
    assert find_error_lines([frame, refusal, frame]) == (refusal.text,)


def test_an_empty_log_has_no_error_lines() -> None:
    assert find_error_lines([]) == ()


def test_maxtexts_list_of_keys_is_replaced_and_the_culprit_kept() -> None:
    names = ", ".join(f"'k{number}'" for number in range(860))
    text = shorten(f"MAXTEXT CONFIG ERROR: ValueError: 'bogus_key' not in {names}")
    assert text.startswith("MAXTEXT CONFIG ERROR: ValueError: 'bogus_key' not in")
    assert len(text) < 150


def test_any_other_long_line_is_cut() -> None:
    assert len(shorten("x" * 50_000)) == MAX_CHARACTERS
    assert shorten("x" * 50_000).endswith("(50,000 characters, see train.log)")
