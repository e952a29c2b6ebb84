"""Asking the real jaxlib, in a child, which flags it accepts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from primus_hydra.xla_flags import parse_flags
from primus_hydra.xla_probe import probe_flags, read_known_flags


def test_the_flags_that_published_runs_use_are_accepted() -> None:
    flags = parse_flags(
        "--xla_gpu_memory_limit_slop_factor=95 --xla_gpu_reduce_scatter_combine_threshold_bytes=8589934592 "
        "--xla_gpu_all_gather_combine_threshold_bytes=8589934592 --xla_gpu_enable_command_buffer='' "
        "--xla_gpu_enable_latency_hiding_scheduler=true --xla_gpu_enable_triton_gemm=false "
        "--xla_gpu_enable_cublaslt=true --xla_gpu_autotune_level=4 --xla_gpu_enable_all_gather_combine_by_dim=false"
    )
    assert probe_flags(flags) == []


def test_every_rejected_flag_is_named_with_what_to_write_instead() -> None:
    flags = {
        "xla_gpu_autotune_levle": "4",
        "xla_gpu_memory_limit_slop_factor": "lots",
        "xla_gpu_enable_triton_gemm": None,
        "xla_gpu_autotune_level": None,
        "xla_gpu_enable_command_buffer": "BOGUS",
    }
    problems = {problem.what: problem for problem in probe_flags(flags, origins={"xla_gpu_autotune_levle": "shell"})}
    assert set(problems) == {
        "XLA cannot read the value of --xla_gpu_memory_limit_slop_factor=lots.",
        "XLA cannot read the value of --xla_gpu_enable_command_buffer=BOGUS.",
        "The XLA flag xla_gpu_autotune_level needs a value.",
        "The installed jaxlib does not know the XLA flag xla_gpu_autotune_levle, and would end the run at its start.",
    }
    unknown = next(problem for what, problem in problems.items() if "levle" in what)
    assert unknown.fix.startswith("Did you mean xla_gpu_autotune_level")
    assert unknown.origin == "shell"
    assert all(problem.severity == "refuse" for problem in problems.values())


def test_quoted_and_repeated_values_mean_to_xla_what_they_mean_to_us() -> None:
    # XLA complains about every unreadable occurrence, also one that a later occurrence overrides; the child
    # gets the winner only.
    assert probe_flags(parse_flags("--xla_gpu_autotune_level=4 --xla_gpu_autotune_level=x")) != []
    assert probe_flags(parse_flags("--xla_gpu_autotune_level=x --xla_gpu_autotune_level='4'")) == []
    assert probe_flags({"xla_dump_hlo_pass_re": "one two", "xla_gpu_autotune_level": "x"})[0].what.endswith("=x.")


def test_no_flags_cost_no_child(tmp_path: Path) -> None:
    assert probe_flags({}, python=str(tmp_path / "missing")) == []


@pytest.mark.parametrize("program", ["missing", "failing"])
def test_a_probe_that_reaches_no_xla_warns_instead_of_blaming_a_flag(tmp_path: Path, program: str) -> None:
    python = tmp_path / program
    if program == "failing":
        python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'jaxlib'\" >&2\nexit 1\n")
        python.chmod(0o755)
    (problem,) = probe_flags({"xla_gpu_autotune_level": "4"}, python=str(python))
    assert problem.severity == "warn"
    assert "could not be checked" in problem.what


def test_the_known_flags_include_those_of_both_backends() -> None:
    assert {"xla_gpu_autotune_level", "xla_force_host_platform_device_count"} <= set(read_known_flags())


def test_probing_does_not_import_jax_here() -> None:
    program = (
        "import sys; from primus_hydra.xla_probe import probe_flags, read_known_flags; "
        "probe_flags({'xla_gpu_autotune_level': '4'}); read_known_flags(); "
        "print(sorted({'jax', 'jaxlib', 'maxtext'} & set(sys.modules)))"
    )
    child = subprocess.run(
        [sys.executable, "-c", program], env=dict(os.environ), capture_output=True, text=True, check=True
    )
    assert child.stdout.strip() == "[]"
