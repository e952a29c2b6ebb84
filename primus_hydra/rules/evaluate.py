"""Hold a configuration against the rules."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from string import Formatter
from types import SimpleNamespace
from typing import Any

from primus_hydra.errors import Problem
from primus_hydra.rules.checks import CHECKS
from primus_hydra.rules.conditions import holds, list_choices, list_subjects
from primus_hydra.rules.context import MISSING, RuleContext
from primus_hydra.rules.load import Rule, load_rules


def evaluate(context: RuleContext, *, other_rules: Collection[str] = ()) -> list[Problem]:
    """All problems of a configuration: what is refused first, then what is only warned of.

    A refusal that the user overruled comes back as a warning that says so; a warning that was accepted is silent.

    Args:
        context: the configuration and where it is about to run.
        other_rules: names that `run.accept` may also hold because another check reports under them.
    """
    rules = load_rules()
    about = _list_rules(context.maxtext_version, context.platform.chip)
    problems = [problem for rule in about for problem in _apply_rule(rule, context)]
    problems = [problem for problem in problems if problem.severity == "refuse" or problem.rule not in context.accept]
    problems = [_overrule(problem) if problem.rule in context.accept else problem for problem in problems]
    problems += _find_unknown_names(context.accept, [*rules, *other_rules])
    return sorted(problems, key=lambda problem: problem.severity != "refuse")


@cache
def _list_rules(maxtext_version: str, chip: str | None) -> list[Rule]:
    """Rules that are known to hold; comparing versions takes longer than most conditions."""
    return [rule for rule in load_rules().values() if rule.is_about(maxtext_version, chip)]


def _apply_rule(rule: Rule, context: RuleContext) -> Iterator[Problem]:
    if not holds(rule.when, context.look_up):
        return
    for finding in CHECKS[rule.check](context) if rule.check else [_suggest(rule, context)]:
        fields = _Fields(context, finding)
        keys = finding.get("keys") or rule.keys or list_subjects(rule.when)
        yield Problem(
            what=f"{_fill(rule.what, fields)} {_fill(rule.why, fields)}".strip(),
            allowed=_fill(rule.allowed, fields),
            fix=_fill(rule.fix, fields),
            origin=_tell_origin(context, keys),
            rule=rule.name,
            severity=rule.severity,
            scope=rule.scope,
            evidence=rule.evidence,
        )


def _suggest(rule: Rule, context: RuleContext) -> dict[str, Any]:
    """Fields `choices` and `did_you_mean` of a rule that refuses unknown values."""
    listed = list_choices(rule.when)
    if listed is None:
        return {}
    key, choices = listed
    names = [choice for choice in choices if isinstance(choice, str) and choice]
    close = get_close_matches(str(context.look_up(key)), names, n=2, cutoff=0.5)
    return {
        "choices": ", ".join(names),
        "did_you_mean": f"Did you mean {' or '.join(f'{key}={name}' for name in close)}? " if close else "",
    }


def _overrule(problem: Problem) -> Problem:
    """The same fact as a warning that no longer offers to be overruled."""
    text = f"Overruled by run.accept=[{problem.rule}]: {problem.what}"
    return replace(problem, what=text, allowed="", fix="", rule="", severity="warn")


def _find_unknown_names(accept: Collection[str], known: list[str]) -> Iterator[Problem]:
    for name in sorted(set(accept) - set(known)):
        close = get_close_matches(name, known, n=3, cutoff=0.5)
        yield Problem(
            what=f"run.accept names a rule that does not exist: {name}.",
            allowed="docs/rules.md lists every rule.",
            fix=f"Did you mean {' or '.join(close)}?" if close else "Remove it from run.accept.",
            origin="run.accept",
        )


def _tell_origin(context: RuleContext, keys: Collection[str]) -> str:
    composed = [key for key in keys if key in context.keys and key in context.origins]
    values = {key: "(hidden)" if key.endswith("_token") else show(context.keys[key]) for key in composed}
    return "; ".join(f"{key}={values[key]}: {context.origins[key]}" for key in composed)


def show(value: Any) -> str:
    """A value as a person would type it on the command line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return '""' if value == "" else str(value)


class _Fields(Mapping[str, Any]):
    """What a template may name: fields of the finding, our facts, MaxText keys."""

    def __init__(self, context: RuleContext, finding: Mapping[str, Any]) -> None:
        machine = SimpleNamespace(chips=", ".join(context.machine.chips), num_gpus=len(context.machine.chips))
        self._facts = {"platform": context.platform, "machine": machine, "jax_version": context.jax_version}
        self._context = context
        self._finding = finding

    def __getitem__(self, name: str) -> Any:
        if name in self._finding:
            return self._finding[name]
        if name in self._facts:
            return self._facts[name]
        value = self._context.look_up(name)
        return "(not set)" if value is MISSING else show(value)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._finding, **self._facts, **self._context.effective})

    def __len__(self) -> int:
        return len(list(iter(self)))


def _fill(template: str, fields: Mapping[str, Any]) -> str:
    return Formatter().vformat(template, (), fields)
