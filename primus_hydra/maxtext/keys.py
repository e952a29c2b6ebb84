"""MaxText's configuration keys, read from the installed package's source without importing it.

Importing `maxtext.configs.types` pulls in jax and takes seconds; its field declarations are plain
class bodies, so the standard library's `ast` reads all of them in about 0.15 s.
"""

import ast
import importlib.metadata
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from primus_hydra.errors import ConfigError, Problem

_SCALARS = {"bool": "bool", "int": "int", "float": "float", "str": "str", "list": "list", "dict": "dict"}
_BOUNDED_TYPES = {"NonNegative": ("ge", 0.0), "Positive": ("gt", 0.0)}
_ALIASES = {
    "NonNegativeInt": "int",
    "PositiveInt": "int",
    "NonNegativeFloat": "float",
    "PositiveFloat": "float",
    "PathStr": "str",
    "AxisNames": "str",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One key that MaxText accepts."""

    name: str
    kinds: frozenset[str]
    """Subset of bool, int, float, str, list, dict; empty means any value."""
    choices: tuple[str | int, ...]
    """Values of the enum or Literal; empty where the type is open."""
    nullable: bool
    default: Any
    """The declared default; None where it is computed by MaxText."""
    description: str
    section: str
    """Name of the class that declares the key."""
    annotation: str
    """The declared type, as MaxText writes it."""
    bounds: tuple[tuple[str, float], ...]
    """Declared limits, such as (("ge", 0.0), ("le", 1.0))."""
    fields: tuple[str, ...]
    """Names inside a mapping that has a fixed shape, such as `dpo`; empty where any name is allowed."""


@cache
def package_dir() -> Path:
    """Folder of the installed `maxtext` package.

    Raises:
        ConfigError: MaxText is not installed in this environment.
    """
    spec = importlib.util.find_spec("maxtext")
    if spec is None or spec.origin is None:
        raise ConfigError(
            [
                Problem(
                    what="MaxText is not installed in this Python environment, so no key can be checked.",
                    fix="Install it with `pip install 'primus_hydra[cpu]'` (or `[rocm]` on an AMD machine).",
                )
            ]
        )
    return Path(spec.origin).parent


@cache
def installed_version() -> str:
    """Version of the installed MaxText distribution, or "unknown" for a source checkout."""
    try:
        return importlib.metadata.version("maxtext")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@cache
def load_keys(package: Path | None = None) -> Mapping[str, Key]:
    """Read every key of `MaxTextConfig` and its base classes.

    Args:
        package: folder of a `maxtext` package; default: the installed one.
    """
    package = package or package_dir()
    types_module = ast.parse((package / "configs" / "types.py").read_text(encoding="utf-8"))
    enum_module = ast.parse((package / "common" / "common_types.py").read_text(encoding="utf-8"))
    classes = {node.name: node for node in types_module.body if isinstance(node, ast.ClassDef)}
    enums = _read_enums(enum_module) | _read_enums(types_module)
    literals = _read_literal_aliases(types_module)
    keys: dict[str, Key] = {}
    for class_name in _linearise(classes, "MaxTextConfig"):
        for node in classes[class_name].body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                keys[node.target.id] = _read_key(node, class_name, classes, enums, literals)
    return keys


def _linearise(classes: Mapping[str, ast.ClassDef], name: str) -> list[str]:
    """Base classes first, each class once; later declarations override earlier ones."""
    order: list[str] = []
    for base in classes[name].bases:
        base_name = ast.unparse(base)
        if base_name in classes:
            order += [found for found in _linearise(classes, base_name) if found not in order]
    return [*order, name]


def _read_enums(module: ast.Module) -> dict[str, dict[str, str | int]]:
    """Enum class name -> {member name: value}."""
    enums: dict[str, dict[str, str | int]] = {}
    for node in module.body:
        if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
            enums[node.name] = {
                statement.targets[0].id: statement.value.value
                for statement in node.body
                if isinstance(statement, ast.Assign)
                and isinstance(statement.targets[0], ast.Name)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str | int)
            }
    return enums


def _read_literal_aliases(module: ast.Module) -> dict[str, ast.expr]:
    """Names bound at module level to a `Literal[...]`, such as ModelName."""
    return {
        node.targets[0].id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Subscript)
        and ast.unparse(node.value.value) == "Literal"
    }


def _read_key(
    node: ast.AnnAssign,
    section: str,
    models: Mapping[str, ast.ClassDef],
    enums: dict[str, dict[str, str | int]],
    literals: dict[str, ast.expr],
) -> Key:
    kinds: set[str] = set()
    choices: list[str | int] = []
    fields: list[str] = []
    nullable = False
    for part in _union_members(node.annotation):
        part = literals.get(ast.unparse(part), part)
        text = ast.unparse(part)
        head = _ALIASES.get(text, text.split("[")[0])
        if text == "None":
            nullable = True
        elif text in enums:
            choices += enums[text].values()
        elif head == "Literal" and isinstance(part, ast.Subscript):
            choices += (
                ast.literal_eval(part.slice) if isinstance(part.slice, ast.Tuple) else [ast.literal_eval(part.slice)]
            )
        elif head in _SCALARS:
            kinds.add(_SCALARS[head])
        elif head in models:
            kinds.add("dict")
            fields += _list_fields(models, head)
    default, description, bounds = _read_field(node.value, enums)
    assert isinstance(node.target, ast.Name)
    annotation = ast.unparse(node.annotation)
    bounds += [bound for prefix, bound in _BOUNDED_TYPES.items() if annotation.startswith(prefix)]
    return Key(
        name=node.target.id,
        kinds=frozenset(kinds | {"int" if isinstance(value, int) else "str" for value in choices}),
        choices=tuple(choices),
        nullable=nullable,
        default=default,
        description=description,
        section=section,
        annotation=annotation,
        bounds=tuple(bounds),
        fields=tuple(fields),
    )


def _list_fields(classes: Mapping[str, ast.ClassDef], name: str) -> list[str]:
    return [
        node.target.id
        for class_name in _linearise(classes, name)
        for node in classes[class_name].body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]


def _union_members(annotation: ast.expr) -> list[ast.expr]:
    if isinstance(annotation, ast.BinOp):
        return _union_members(annotation.left) + _union_members(annotation.right)
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Optional":
        return [*_union_members(annotation.slice), ast.Constant(None)]
    return [annotation]


def _read_field(
    value: ast.expr | None, enums: dict[str, dict[str, str | int]]
) -> tuple[Any, str, list[tuple[str, float]]]:
    """Default, description and limits of `name: type = Field(default, ge=0, description=...)` or `= literal`."""
    description = ""
    bounds: list[tuple[str, float]] = []
    if isinstance(value, ast.Call):
        named = {keyword.arg: keyword.value for keyword in value.keywords}
        if "description" in named:
            description = " ".join(str(_literal(named["description"], enums)).split())
        bounds = [(name, float(_literal(named[name], enums))) for name in ("ge", "gt", "le", "lt") if name in named]
        value = value.args[0] if value.args else named.get("default")
    return _literal(value, enums), description, bounds


def _literal(value: ast.expr | None, enums: dict[str, dict[str, str | int]]) -> Any:
    if value is None:
        return None
    if isinstance(value, ast.Attribute) and ast.unparse(value.value) in enums:
        return enums[ast.unparse(value.value)].get(value.attr)
    try:
        return ast.literal_eval(value)
    except ValueError:
        return None
