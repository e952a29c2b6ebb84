"""Which layer wins, for every pair of layers, and what an image's first process says."""

from pathlib import Path

import pytest

from primus_hydra.layers import Decision, Layer, decide_layers, read_image_environment


@pytest.mark.parametrize(
    ("wanted", "explicit", "inherited", "image", "layer", "value", "rival"),
    [
        ({"X": "typed"}, {"X"}, {"X": "shell"}, {}, Layer.EXPLICIT, "typed", "shell"),
        ({"X": "typed"}, {"X"}, {"X": "image"}, {"X": "image"}, Layer.EXPLICIT, "typed", "image"),
        ({"X": "typed"}, {"X"}, {}, {}, Layer.EXPLICIT, "typed", None),
        ({"X": "preset"}, set(), {"X": "shell"}, {}, Layer.SHELL, "shell", "preset"),
        ({"X": "preset"}, set(), {"X": "shell"}, {"X": "image"}, Layer.SHELL, "shell", "preset"),
        ({"X": "preset"}, set(), {"X": "image"}, {"X": "image"}, Layer.PLATFORM, "preset", "image"),
        ({"X": "preset"}, set(), {}, {"X": "image"}, Layer.PLATFORM, "preset", None),
        ({"X": "same"}, set(), {"X": "same"}, {}, Layer.SHELL, "same", None),
        ({}, set(), {"X": "shell"}, {}, Layer.SHELL, "shell", None),
        ({}, set(), {"X": "image"}, {"X": "image"}, Layer.IMAGE, "image", None),
    ],
)
def test_the_higher_layer_wins(
    wanted: dict[str, str | None],
    explicit: set[str],
    inherited: dict[str, str],
    image: dict[str, str],
    layer: Layer,
    value: str,
    rival: str | None,
) -> None:
    decision = decide_layers(wanted, explicit=explicit, inherited=inherited, image=image)["X"]
    assert (decision.layer, decision.removed, decision.value, decision.rival) == (layer, False, value, rival)


def test_null_removes_what_a_lower_layer_set() -> None:
    decisions = decide_layers(
        {"TYPED": None, "PRESET": None, "BAKED": None},
        explicit={"TYPED"},
        inherited={"TYPED": "1", "PRESET": "2", "BAKED": "3"},
        image={"BAKED": "3"},
    )
    assert {name: decision.removed for name, decision in decisions.items()} == {
        "TYPED": True,
        "PRESET": False,
        "BAKED": True,
    }


def test_a_flag_without_a_value_is_not_a_removed_one() -> None:
    decisions = decide_layers({"flag": None}, explicit={"flag"}, inherited={"flag": None}, image={})
    assert decisions["flag"].removed
    assert decisions["flag"].rival_layer is Layer.SHELL
    assert decide_layers({}, explicit=set(), inherited={"flag": None}, image={})["flag"] == Decision(
        layer=Layer.SHELL, removed=False, value=None
    )


def test_an_authoritative_name_beats_the_shell_but_not_the_command_line() -> None:
    def decide(explicit: set[str]) -> Decision:
        return decide_layers({"X": "ours"}, explicit=explicit, inherited={"X": "shell"}, image={}, authoritative={"X"})[
            "X"
        ]

    assert (decide(set()).layer, decide(set()).value) == (Layer.PLATFORM, "ours")
    assert decide({"X"}).layer is Layer.EXPLICIT


def test_inherited_names_come_first_in_their_own_order() -> None:
    decisions = decide_layers({"b": "1", "z": "2"}, explicit=set(), inherited={"c": "3", "b": "4"}, image={})
    assert list(decisions) == ["c", "b", "z"]


def write_process(folder: Path, name: str, environ: bytes) -> Path:
    (folder / "comm").write_text(f"{name}\n")
    (folder / "environ").write_bytes(environ)
    return folder


def test_the_image_is_read_from_the_first_process(tmp_path: Path) -> None:
    process = write_process(tmp_path, "bash", b"PATH=/opt/rocm/bin\0XLA_FLAGS=--xla_a=1 --xla_b=k=v\0EMPTY=\0junk\0")
    assert read_image_environment(process) == {
        "PATH": "/opt/rocm/bin",
        "XLA_FLAGS": "--xla_a=1 --xla_b=k=v",
        "EMPTY": "",
    }


def test_an_ordinary_init_says_nothing_about_an_image(tmp_path: Path) -> None:
    assert read_image_environment(write_process(tmp_path, "systemd", b"X=1\0")) == {}


def test_a_first_process_that_may_not_be_read_means_no_image(tmp_path: Path) -> None:
    (tmp_path / "comm").write_text("bash\n")
    assert read_image_environment(tmp_path) == {}
