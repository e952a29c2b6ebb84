"""The command line before Hydra sees it.

Hydra demands `+` for a key that no preset mentions, turns `run_name=2024_01_01` into the number 20240101, and lets
`+typo=1` through. Here every override is checked by name, MaxText's keys get the `++` that Hydra needs, and values of
text-typed keys are quoted so that the text which was typed is the text that arrives.
"""

import difflib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from primus_hydra.errors import Problem
from primus_hydra.grammar import (
    NOT_TEXT,
    SWEEP_FUNCTION,
    quote_typed,
    split_top_level,
    try_parse,
    typed_name,
    write_value,
)
from primus_hydra.maxtext.keys import Key, load_keys
from primus_hydra.maxtext.names import unknown_key
from primus_hydra.paths import list_choices, list_groups
from primus_hydra.redaction import is_secret_setting
from primus_hydra.schema import PRIVATE_KEYS
from primus_hydra.setting_types import NAMESPACES, check_setting, list_settings

COMMAND_LINE = "command line"
_NAMESPACES = ("action", *NAMESPACES)
_OPTIONAL_GROUPS = ("data", "precision", "experiment", "sweep")
_NOT_PER_POINT = ("sweep", "hydra", "action", "explain")
_OBJECTIVE = "sweep.objective"
_GRID = "sweep.grid"
_OPEN_MAPPINGS = ("platform.env.", "platform.xla_flags.")
_CLAUSE = re.compile(r"^(?P<prefix>\+{0,2})(?P<name>[A-Za-z_][\w.]*)=(?P<value>.*)$", re.DOTALL)
_ENVIRONMENT = re.compile(
    r"^\+{0,2}(platform\.)?(env[.=]|xla_flags[.=]|XLA_FLAGS=)?-*(?P<name>xla_\w+|[A-Z][A-Z0-9]*_[A-Z0-9_]+)=(?P<value>.*)$",
    re.DOTALL,
)
"""A variable or an XLA flag, perhaps without the mapping that it belongs to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """What may be overridden: known from the preset folders and the schema."""

    folders: tuple[Path, ...]
    """Preset folders, the user's first."""
    multirun: bool

    @property
    def groups(self) -> frozenset[str]:
        return list_groups(self.folders)


def rewrite_override(text: str, line: CommandLine) -> tuple[str, Problem | None]:
    """Turn one typed override into the one Hydra needs.

    Returns:
        The override and None, or the text as typed and the problem with it.
    """
    flag = re.match(r"^--(?P<name>\w+)(=(?P<value>.*))?$", text)
    if flag and (flag["name"] in load_keys() or flag["name"] in line.groups):
        value = flag["value"] if flag["value"] is not None else "VALUE"
        return text, Problem(
            what=f"{text} is not an option.",
            fix=f"Write overrides without dashes: {flag['name']}={value}",
            origin=COMMAND_LINE,
        )
    if text.startswith("~"):
        return text, _check_deletion(text, line)
    misplaced = _ENVIRONMENT.match(text)
    if misplaced and (problem := _explain_environment(misplaced)):
        return text, problem
    clause = _CLAUSE.match(text)
    if not clause:
        return (text, None) if re.search(r"[^=]=", text) else (text, _explain_bare_word(text))
    name, root = clause["name"], clause["name"].split(".")[0]
    if is_secret_setting(name) and "${" not in clause["value"]:
        return f"{name}=...", _explain_secret(name)
    if name in load_keys() and name in line.groups:
        return text, _explain_shadowed(name, line)
    if name in line.groups:
        return f"{name}={clause['value']}", _check_choice(name, clause["value"], line)
    if root == "hydra":
        return text, _check_hydra_setting(name, text)
    if not line.multirun and len(split_top_level(clause["value"])) > 1 and not NOT_TEXT.match(clause["value"]):
        return text, _explain_list_of_values(clause)
    if line.multirun and (problem := _check_whole_sweep(clause)):
        return text, problem
    if root in _NAMESPACES:
        return _rewrite_setting(clause, line)
    if root in PRIVATE_KEYS or root in load_keys():
        return _rewrite_key(clause, load_keys().get(name), line)
    return text, unknown_key(name, f"{COMMAND_LINE}: {text}", [*line.groups, *_NAMESPACES])


def write_override(name: str, value: Any, line: CommandLine) -> tuple[str, Problem | None]:
    """A name and its value from a YAML file as the override that Hydra needs, checked like a typed one.

    Returns:
        The override and None, or the override and the problem with it.
    """
    text = f"{name}={write_value(value)}"
    if _holds_text(name) and isinstance(value, int | float):
        what = f"{name} is {value!r}, which YAML does not read as text, so the text that was written is lost."
        return text, Problem(what=what, fix="Put the value in quotes.")
    if name.split(".")[0] in _NOT_PER_POINT or name == "run.dir":
        return text, _explain_not_per_point(name)
    return rewrite_override(text, line)


