"""Child process: a sweep's parent over run folders that are written already.

    python run_jobs.py NUM_SLOTS RETRIES RUN_DIR...

Prints what a person sees, then one JSON line: {"interrupted", "not_started", "refused"}, jobs by their folder's name.
"""

import json
import sys
from pathlib import Path

from rich.console import Console

from primus_hydra.objective import OBJECTIVES
from primus_hydra.progress import Voice
from primus_hydra.runs import RunFolder
from primus_hydra.sweep.job import Job, Policy
from primus_hydra.sweep.live import SweepView
from primus_hydra.sweep.pool import run_jobs
from primus_hydra.sweep.slots import Slot


def main(num_slots: int, retries: int, paths: list[str]) -> None:
    """Run them all."""
    folders = [RunFolder(Path(path)) for path in paths]
    jobs = [
        Job(folder=folder, fingerprint=folder.read_record()["fingerprint"], differs=folder.path.name)
        for folder in folders
    ]
    policy = Policy(objective=OBJECTIVES["tokens_per_second_per_device"], retries=retries)
    with SweepView(Voice(Console())) as view:
        ended = run_jobs(jobs, slots=[Slot()] * num_slots, policy=policy, view=view)
    names = {
        "not_started": [job.folder.path.name for job in ended.not_started],
        "refused": [job.folder.path.name for job in ended.refused],
    }
    print(json.dumps({"interrupted": ended.interrupted, **names}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
