"""The rules: each one fires where it should and only there, and its message says what to type next."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from primus_hydra.errors import Problem
from primus_hydra.maxtext.keys import Key, load_keys, package_dir
from primus_hydra.platforms import Machine
from primus_hydra.rules import RuleContext, evaluate, load_rules
from primus_hydra.rules.checks import CHECKS
from primus_hydra.rules.conditions import list_subjects
from primus_hydra.rules.table import render_page
from primus_hydra.schema import PlatformSettings
from tests.rule_cases import CASES, READY, TWO_NODES, Scene

_CHIPS = {"mi300x": "gfx942", "mi325x": "gfx942", "mi355x": "gfx950"}
_RULES = Path(__file__).parents[1] / "primus_hydra" / "rules"
_PAGE = Path(__file__).parents[1] / "docs" / "rules.md"


@cache
def read_maxtext_defaults(model_name: str) -> Mapping[str, Any]:
    """What MaxText sees before our keys: declared defaults < base.yml < the model's file."""
    configs = package_dir() / "configs"
    defaults = {name: key.default for name, key in load_keys().items()}
    model = configs / "models" / f"{model_name}.yml"
    for path in (configs / "base.yml", *([model] if model.is_file() else [])):
        defaults |= yaml.safe_load(path.read_text(encoding="utf-8"))
    return defaults


def make_platform(scene: Scene) -> PlatformSettings:
    name = scene.get("_platform", "cpu")
    chip = _CHIPS.get(name)
    return PlatformSettings(
        name=name,
        chip=chip,
        jax_platform="rocm" if chip else "cpu",
        devices_per_node=scene.get("_devices", 8 if chip else 1),
        nodes=scene.get("_nodes", 1),
        memory_per_device_bytes=(288 if chip == "gfx950" else 192) * 2**30 if chip else None,
        fp8="fp8" if chip == "gfx950" else "nanoo_fp8",
    )


def make_context(tmp_path: Path, scene: Scene) -> RuleContext:
    """The scene as a context; its files are really made."""
    for name in scene.get("_files", ()):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a: 1\n", encoding="utf-8")
    keys = {
        "hardware": "cpu",
        "skip_jax_distributed_system": True,
        "attention": "dot_product",
        "max_segments_per_seq": 32,
    }
    keys |= {name: value for name, value in scene.items() if not name.startswith("_")}
    keys = {
        name: value.replace("{tmp}", str(tmp_path)) if isinstance(value, str) else value for name, value in keys.items()
    }
    chips = scene.get("_machine", ())
    return RuleContext(
        keys=keys,
        effective={**read_maxtext_defaults(str(keys.get("model_name", "default"))), **keys},
        origins=dict.fromkeys(keys, "command line"),
        platform=make_platform(scene),
        machine=Machine(
            chips=chips,
            device_memory_bytes=(192 * 2**30,) * len(chips),
            num_cpus=2,
            memory_bytes=24 * 2**30,
            transformer_engine=scene.get("_te", False),
        ),
        maxtext_version=scene.get("_maxtext", "0.2.5"),
        jax_version=scene.get("_jax", "0.12.0.1"),
        action=scene.get("_action", "check"),
        env=scene.get("_env", {}),
        run_dir=tmp_path / "run",
        custom_trainer=scene.get("_trainer", False),
        accept=frozenset(),
    )


def find(problems: list[Problem], rule: str) -> list[Problem]:
    return [problem for problem in problems if problem.rule == rule]


@pytest.mark.parametrize("rule", load_rules())
def test_every_rule_has_a_case(rule: str) -> None:
    assert rule in CASES, f"add a configuration that collides with {rule} and one that does not to rule_cases.py"


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_fires_on_its_case_and_says_what_to_type(rule: str, tmp_path: Path) -> None:
    problems = find(evaluate(make_context(tmp_path, CASES[rule][0])), rule)
    assert problems, f"{rule} did not fire"
    for problem in problems:
        assert problem.severity == load_rules()[rule].severity
        assert re.search(r"\w=|run\.dir|Install |Move |Use MaxText|Remove ", problem.fix), problem.fix
        assert "{" not in problem.what + problem.allowed + problem.fix
        assert "(not set)" not in problem.what + problem.allowed + problem.fix
        assert problem.evidence


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_is_silent_on_the_configuration_next_to_its_case(rule: str, tmp_path: Path) -> None:
    assert find(evaluate(make_context(tmp_path, CASES[rule][1])), rule) == []


