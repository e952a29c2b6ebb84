"""primus_hydra.overrides: the command line before Hydra sees it."""

from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from primus_hydra.overrides import CommandLine, rewrite_override, write_override
from primus_hydra.paths import conf_dir

ONE = CommandLine(folders=(conf_dir(),), multirun=False)
SWEEP = CommandLine(folders=(conf_dir(),), multirun=True)


@pytest.mark.parametrize(
    ("typed", "rewritten"),
    [
        ("steps=2000", "++steps=2000"),
        ("+steps=2000", "++steps=2000"),
        ("adam_b2=0.9", "++adam_b2=0.9"),
        ("run_name=2024_01_01", "++run_name='2024_01_01'"),
        ("run_name=695e0514", "++run_name='695e0514'"),
        ("run_name=true", "++run_name='true'"),
        ("run_name=plain", "++run_name=plain"),
        ("run_name='a=b'", "++run_name='a=b'"),
        ("quantization=", "++quantization="),
        ("quantization=null", "++quantization=null"),
        ("quantization=${platform.fp8}", "++quantization=${platform.fp8}"),
        ("hf_train_files=/a/b (c)/*.txt", "++hf_train_files='/a/b (c)/*.txt'"),
        ("hf_train_files=it's.txt", "++hf_train_files='it\\'s.txt'"),
        ("prompt=str(x)", "++prompt='str(x)'"),
        ("prompt= a ", "++prompt=' a '"),
        ("stop_strings=[1e3,b]", "++stop_strings=['1e3',b]"),
        ("mlp_activations=[silu,linear]", "++mlp_activations=[silu,linear]"),
        ("dpo.dpo_beta=0.1", "++dpo.dpo_beta=0.1"),
        ("platform.env.FOO=.97", "++platform.env.FOO='.97'"),
        ("platform.xla_flags.xla_gpu_autotune_level=5", "++platform.xla_flags.xla_gpu_autotune_level='5'"),
        ("stderr_sink_level=DEBUG", "++stderr_sink_level=DEBUG"),
        ("run.dir=out", "run.dir=out"),
        ("run.accept=[a,b]", "run.accept=[a,b]"),
        ("model=llama3_8B", "model=llama3_8B"),
        ("+sweep=remat_quant_attention", "sweep=remat_quant_attention"),
        ("sweep.dir=out", "sweep.dir=out"),
        ("sweep.objective=step_time_s", "sweep.objective=[step_time_s]"),
        ("~steps", "~steps"),
        ("hydra.job.num=3", "hydra.job.num=3"),
    ],
)
def test_an_override_reaches_hydra_with_the_text_that_was_typed(typed: str, rewritten: str) -> None:
    assert rewrite_override(typed, ONE) == (rewritten, None)


@pytest.mark.parametrize(
    ("typed", "rewritten"),
    [
        ('quantization="",nanoo_fp8', '++quantization="",nanoo_fp8'),
        ("run_name=2024_01_01,695e0514", "++run_name='2024_01_01','695e0514'"),
        ("steps=1,2", "++steps=1,2"),
        ("platform.env.A=1,2", "++platform.env.A='1','2'"),
        ("learning_rate=choice(1,2)", "++learning_rate=choice(1,2)"),
        ("sweep.objective=step_time_s,final_loss", "sweep.objective=[step_time_s,final_loss]"),
    ],
)
def test_each_element_of_a_sweep_keeps_its_text(typed: str, rewritten: str) -> None:
    assert rewrite_override(typed, SWEEP) == (rewritten, None)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("sweep.max_parallel=1,2", "holds for a whole sweep"),
        ("sweep.rungs=20,100", "Write sweep.rungs=[20,100]"),
        ("action=check,export", "Start one sweep for each value"),
        ("run.dir=out", "Write sweep.dir=DIR"),
    ],
)
def test_what_holds_for_a_whole_sweep_has_one_value(typed: str, words: str) -> None:
    _, problem = rewrite_override(typed, SWEEP)
    assert problem is not None
    assert words in f"{problem.what} {problem.fix}"
    assert problem.origin == f"command line: {typed}"


@pytest.mark.parametrize(
    ("name", "value", "override"),
    [
        ("remat_policy", "full", "++remat_policy=full"),
        ("quantization", "", "++quantization=''"),
        ("quantization", "${platform.fp8}", "++quantization=${platform.fp8}"),
        ("run_name", "1e3", "++run_name='1e3'"),
        ("steps", 20, "++steps=20"),
        ("mlp_activations", ["silu", "linear"], "++mlp_activations=[silu,linear]"),
        ("platform.env.A", "1", "++platform.env.A='1'"),
        ("platform.env.A", None, "++platform.env.A=null"),
        ("precision", "fp8", "precision=fp8"),
    ],
)
def test_a_value_of_a_file_becomes_the_override_that_hydra_needs(name: str, value: object, override: str) -> None:
    assert write_override(name, value, SWEEP) == (override, None)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("remat_polcy", "full", "Did you mean remat_policy"),
        ("platform.env.A", 1, "Put the value in quotes"),
        ("run_name", 20240101, "Put the value in quotes"),
        ("model", "nobody", "Presets of model"),
        ("sweep.repeats", 2, "holds for a whole sweep"),
        ("hydra.job.num", 3, "holds for a whole sweep"),
        ("run.dir", "x", "holds for a whole sweep"),
    ],
)
def test_a_value_of_a_file_is_checked_like_a_typed_one(name: str, value: object, words: str) -> None:
    _, problem = write_override(name, value, SWEEP)
    assert problem is not None
    assert words in f"{problem.what} {problem.allowed} {problem.fix}"


