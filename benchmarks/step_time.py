"""Is a step as fast as under plain MaxText? Paired runs of one configuration, in turn, on this machine.

    python benchmarks/step_time.py --pairs 5 --steps 60 [override ...]

Each pair trains the same exported configuration twice: through primus_hydra, and by the plain MaxText command that the
run folder records. Printed: the median and the lower quartile of the step times of both (s, after the warm-up), their
ratios for each pair, and the median ratios. The order within a pair alternates, so that drift of the machine's speed
cancels; on a shared machine the lower quartile is the steadier of the two.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

WARMUP_STEPS = 5


def main() -> None:
    """Run the pairs and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("overrides", nargs="*", default=["model=tiny", "data=synthetic", "platform=cpu"])
    options = parser.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.pairs):
            folder = Path(scratch) / str(number)
            export = [*_program(), *options.overrides, f"steps={options.steps}", "action=export", f"run.dir={folder}"]
            subprocess.run(export, check=True, capture_output=True)
            order = [_run_ours, _run_plain] if number % 2 == 0 else [_run_plain, _run_ours]
            times = {run: run(folder) for run in order}
            ours, plain = times[_run_ours], times[_run_plain]
            pairs.append([mine / theirs for mine, theirs in zip(ours, plain, strict=True)])
            print(
                f"pair {number}: primus_hydra {_show(ours)}, MaxText {_show(plain)}, ratio {_show(pairs[-1])}",
                flush=True,
            )
    for name, ratios in zip(("median", "lower quartile"), zip(*pairs, strict=True), strict=True):
        print(f"{name}: median ratio {statistics.median(ratios):.3f} (min {min(ratios):.3f}, max {max(ratios):.3f})")


def _show(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.4f}" for value in values)


def _program() -> list[str]:
    return [sys.executable, "-m", "primus_hydra"]


def _run_ours(folder: Path) -> list[float]:
    subprocess.run([sys.executable, "-m", "primus_hydra.worker", str(folder)], check=True, capture_output=True)
    return _take_times(folder)


def _run_plain(folder: Path) -> list[float]:
    command = json.loads((folder / "command.json").read_text(encoding="utf-8"))
    env = {name: value for name, value in os.environ.items() if name not in command["unset_env"]} | command["env"]
    subprocess.run(command["argv"], env=env, cwd=command["cwd"], check=True, capture_output=True)
    return _take_times(folder)


def _take_times(folder: Path) -> list[float]:
    """Median and lower quartile (s) of the run that just ended; the file is removed so that the next starts afresh."""
    file = folder / "metrics.jsonl"
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    file.unlink()
    quartiles = statistics.quantiles(record["perf/step_time_seconds"] for record in records[WARMUP_STEPS:])
    return [quartiles[1], quartiles[0]]


if __name__ == "__main__":
    main()