def test_a_plain_configuration_has_no_problem(tmp_path: Path) -> None:
    assert evaluate(make_context(tmp_path, {})) == []


def test_all_problems_come_at_once_and_refusals_first(tmp_path: Path) -> None:
    problems = evaluate(make_context(tmp_path, {"remat_policy": "fulll", "attention": "paged", "steps": 0}))
    assert [problem.severity for problem in problems] == ["refuse", "refuse", "warn"]


def test_a_typo_is_answered_with_the_closest_name_and_its_origin(tmp_path: Path) -> None:
    problem = find(evaluate(make_context(tmp_path, {"remat_policy": "minimal_with_contxt"})), "remat_policy_unknown")[0]
    assert "Did you mean remat_policy=minimal_with_context" in problem.fix
    assert problem.origin == "remat_policy=minimal_with_contxt: command line"


def test_an_overruled_rule_comes_back_as_a_warning_that_says_so(tmp_path: Path) -> None:
    context = make_context(tmp_path, {"steps": 0})
    problems = evaluate(replace(context, accept=frozenset({"steps_not_positive"})))
    assert [problem.severity for problem in problems] == ["warn"]
    assert problems[0].what.startswith("Overruled by run.accept=[steps_not_positive]: steps=0")


def test_an_unknown_rule_name_in_accept_is_refused_with_the_closest_names(tmp_path: Path) -> None:
    context = make_context(tmp_path, {})
    problem = evaluate(replace(context, accept=frozenset({"no_gpus"})))[0]
    assert problem.severity == "refuse"
    assert "no_gpu" in problem.fix
    assert evaluate(replace(context, accept=frozenset({"of_another_check"})), other_rules={"of_another_check"}) == []


def test_the_value_of_a_secret_variable_is_never_shown(tmp_path: Path) -> None:
    scene = {"_env": {"M_HF_ACCESS_TOKEN": "hf_SENTINEL"}, "hf_access_token": "hf_SENTINEL"}
    problems = evaluate(make_context(tmp_path, scene))
    assert find(problems, "environment_overrides")
    assert "SENTINEL" not in str(problems)


@pytest.mark.parametrize("trainer", [True, False])
def test_a_trainer_of_the_users_own_is_not_judged_by_this_machine(trainer: bool, tmp_path: Path) -> None:
    scene = {"_platform": "mi300x", "hardware": "gpu", "attention": "cudnn_flash_te", "_action": "train"}
    refused = [problem.rule for problem in evaluate(make_context(tmp_path, {**scene, "_trainer": trainer}))]
    assert refused == ([] if trainer else ["no_gpu"])


def test_the_refusal_of_a_model_that_cannot_fit_shows_the_arithmetic_and_what_would_run(tmp_path: Path) -> None:
    scene = {"_action": "train", "model_name": "llama3-8b"}
    problem = find(evaluate(make_context(tmp_path, scene)), "does_not_fit")[0]
    assert "8.03 billion parameters need 29.9 GiB for weights, 59.8 GiB for the optimizer" in problem.what
    assert "24.0 GiB of memory" in problem.what
    assert "model=tiny" in problem.fix
    assert "action=export" in problem.fix


@pytest.mark.parametrize(
    ("platform", "quantization", "rules"),
    [
        ("mi300x", "nanoo_fp8", []),
        ("mi300x", "fp8", ["fp8_ocp_on_gfx942"]),
        ("mi325x", "fp8", ["fp8_ocp_on_gfx942"]),
        ("mi355x", "fp8", []),
        ("mi355x", "nanoo_fp8", ["fp8_fnuz_on_gfx950"]),
        ("mi300x", "fp8_nanoo", ["fp8_nanoo_without_qwix"]),
        ("mi355x", "fp8_nanoo", ["fp8_nanoo_without_qwix"]),
        ("cpu", "fp8", []),
        ("cpu", "nanoo_fp8", []),
        ("cpu", "fp8_nanoo", ["fp8_nanoo_without_qwix"]),
    ],
)
def test_the_spelling_of_fp8_belongs_to_the_chip(
    platform: str, quantization: str, rules: list[str], tmp_path: Path
) -> None:
    hardware = {"hardware": "cpu"} if platform == "cpu" else {"hardware": "gpu", "attention": "cudnn_flash_te"}
    scene = {"_platform": platform, "quantization": quantization, **hardware}
    assert [problem.rule for problem in evaluate(make_context(tmp_path, scene))] == rules


