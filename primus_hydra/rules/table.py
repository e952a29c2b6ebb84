"""The rules as a Markdown table; `python -m primus_hydra.rules.table` prints what docs/rules.md holds."""

from primus_hydra.rules.load import Rule, load_rules

_HEADER = """\
# Rules

What is checked before anything starts, besides names and types of keys. `refuse` stops the run (exit code 2), `warn`
is shown and recorded. Any rule can be overruled by name, `run.accept=[rule,...]`; it is recorded, a refusal becomes a
warning and a warning is silent. With `run.trainer` of your own, the rules about this machine (`no_gpu`, `wrong_chip`,
`too_few_gpus`, `does_not_fit`, `transformer_engine_missing`, `tensorflow_missing`) and about its connection to others
(`multi_node_without_coordinator`) are left out. In a sweep a refusal leaves out only the points that it is about; one
marked `refuse all` is about a value that no other setting makes right, and stops the sweep before its first run.

The rules are data: `primus_hydra/rules/*.yaml`, one file per topic, with the evidence for each. This page is made from
them by `python -m primus_hydra.rules.table`. Words in `{braces}` are filled in from your configuration.

| rule | | applies to | what is wrong, and why | what to write instead |
|---|---|---|---|---|
"""


def render_page() -> str:
    """The whole page, ending in a newline."""
    return _HEADER + "".join(_render_row(rule) for rule in load_rules().values())


def _render_row(rule: Rule) -> str:
    scope = ", ".join([*rule.chips, *([f"MaxText {rule.versions}"] if str(rule.versions) else [])]) or "all"
    fix = f"{rule.allowed} {rule.fix}".strip()
    severity = "refuse all" if rule.severity == "refuse" and rule.scope == "value" else rule.severity
    cells = (f"`{rule.name}`", severity, scope, f"{rule.what} {rule.why}", fix)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |\n"


if __name__ == "__main__":
    print(render_page(), end="")