def _explain_secret(name: str) -> Problem:
    """For a credential that could not be moved into the environment: it has several values, or stands in a file."""
    return Problem(
        what=f"{name} is a credential: what tells the points of a sweep apart is written into files.",
        fix="Set it as an environment variable, one for the whole sweep.",
        origin=COMMAND_LINE,
    )


def _holds_text(name: str) -> bool:
    key = load_keys().get(name)
    return name.startswith(_OPEN_MAPPINGS) or (key is not None and key.kinds == {"str"} and not key.choices)


def _explain_not_per_point(name: str) -> Problem:
    return Problem(
        what=f"{name} holds for a whole sweep and cannot have several values.",
        allowed="Keys of MaxText, groups of presets, platform.* and run.* can differ between points.",
        fix="Start one sweep for each value.",
    )


def _rewrite_key(clause: re.Match[str], key: Key | None, line: CommandLine) -> tuple[str, Problem | None]:
    value = clause["value"]
    if key is not None and "list[str]" in key.annotation and re.fullmatch(r"\[.*\]", value):
        elements = [element.strip() for element in split_top_level(value[1:-1])]
        value = f"[{','.join(quote_typed(element, keep_numbers=False) for element in elements)}]"
    elif key is not None and "str" in key.kinds and not key.kinds & {"list", "dict"}:
        value = _quote_text(value, line.multirun, keep_numbers=bool(key.kinds & {"int", "float", "bool"}))
    rewritten = f"++{clause['name']}={value}"
    glued = re.search(r"\s(?P<key>\w+)=", clause["value"])
    if glued and glued["key"] in load_keys():
        return clause.string, Problem(
            what=f"The value of {clause['name']} contains {glued['key']}=: two overrides are glued together.",
            fix="Separate them with a space outside the quotes (before the backslash of a line continuation, too).",
            origin=f"{COMMAND_LINE}: {clause.string}",
        )
    return rewritten, _check_grammar(clause.string, rewritten)


def _check_whole_sweep(clause: re.Match[str]) -> Problem | None:
    """Settings of a sweep as a whole; one of them takes a list that may be written without brackets."""
    name = clause["name"]
    if name == "run.dir":
        what, fix = "run.dir would be one folder for all points of a sweep.", "Write sweep.dir=DIR."
        return Problem(what=what, fix=fix, origin=f"{COMMAND_LINE}: {clause.string}")
    several = len(split_top_level(clause["value"])) > 1 or SWEEP_FUNCTION.match(clause["value"])
    if name.split(".")[0] not in _NOT_PER_POINT or name == _OBJECTIVE or not several:
        return None
    problem = replace(_explain_not_per_point(name), origin=f"{COMMAND_LINE}: {clause.string}")
    is_list = "list" in str(list_settings().get(name))
    return replace(problem, fix=f"Write {name}=[{clause['value']}]") if is_list else problem


def _rewrite_setting(clause: re.Match[str], line: CommandLine) -> tuple[str, Problem | None]:
    name, typed = clause["name"], f"{COMMAND_LINE}: {clause.string}"
    if name == _OBJECTIVE and not clause["value"].startswith("["):
        rewritten = f"{name}=[{clause['value']}]"
        return rewritten, _check_grammar(clause.string, rewritten) or _check_type(name, rewritten, typed)
    if name == _GRID or name.startswith(f"{_GRID}."):
        return clause.string, Problem(
            what=f"{clause.string} is for files: a command line gives a grid's names their values directly.",
            fix="Write remat_policy=full,minimal and the like, or put sweep.grid into a file of the group sweep.",
            origin=typed,
        )
    if name.startswith(_OPEN_MAPPINGS):
        rewritten = f"++{name}={_quote_text(clause['value'], line.multirun)}"
        return rewritten, _check_grammar(clause.string, rewritten)
    settings = list_settings()
    if name not in settings:
        close = difflib.get_close_matches(name, settings, n=3)
        return clause.string, Problem(
            what=f"{name} is not a setting.",
            allowed=f"Settings are: {', '.join(sorted(settings))}, platform.env.NAME, platform.xla_flags.NAME.",
            fix=f"Did you mean {' or '.join(close)}?" if close else "",
            origin=typed,
        )
    text_typed = settings[name] in (str, str | None)
    rewritten = f"{name}={_quote_text(clause['value'], line.multirun) if text_typed else clause['value']}"
    return rewritten, _check_grammar(clause.string, rewritten) or _check_type(name, rewritten, typed)


