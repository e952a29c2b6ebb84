"""`hydra/sweeper=optuna`, as Hydra's plugin scan finds it; what it does is in primus_hydra, imported when used."""

from typing import Any

from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class SearchSweeper(Sweeper):
    """Hydra's Optuna sweeper over our objectives, with a study that lies in the sweep's folder and can be resumed."""

    def __init__(self, **settings: Any) -> None:
        """Keep the settings (`schema.SearchSettings`), the sampler instantiated."""
        self._settings = settings

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what the wrapped sweeper is set up with."""
        self._context, self._task_function, self._config = hydra_context, task_function, config

    def sweep(self, arguments: list[str]) -> None:
        """Run what is missing of the study's trials.

        Args:
            arguments: the command line's overrides, as Hydra got them.
        """
        from primus_hydra.app import run_search

        run_search(self._settings, self._context, self._task_function, self._config, arguments)