def test_of_a_grid_only_fp8_with_accumulation_is_illegal(tmp_path: Path) -> None:
    grid = [(quantization, steps) for quantization in ("", "nanoo_fp8") for steps in (1, 4)]
    refused = [
        cell
        for cell in grid
        if evaluate(make_context(tmp_path, {"quantization": cell[0], "gradient_accumulation_steps": cell[1]}))
    ]
    assert refused == [("nanoo_fp8", 4)]


@pytest.mark.parametrize("qwix", [False, True])
@pytest.mark.parametrize(
    "quantization",
    [
        *("fp8", "nanoo_fp8", "fp8_gpu", "fp8_nanoo", "fp8_full", "fp8_e4m3", "fp8_e5m2"),
        *("te_fp8_delayedscaling", "te_fp8_currentscaling", "te_mxfp8", "te_nvfp4", "te_nvfp4_no_rht"),
    ],
)
def test_no_kind_of_fp8_accumulates_gradients(quantization: str, qwix: bool, tmp_path: Path) -> None:
    scene = {"quantization": quantization, "use_qwix_quantization": qwix, "gradient_accumulation_steps": 2}
    assert find(evaluate(make_context(tmp_path, scene)), "fp8_gradient_accumulation")


@pytest.mark.parametrize(
    ("env", "fact", "outcome"),
    [
        ({}, "JAX_COORDINATOR_IP, JAX_COORDINATOR_PORT, NNODES and NODE_RANK are not set", "on every node alone"),
        ({"NNODES": "2"}, "JAX_COORDINATOR_IP, JAX_COORDINATOR_PORT and NODE_RANK are not set", "on every node alone"),
        ({**READY, "NNODES": "4"}, "NNODES=4 is not platform.nodes=2", "fail, or wait"),
        ({**READY, "NNODES": "two"}, "NNODES=two is not platform.nodes=2", "fail, or wait"),
        ({**READY, "NODE_RANK": "2"}, "NODE_RANK=2 is not a whole number from 0 to 1", "fail, or wait"),
        ({**READY, "NODE_RANK": "-1"}, "NODE_RANK=-1 is not a whole number from 0 to 1", "fail, or wait"),
        ({**READY, "JAX_COORDINATOR_PORT": "http"}, "JAX_COORDINATOR_PORT=http is not a port", "fail, or wait"),
        ({**READY, "JAX_COORDINATOR_IP": "localhost"}, "localhost is an address that other nodes", "fail, or wait"),
        ({**READY, "JAX_COORDINATOR_IP": "127.0.0.1"}, "127.0.0.1 is an address that other nodes", "fail, or wait"),
        ({**READY, "JAX_COORDINATOR_IP": "::1"}, "::1 is an address that other nodes", "fail, or wait"),
    ],
)
def test_nodes_that_could_not_find_each_other_are_refused(
    env: dict[str, str], fact: str, outcome: str, tmp_path: Path
) -> None:
    problem = find(evaluate(make_context(tmp_path, {**TWO_NODES, "_env": env})), "multi_node_without_coordinator")[0]
    assert fact in problem.what
    assert outcome in problem.what
    assert "NNODES=2 NODE_RANK=<0 to 1>" in problem.fix


@pytest.mark.parametrize(
    "change",
    [
        {"_env": {**READY, "JAX_COORDINATOR_IP": "node-1.cluster"}},
        {"hardware": "gpu_multiprocess"},
        {"_action": "export"},
        {"_nodes": 1},
        {"_trainer": True},
    ],
)
def test_nodes_that_find_each_other_in_another_way_need_no_variables(change: Scene, tmp_path: Path) -> None:
    problems = evaluate(make_context(tmp_path, {**TWO_NODES, **change}))
    assert find(problems, "multi_node_without_coordinator") == []


def test_nodes_that_skip_the_connection_are_told_to_write_the_key(tmp_path: Path) -> None:
    scene = {**TWO_NODES, "_env": READY, "skip_jax_distributed_system": True}
    problem = find(evaluate(make_context(tmp_path, scene)), "multi_node_without_coordinator")[0]
    assert "on every node alone" in problem.what
    assert problem.fix.startswith("Write skip_jax_distributed_system=false.")


