"""Read the rules: one YAML file per topic beside this module."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One fact about MaxText, jax or the hardware that a configuration can collide with.

    The texts are templates: `{remat_policy}` is a MaxText key's value, `{platform.name}` one of our facts,
    other fields come from the check.
    """

    name: str
    severity: Literal["refuse", "warn"]
    what: str
    """The fact, with the offending value."""
    why: str
    """What would happen."""
    fix: str
    """What to write instead."""
    evidence: str
    """Source: an upstream issue, a source file, or a run that was made."""
    scope: Literal["value", "combination"] = "combination"
    """`value`: wrong whatever the other values are, so that a whole sweep stops; `combination`: only together."""
    allowed: str = ""
    """Which values are accepted, where that can be said."""
    versions: SpecifierSet = field(default_factory=SpecifierSet)
    """MaxText versions that the fact is true of; empty: all."""
    chips: tuple[str, ...] = ()
    """LLVM targets of the platform that the fact is true of; empty: all."""
    when: Mapping[str, Any] = field(default_factory=dict)
    """Condition in the language of `conditions`; empty: always."""
    check: str = ""
    """Name of a function in `checks` that finds what arithmetic, files or the environment decide."""
    keys: tuple[str, ...] = ()
    """MaxText keys whose origins are told; empty: the subjects of `when`."""

    def is_about(self, maxtext_version: str, chip: str | None) -> bool:
        """Whether the rule is known to hold for this MaxText and chip; a version that has no number takes all rules."""
        if self.chips and chip not in self.chips:
            return False
        try:
            return self.versions.contains(maxtext_version, prereleases=True)
        except InvalidVersion:
            return True


@cache
def load_rules() -> Mapping[str, Rule]:
    """Every rule by name, in the order of the files' names and of their entries."""
    rules: dict[str, Rule] = {}
    for file in sorted(files("primus_hydra.rules").iterdir(), key=lambda entry: entry.name):
        if not file.name.endswith(".yaml"):
            continue
        for name, entry in yaml.load(file.read_text(encoding="utf-8"), _Loader).items():
            if name in rules:
                raise ValueError(f"{file.name}: the rule {name} is defined twice.")
            rules[name] = _make_rule(name, entry)
    return rules


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _make_rule(name: str, entry: dict[str, Any]) -> Rule:
    for text in ("what", "why", "allowed", "fix", "evidence"):
        entry[text] = " ".join(entry.get(text, "").split())
    versions = SpecifierSet(entry.pop("versions", ""))
    chips, keys = tuple(entry.pop("chips", ())), tuple(entry.pop("keys", ()))
    return Rule(name=name, versions=versions, chips=chips, keys=keys, **entry)
