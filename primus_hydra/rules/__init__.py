"""Cross-field rules as data: what MaxText accepts and then fails on, ignores, or gets wrong."""

from primus_hydra.rules.context import RuleContext
from primus_hydra.rules.evaluate import evaluate
from primus_hydra.rules.load import Rule, load_rules

__all__ = ["Rule", "RuleContext", "evaluate", "load_rules"]