def _check_type(name: str, rewritten: str, origin: str) -> Problem | None:
    parsed = try_parse(rewritten)
    if parsed is None or parsed.is_sweep_override() or "${" in rewritten:
        return None
    return check_setting(name, parsed.value(), origin)


def _quote_text(value: str, multirun: bool, keep_numbers: bool = False) -> str:
    """Quote each element that Hydra would not keep as the text it is."""
    elements = split_top_level(value) if multirun else [value]
    return ",".join(quote_typed(element, keep_numbers=keep_numbers) for element in elements)


def _check_grammar(typed: str, rewritten: str) -> Problem | None:
    parsed = try_parse(rewritten)
    if parsed is None:
        return Problem(
            what=f"{typed} cannot be read as an override.",
            fix="Put a value that holds spaces, quotes, commas or brackets in quotes of its own: 'key=\"a, b\"'.",
            origin=COMMAND_LINE,
        )
    return None


def _explain_environment(found: re.Match[str]) -> Problem | None:
    is_flag = found["name"].startswith("xla_")
    right = f"platform.{'xla_flags' if is_flag else 'env'}.{found['name']}={found['value']}"
    if found.string.lstrip("+") == right:
        return None
    kind = "an XLA flag" if is_flag else "an environment variable"
    origin = f"{COMMAND_LINE}: {found.string}"
    return Problem(what=f"{found.string} is not how {kind} is set.", fix=f"Write {right}", origin=origin)


def _explain_bare_word(text: str) -> Problem:
    name = text.lstrip("-+")
    if text.startswith("="):
        return Problem(what="There is a space beside =.", fix="Write key=value in one piece.", origin=COMMAND_LINE)
    fix = (
        f"Write {name}=VALUE." if name in load_keys() else "Overrides are written key=value; options come from --help."
    )
    return Problem(what=f"{text!r} stands alone on the command line.", fix=fix, origin=COMMAND_LINE)


def _explain_list_of_values(clause: re.Match[str]) -> Problem:
    name, value = clause["name"], clause["value"]
    return Problem(
        what=f"{name}={value} gives several values to one run.",
        fix=f"Add --multirun to try each. For one text with commas write '{name}=\"{value}\"', for a list [{value}].",
        origin=f"{COMMAND_LINE}: {clause.string}",
    )


def _explain_shadowed(name: str, line: CommandLine) -> Problem:
    folder = next(folder for folder in line.folders if (folder / name).is_dir())
    return Problem(
        what=f"The preset folder {folder / name} has the name of a MaxText key, so {name}=... cannot set the key.",
        fix=f"Rename the folder, for example {name}_presets.",
        origin=str(folder),
    )


def _check_hydra_setting(name: str, text: str) -> Problem | None:
    if name in ("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir", "hydra.output_subdir", "hydra.job.chdir"):
        return Problem(
            what=f"{name} is not used: folders are made only when everything was checked.",
            fix="Write run.dir=DIR for a run, sweep.dir=DIR for a sweep.",
            origin=f"{COMMAND_LINE}: {text}",
        )
    return None


def _check_deletion(text: str, line: CommandLine) -> Problem | None:
    name = typed_name(text)
    if name in _NAMESPACES or name in line.groups:
        return Problem(
            what=f"{text} would remove what every run needs.",
            fix=f"Leave it out; another choice is {name}=NAME."
            if name in line.groups
            else "Set single values instead.",
            origin=f"{COMMAND_LINE}: {text}",
        )
    return None


def _check_choice(group: str, value: str, line: CommandLine) -> Problem | None:
    choices = list_choices(line.folders, group)
    names = split_top_level(value) if line.multirun else [value]
    allowed = [*choices, "null"] if group in _OPTIONAL_GROUPS else choices
    wrong = [name for name in names if name not in allowed and not re.search(r"[${(]", name)]
    if not wrong:
        return None
    close = difflib.get_close_matches(wrong[0], choices, n=3, cutoff=0.4)
    return Problem(
        what=f"There is no preset {group}={wrong[0]}.",
        allowed=f"Presets of {group}: {', '.join(choices)}.",
        fix=(f"Did you mean {' or '.join(close)}?" if close else "")
        + (" Any other MaxText model: model=model_base model_name=NAME." if group == "model" else "")
        + (" Presets of your own need --config-dir FOLDER." if len(line.folders) == 1 else ""),
        origin=f"{COMMAND_LINE}: {group}={value}",
    )
