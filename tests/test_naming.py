"""primus_hydra.naming: readable names that never collide."""

from datetime import datetime
from pathlib import Path

import pytest

from primus_hydra.naming import default_run_dir, default_run_name, make_slug, repeat_dir, sweep_point_dir


def test_a_slug_is_readable_and_safe() -> None:
    assert make_slug(["model=llama3_8B", "steps=20"]) == "llama3_8B-steps=20"
    assert make_slug(["hf_train_files=/a/b c/*.txt"]) == "hf_train_files=_a_b_c_.txt"
    assert make_slug(["run.dir=/x", "action=export"]) == "run"
    assert len(make_slug([f"steps={number}" for number in range(100)])) <= 80


def test_a_slug_names_variables_and_flags_and_no_secret() -> None:
    typed = ["platform.env.NVTE_X='0'", '+platform.xla_flags.xla_a="4"', "platform.env.WANDB_API_KEY=abc"]
    assert make_slug(typed) == "NVTE_X=0-xla_a=4"


def test_two_starts_in_the_same_second_get_different_folders() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5)
    first, second = (default_run_dir(["model=tiny"], now) for _ in range(2))
    assert first != second
    assert first.name.startswith("2026-01-02_03-04-05-tiny-")


def test_points_of_a_sweep_differ_even_where_their_slugs_are_cut_alike() -> None:
    long = "a" * 200
    points = [sweep_point_dir(Path("/s"), 1, [f"run_name={long}{end}"]) for end in "xy"]
    assert points[0] != points[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("platform.env.STUB='step_s=0.02,'", 'platform.env.STUB="step_s=0.02,"'),
        ("remat_policy='full'", "remat_policy=full"),
        ("scan_layers=True", "scan_layers=true"),
        ("learning_rate=1e-3", "learning_rate=0.001"),
    ],
)
def test_a_point_has_one_folder_however_its_values_are_spelt(one: str, other: str) -> None:
    assert sweep_point_dir(Path("/s"), 1, [one]) == sweep_point_dir(Path("/s"), 1, [other])


def test_a_number_and_a_text_that_looks_like_it_are_two_points() -> None:
    assert sweep_point_dir(Path("/s"), 1, ["run_name=1"]) != sweep_point_dir(Path("/s"), 1, ["run_name='1'"])


def test_only_further_runs_of_a_point_have_a_suffix() -> None:
    first = sweep_point_dir(Path("/s"), 3, ["steps=5"])
    assert repeat_dir(first, 1) == first
    assert repeat_dir(first, 2) == Path(f"{first}-repeat2")


def test_a_run_name_belongs_to_one_folder() -> None:
    assert default_run_name(Path("/a/run")) == default_run_name(Path("/a/run"))
    assert default_run_name(Path("/a/run")) != default_run_name(Path("/b/run"))
