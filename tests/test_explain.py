"""primus_hydra.explain: every key, its value, its origin."""

import yaml

from primus_hydra.explain import explain_lines


def test_lines_are_yaml_with_the_origin_as_a_comment() -> None:
    keys = {"steps": 5, "run_name": "1e3", "quantization": "", "mlp_activations": ["silu", "linear"], "hf_path": None}
    lines = list(explain_lines(keys, {"steps": "command line: steps=5"}, with_defaults=False))
    assert yaml.safe_load("\n".join(lines)) == keys
    assert next(line for line in lines if line.startswith("steps")).endswith("# command line: steps=5")
    assert next(line for line in lines if line.startswith("hf_path")).endswith("# primus_hydra")


def test_defaults_are_told_with_their_file() -> None:
    lines = "\n".join(explain_lines({"model_name": "llama3-8b"}, {}, with_defaults=True))
    values = yaml.safe_load(lines)
    assert values["base_emb_dim"] == 4096
    assert values["steps"] == 150001
    assert "# MaxText's llama3-8b.yml" in lines
    assert "# MaxText default; Total number of training steps." in lines
