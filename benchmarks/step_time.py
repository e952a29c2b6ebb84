"""Is a step as fast as under plain MaxText? Paired runs of one configuration, in turn, on this machine.

    python benchmarks/step_time.py --pairs 5 --steps 60 [override ...]

Each pair trains the same exported configuration twice: through primus_hydra, and by the plain MaxText command that the
run folder records. Printed: the median step time of both (s, after the warm-up), their ratio for each pair, and the
median ratio. The order within a pair alternates, so that drift of the machine's speed cancels.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WARMUP_STEPS = 5


def main() -> None:
    """Run the pairs and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("overrides", nargs="*", default=["model=tiny", "data=synthetic", "platform=cpu"])
    options = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.pairs):
            folder = Path(scratch) / str(number)
            overrides = [*options.overrides, f"steps={options.steps}"]
            subprocess.run(
                [*_program(), *overrides, "action=export", f"run.dir={folder}"], check=True, capture_output=True
            )
            order = [_run_ours, _run_plain] if number % 2 == 0 else [_run_plain, _run_ours]
            times = {run.__name__: run(folder) for run in order}
            ratios.append(times["_run_ours"] / times["_run_plain"])
            print(
                f"pair {number}: primus_hydra {times['_run_ours']:.4f} s, MaxText {times['_run_plain']:.4f} s, "
                f"ratio {ratios[-1]:.3f}",
                flush=True,
            )
    print(f"median ratio {statistics.median(ratios):.3f} (min {min(ratios):.3f}, max {max(ratios):.3f})")


def _program() -> list[str]:
    return [sys.executable, "-m", "primus_hydra"]


def _run_ours(folder: Path) -> float:
    subprocess.run([sys.executable, "-m", "primus_hydra.worker", str(folder)], check=True, capture_output=True)
    return _take_median(folder)


def _run_plain(folder: Path) -> float:
    command = json.loads((folder / "command.json").read_text(encoding="utf-8"))
    env = {name: value for name, value in os.environ.items() if name not in command["unset_env"]} | command["env"]
    subprocess.run(command["argv"], env=env, cwd=command["cwd"], check=True, capture_output=True)
    return _take_median(folder)


def _take_median(folder: Path) -> float:
    """Median step time of the run that just ended (s); the file is removed so that the next run starts afresh."""
    file = folder / "metrics.jsonl"
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    file.unlink()
    return statistics.median(record["perf/step_time_seconds"] for record in records[WARMUP_STEPS:])


if __name__ == "__main__":
    main()