def test_only_a_value_that_nothing_makes_right_stops_a_whole_sweep(tmp_path: Path) -> None:
    scopes = {rule.name for rule in load_rules().values() if rule.scope == "value"}
    assert scopes == {
        *("attention_unknown", "attention_vllm", "remat_policy_unknown", "serve_fp8_weight"),
        *("steps_not_positive", "base_config_missing", "model_without_file", "value_not_filled_in"),
    }
    problems = evaluate(make_context(tmp_path, {"remat_policy": "fulll", "base_num_query_heads": 3}))
    assert {problem.rule: problem.scope for problem in problems} == {
        "remat_policy_unknown": "value",
        "grouped_query_heads": "combination",
    }


def test_no_text_of_a_rule_is_cut_by_an_unquoted_number_sign() -> None:
    """In plain YAML text, a number sign after a space begins a comment."""
    for file in sorted(_RULES.glob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        plain = [token for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken) and token.plain]
        for token in plain:
            rest = text[token.end_mark.index :].partition("\n")[0]
            assert not rest.lstrip().startswith("#"), f"{file.name}:{token.end_mark.line + 1}: quote {token.value!r}"


def test_a_newer_maxtext_is_not_held_against_the_old_list_of_policies(tmp_path: Path) -> None:
    assert evaluate(make_context(tmp_path, {"remat_policy": "brand_new", "_maxtext": "0.3.1"})) == []


def test_the_lists_of_policies_and_kernels_agree_with_the_installed_source() -> None:
    layers = package_dir() / "layers"
    source = (layers / "nnx_decoders.py").read_text(encoding="utf-8")
    body = source[source.index("def get_remat_policy") : source.index("def get_norm_layer")]
    policies = set(re.findall(r'remat_policy == "(\w+)"', body)) | {"minimal_with_context", "none"}
    listed = load_rules()["remat_policy_unknown"].when["remat_policy"]["not_in"]
    assert {name for name in listed if name} == policies
    source = (layers / "attention_op.py").read_text(encoding="utf-8")
    used = set(re.findall(r'self\.attention_kernel == "(\w+)"', source)) | {"vllm_rpa", "vllm_batched_rpa"}
    assert set(load_rules()["attention_unknown"].when["attention"]["not_in"]) == used


def test_every_rule_names_only_what_exists() -> None:
    keys = set(load_keys())
    for rule in load_rules().values():
        subjects = {*list_subjects(rule.when), *rule.keys}
        unknown = {subject for subject in subjects if "." not in subject} - keys
        assert not unknown, f"{rule.name} looks at {unknown}"
        assert rule.when or rule.check, rule.name
    assert {rule.check for rule in load_rules().values()} - {""} == set(CHECKS)
    assert not {"any", "all", "not"} & keys


def test_the_documentation_lists_every_rule_as_it_is() -> None:
    assert _PAGE.read_text(encoding="utf-8") == render_page(), "run python -m primus_hydra.rules.table > docs/rules.md"


def values_of(key: Key) -> st.SearchStrategy[Any]:
    """Values of a key's declared types, odd ones included."""
    kinds = {
        "bool": st.booleans(),
        "int": st.integers(-3, 2**40),
        "float": st.floats(allow_nan=True, allow_infinity=True),
        "str": st.text(max_size=20) | st.just("~nobody" + "x" * 300) | st.just("{steps}") | st.just("../../x"),
        "list": st.lists(st.text(max_size=5) | st.integers(), max_size=3),
        "dict": st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
    }
    options = [st.sampled_from(key.choices)] if key.choices else [kinds[kind] for kind in sorted(key.kinds)]
    return st.one_of(*options, *([st.none()] if key.nullable or not options else []))


_LOOKED_AT = sorted(
    {
        subject
        for rule in load_rules().values()
        for subject in (*list_subjects(rule.when), *rule.keys)
        if subject in load_keys()
    }
    | {
        "mlp_activations",
        "base_emb_dim",
        "base_mlp_dim",
        "mesh_axes",
        "num_slices",
        "head_dim",
        "context",
        "weight_dtype",
    }
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(), platform=st.sampled_from(["cpu", "mi300x", "mi355x"]), action=st.sampled_from(["train", "export"])
)
def test_odd_values_are_judged_without_an_exception(data: Any, platform: str, action: str, tmp_path: Path) -> None:
    chosen = data.draw(st.lists(st.sampled_from(_LOOKED_AT), max_size=12, unique=True))
    scene = {name: data.draw(values_of(load_keys()[name])) for name in chosen}
    problems = evaluate(make_context(tmp_path, {**scene, "_platform": platform, "_action": action}))
    assert all(problem.what and problem.fix for problem in problems)