@pytest.mark.parametrize("typed", ["remat_polcy=minimal", "+remat_polcy=minimal", "++remat_polcy=minimal"])
def test_a_typo_is_refused_in_every_form(typed: str) -> None:
    _, problem = rewrite_override(typed, ONE)
    assert problem is not None
    assert "remat_polcy is not a key" in problem.what
    assert "Did you mean remat_policy" in problem.fix
    assert problem.origin == f"command line: {typed}"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("lr=1e-4", "learning_rate"),
        ("STEPS=3", "Did you mean steps?"),
        ("seq_len=4096", "max_target_length"),
        ("batch_size=4", "per_device_batch_size"),
        ("pure_nnx_decoder=false", "remove the key"),
        ("enable_profiler=true", "profiler=xplane"),
        ("--steps=5", "Write overrides without dashes: steps=5"),
        ("=", "There is a space beside ="),
        ("NCCL_DEBUG=INFO", "Write platform.env.NCCL_DEBUG=INFO"),
        ("env.NCCL_DEBUG=INFO", "Write platform.env.NCCL_DEBUG=INFO"),
        ("XLA_FLAGS=--xla_gpu_autotune_level=3", "Write platform.xla_flags.xla_gpu_autotune_level=3"),
        ("platform.xla_flags.--xla_gpu_autotune_level=3", "Write platform.xla_flags.xla_gpu_autotune_level=3"),
        ("model=mine", "Presets of your own need --config-dir"),
        ("--steps", "steps=VALUE"),
        ("steps", "Write steps=VALUE"),
        ("run.dri=x", "run.dir"),
        ("run.accept=no_gpu", "Write run.accept=[no_gpu]"),
        ("run.hang_after_s=abc", "a number"),
        ("run.grace_s=nan", "a number, at least"),
        ("run.warmup_steps=-1", "a whole number, at least 0"),
        ("run.trainer=[]", "at least the program"),
        ("platform.devices_per_node=0", "at least 1"),
        ("platform.jax_platform=tpu", "rocm, cpu"),
        ("action=fly", "train, check, export, explain"),
        ("sweep.objective=speed", "one or several of tokens_per_second_per_device"),
        ("sweep.objective=[]", "each once"),
        ("sweep.rungs=[100,20]", "more than the one before"),
        ("sweep.rungs=[0,20]", "at least 1"),
        ("sweep.keep=1.5", "at most 1"),
        ("sweep.stop_below=1", "below 1"),
        ("sweep.repeats=0", "at least 1"),
        ("sweep=nobody", "remat_quant_attention"),
        ("platform=null", "no preset platform=null"),
        ("~run", "Set single values instead"),
        ("~platform", "another choice is platform=NAME"),
        ("hydra.run.dir=x", "run.dir=DIR"),
        ("model=llama3_9B", "llama3_8B"),
        ("model=lama3-8b", "model=model_base model_name=NAME"),
        ("remat_policy=full,minimal", "--multirun"),
        ("steps=1,2", "--multirun"),
        ("attention=dot_product max_target_length=4", "Separate them with a space"),
        ("logical_axis_rules=[[mlp,[fsdp]]", "in quotes"),
    ],
)
def test_a_wrong_override_says_what_to_write(typed: str, words: str) -> None:
    _, problem = rewrite_override(typed, ONE)
    assert problem is not None
    assert words in f"{problem.what} {problem.allowed} {problem.fix}"


def test_a_users_preset_folder_named_like_a_key_is_explained(tmp_path: Path) -> None:
    (tmp_path / "quantization").mkdir()
    (tmp_path / "quantization" / "mine.yaml").write_text("steps: 1\n", encoding="utf-8")
    _, problem = rewrite_override("quantization=nanoo_fp8", CommandLine(folders=(tmp_path, conf_dir()), multirun=False))
    assert problem is not None
    assert str(tmp_path / "quantization") in problem.what
    assert "Rename the folder" in problem.fix


@pytest.mark.parametrize(
    "text", ["a\\b", "\\(a\\)", "\\\\server\\share", "end\\", 'a"b', "it's", "x\\'y", "a=b", "{a}", "007", "é ü"]
)
def test_hydra_reads_back_exactly_what_was_typed(text: str) -> None:
    rewritten, problem = rewrite_override(f"prompt={text}", ONE)
    assert problem is None
    assert OverridesParser.create().parse_override(rewritten).value() == text


@pytest.mark.parametrize("text", ["sweep.grid={remat_policy:[full]}", "+sweep.grid.remat_policy=[full,minimal]"])
def test_a_grid_on_the_command_line_is_told_how_it_is_typed(text: str) -> None:
    _, problem = rewrite_override(text, SWEEP)
    assert problem is not None
    assert "Write remat_policy=full,minimal" in problem.fix
