"""Our sweeper, as Hydra's plugin scan finds it; what it does is in primus_hydra, imported when it is used."""

from collections.abc import Sequence
from dataclasses import dataclass

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn


@dataclass
class GridSweeperConf:
    """Settings under `hydra.sweeper`."""

    _target_: str = "hydra_plugins.primus_hydra_sweeper.grid.GridSweeper"
    params: dict[str, str] | None = None
    """Override name -> values, as a command line has them: `{remat_policy: "full,minimal"}`."""


ConfigStore.instance().store(group="hydra/sweeper", name="grid", node=GridSweeperConf, provider="primus_hydra")


class GridSweeper(BasicSweeper):
    """Every combination of what the command line and the `sweep` settings give several values to.

    Hydra's own sweeper composes every point once more to see whether it can, and raises for the first point without a
    result. Here points are composed by the launcher, and a failed one is told in the sweep's table.
    """

    def __init__(self, params: dict[str, str] | None = None) -> None:
        super().__init__(max_batch_size=None, params=params)

    def sweep(self, arguments: list[str]) -> Sequence[Sequence[JobReturn]]:
        """Launch all points at once.

        Args:
            arguments: the command line's overrides, as Hydra got them.
        """
        from primus_hydra.app import run_grid

        return run_grid(self, arguments)
