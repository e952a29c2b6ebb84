"""Points are composed exactly as Hydra would compose them, and planned."""

from typing import Any

import pytest
from hydra._internal.callbacks import Callbacks
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.types import HydraContext, RunMode
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig, Node, OmegaConf

from primus_hydra.errors import ConfigError, SweepRefused
from primus_hydra.hydra_job import announce_sweep
from primus_hydra.sweep.compose import compose_points
from primus_hydra.sweep.composer import Composer
from primus_hydra.sweep.jobs import list_jobs

GROUPS = {
    "model": ["tiny", "llama3_8B", "grok1"],
    "platform": ["cpu", "mi300x", "mi355x"],
    "precision": ["bf16", "fp8"],
    "experiment": ["llama3_8B", "demo", "mixtral_8x7B_fp8"],
    "data": ["synthetic", "local_text"],
    "sweep": ["remat_quant_attention"],
}
VALUES = [
    "++remat_policy=full",
    "++quantization=''",
    "++quantization=${platform.fp8}",
    "++steps=3",
    "++adam_b2=0.9",
    "++dpo.dpo_beta=0.1",
    "++mlp_activations=[silu,linear]",
    "++platform.env.NVTE_FUSED_ATTN='0'",
    "++platform.env.JAX_PLATFORMS=null",
    "++platform.xla_flags.xla_gpu_autotune_level='0'",
    "platform.nodes=2",
    "run.accept=[a,b]",
    "run.timeout_s=${steps}",
    "~max_segments_per_seq",
    "~platform.env.TF_CPP_MIN_LOG_LEVEL",
    "action=export",
    "sweep.objective=[step_time_s]",
    "++prompt='${hydra:job.num} of ${hydra:runtime.choices.model}'",
]


@st.composite
def overrides(draw: st.DrawFn) -> list[str]:
    chosen = [f"{group}={draw(st.sampled_from(names))}" for group, names in GROUPS.items() if draw(st.booleans())]
    return draw(st.permutations([*chosen, *draw(st.lists(st.sampled_from(VALUES), max_size=6))]))


@pytest.fixture(scope="module")
def loader(hydra_app: None) -> ConfigLoader:
    return GlobalHydra.instance().config_loader()


@pytest.fixture(scope="module")
def composer(loader: ConfigLoader) -> Composer:
    return Composer(loader, load_master(loader))


@pytest.fixture(autouse=True)
def announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program settles the sweep's folder before Hydra composes; here each test does."""
    monkeypatch.setenv("PRIMUS_HYDRA_SWEEP", "{}")  # and is put back afterwards
    announce_sweep([])


def load_master(loader: ConfigLoader, *texts: str) -> DictConfig:
    return loader.load_configuration("config", list(texts), RunMode.MULTIRUN)


def context(loader: ConfigLoader) -> HydraContext:
    return HydraContext(config_loader=loader, callbacks=Callbacks())


def describe(config: DictConfig) -> dict[str, Any]:
    """Everything that can be read from a configuration: values, and the type and flags of its nodes."""
    nodes = {str(name): config._get_node(str(name)) for name in config}
    kinds = {
        name: (OmegaConf.get_type(node), OmegaConf.is_readonly(node), node._get_flag("struct"))
        for name, node in nodes.items()
        if isinstance(node, Node)
    }
    return {"values": OmegaConf.to_container(config, resolve=False), "kinds": kinds}


@settings(deadline=None, max_examples=25)
@given(texts=overrides())
def test_a_point_is_what_hydra_itself_composes(composer: Composer, texts: list[str]) -> None:
    try:
        expected = composer.loader.load_sweep_config(composer.master, texts)
    except HydraException:  # such as a key that is deleted twice
        with pytest.raises(ConfigError):
            composer.compose_whole(texts, None)
    else:
        assert describe(composer.compose_whole(texts, None)) == describe(expected)


