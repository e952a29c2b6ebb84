"""Checks that a condition on values cannot express: arithmetic, files, the environment, the machine.

A check yields one finding per problem: the fields that its rule's texts name, and optionally `keys`, the MaxText
keys whose origins are to be told.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from primus_hydra.rules.checks import batch, files, machine, names, nodes
from primus_hydra.rules.context import RuleContext

Check = Callable[[RuleContext], Iterator[dict[str, Any]]]

_ALL: tuple[Check, ...] = (
    batch.find_empty_global_batch,
    batch.find_grouped_query_mismatch,
    batch.find_vocabulary_tile_mismatch,
    batch.find_late_profiler_window,
    batch.find_cut_profiler_window,
    files.find_missing_base_config,
    files.find_missing_data_files,
    files.find_missing_tensorflow,
    files.find_missing_tokenizer,
    files.find_oversized_tokenizer,
    files.find_stray_base_config,
    files.find_stray_model_file,
    files.find_tokenizer_that_is_a_file,
    machine.find_missing_memory,
    machine.find_ici_mismatch,
    machine.find_dcn_mismatch,
    machine.find_ignored_axes,
    machine.find_too_few_gpus,
    machine.find_wrong_chip,
    names.find_environment_overrides,
    names.find_idle_remat_knobs,
    names.find_empty_custom_remat,
    names.find_misspelt_environment_overrides,
    names.find_model_without_file,
    names.find_placeholders,
    nodes.find_unready_coordinator,
)

CHECKS: Mapping[str, Check] = {check.__name__: check for check in _ALL}
"""Name in a rule file's `check:` -> the function."""
