"""Kill sweeps at random, run them again, and look whether a result was lost, made twice or made up.

    python -m tests.fault_campaign --kills 120 --seed 1

Small sweeps of the stub trainer are started by the real command. At a random instant the parent, a worker, a reaper, a
trainer or everything at once is killed; the same command then runs again, until the sweep is done. What is true comes
from the trainers' own journal. Exit code 0: nothing found; 1: what is found is printed, and the folders are kept.
"""

import argparse
import os
import random
import secrets
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.faults.place import Place
from tests.faults.scenarios import SCENARIOS
from tests.faults.tally import Tally
from tests.faults.victim_sweep import VictimSweep


def run_campaign(folder: Path, *, kills: int, seed: int, kills_a_sweep: int = 15) -> Tally:
    """Hurt one sweep after the other until enough was killed.

    Args:
        folder: where the sweeps are made.
        kills: SIGKILLs in all; a power cut counts once.
        seed: of every choice. Instants depend on the machine all the same.
        kills_a_sweep: after so many a sweep is let to its end.
    """
    rng = random.Random(seed)
    tally = Tally()
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    for number in range(kills):
        if tally.num_kills >= kills:
            break
        scenario = SCENARIOS[(number + seed) % len(SCENARIOS)]
        place = Place(folder=folder / f"{number:03d}", mark=mark)
        place.folder.mkdir()
        budget = min(kills_a_sweep, kills - tally.num_kills)
        sweep = VictimSweep(scenario, place, rng, tally)
        sweep.hurt(budget)
        print(f"{tally.num_kills} of {kills} kills, {len(tally.findings)} findings", flush=True)
        if not sweep.findings:
            shutil.rmtree(place.folder)
    return tally


def main(arguments: Sequence[str]) -> int:
    """Run a campaign and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.fault_campaign", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=120, help="SIGKILLs in all; default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of all choices; default: %(default)s")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="fault_campaign-"))
    tally = run_campaign(folder, kills=options.kills, seed=options.seed)
    print(tally.describe())
    if tally.findings:
        print(f"Kept: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
