"""Our launcher, as Hydra's plugin scan finds it; what it does is in primus_hydra, imported when it is used."""

from collections.abc import Sequence
from dataclasses import dataclass

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class LocalLauncherConf:
    """No settings of its own: `sweep.*` says how a sweep is run."""

    _target_: str = "hydra_plugins.primus_hydra_launcher.local.LocalLauncher"


ConfigStore.instance().store(group="hydra/launcher", name="local", node=LocalLauncherConf, provider="primus_hydra")


class LocalLauncher(Launcher):
    """Turns every point of a sweep into a run folder, and executes the folders on this machine."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what `launch` composes from; the task function belongs to runs of their own."""
        self._context, self._config = hydra_context, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run one point for each list of overrides; returns their scores in the same order."""
        from primus_hydra.app import launch

        return launch(self._context, self._config, job_overrides, initial_job_idx)