def test_points_of_one_combination_do_not_share_what_they_change(composer: Composer) -> None:
    first = composer.compose(["model=tiny", "++platform.env.A='1'", "~packing"])
    second = composer.compose(["model=tiny", "++steps=7"])
    assert "A" in first.platform.env
    assert "A" not in second.platform.env
    assert "packing" in second
    assert first.steps != second.steps


def test_presets_may_look_at_the_job(composer: Composer) -> None:
    texts = ["model=grok1", "++prompt='${hydra:job.num}-${hydra:runtime.choices.model}'"]
    assert [composer.compose(texts, number).prompt for number in (3, 4)] == ["3-grok1", "4-grok1"]


def test_overrides_that_hydra_refuses_become_a_problem_of_the_point(composer: Composer) -> None:
    for texts in (["run.grace_s=abc"], ["~adam_b2"], ["model=nobody"]):
        with pytest.raises(ConfigError, match="Hydra cannot compose this"):
            composer.compose(texts)


def test_every_point_is_planned_with_its_folder_and_its_origins(loader: ConfigLoader) -> None:
    master = load_master(loader, "platform=cpu", "sweep=remat_quant_attention", "++attention=dot_product")
    announce_sweep(["platform=cpu", "sweep=remat_quant_attention", "attention=dot_product"])
    jobs = list_jobs(loader, master, list(master.hydra.overrides.task), {})
    points = compose_points(context(loader), master, jobs, 10)
    assert [point.number for point in points] == list(range(10, 16))
    first = points[0]
    assert first.plan is not None
    assert first.folder.path.name.startswith("0010-remat_policy=full-precision=bf16-")
    assert first.plan.origins["remat_policy"].startswith("point of conf/sweep/remat_quant_attention.yaml")
    assert first.plan.origins["attention"] == "command line: attention=dot_product"
    assert "remat_policy=full" in first.plan.record_composition()["overrides.yaml"]
    assert "num: 10" in first.plan.record_composition()["hydra.yaml"]


def test_names_and_values_of_any_sweeper_are_checked_like_typed_ones(loader: ConfigLoader) -> None:
    master = load_master(loader)
    jobs = [["remat_polcy=full"], ["steps=3", "attention=dot_product"], ["model=nobody"]]
    wrong, right, no_preset = compose_points(context(loader), master, jobs, 0)
    assert "remat_polcy is not a key" in wrong.problems[0].what
    assert right.plan is not None
    assert right.plan.keys["steps"] == 3
    assert "There is no preset model=nobody" in no_preset.problems[0].what


def list_texts(loader: ConfigLoader, *texts: str, **params: str) -> list[list[str]]:
    master = load_master(loader, *texts)
    return list_jobs(loader, master, [str(text) for text in master.hydra.overrides.task], params)


def test_the_command_line_wins_over_the_sweeps_file_and_crosses_with_it(loader: ConfigLoader) -> None:
    jobs = list_texts(loader, "sweep=remat_quant_attention", "++remat_policy=full", "++steps=1,2")
    assert len(jobs) == 2 * 2 * 2
    assert all("++remat_policy=full" in job and not any("minimal" in text for text in job) for job in jobs)


def test_params_of_the_sweeper_are_values_too_and_the_command_line_wins(loader: ConfigLoader) -> None:
    jobs = list_texts(loader, "++steps=5", steps="1,2", remat_policy="full,minimal")
    assert jobs == [["++remat_policy=full", "++steps=5"], ["++remat_policy=minimal", "++steps=5"]]
    with pytest.raises(SweepRefused) as refused:
        list_texts(loader, remat_polcy="full,minimal")
    assert refused.value.problems[0].origin == "hydra.sweeper.params: remat_polcy=full,minimal"


def test_values_without_a_list_are_refused_by_a_grid(loader: ConfigLoader) -> None:
    with pytest.raises(SweepRefused) as refused:
        list_texts(loader, "++learning_rate=interval(0,1)")
    assert "hydra/sweeper=optuna" in refused.value.problems[0].fix
