"""Is a step as fast as under plain MaxText? Two runs of one configuration at the same time, each on its own CPU core.

    python benchmarks/step_time.py --pairs 6 --steps 120 [override ...]

One run goes through primus_hydra, the other is the plain MaxText command that a run folder records. They run side by
side, so both see the same drift of a shared machine's speed, and they change cores from pair to pair. Printed: the
median step time of both (s, after the warm-up), their ratio for each pair, and the geometric mean of each two
neighbouring pairs (in which a difference between the cores cancels). Needs two idle cores and `taskset`.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WARMUP_STEPS = 10


def main() -> None:
    """Run the pairs and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("overrides", nargs="*", default=["model=tiny", "data=synthetic", "platform=cpu"])
    options = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.pairs):
            overrides = [*options.overrides, f"steps={options.steps}"]
            ours, plain = (_export(Path(scratch) / f"{number}-{name}", overrides) for name in ("ours", "plain"))
            cores = (number % 2, 1 - number % 2)
            started = [
                _start(cores[0], sys.executable, "-m", "primus_hydra.worker", str(ours)),
                _start(cores[1], "bash", str(plain / "command.sh")),
            ]
            if any(process.wait() for process in started):
                sys.exit("A run failed; run its folder by hand to see why.")
            times = [_take_median(folder) for folder in (ours, plain)]
            ratios.append(times[0] / times[1])
            shown = f"primus_hydra {times[0]:.4f} s, MaxText {times[1]:.4f} s, ratio {ratios[-1]:.3f}"
            print(f"pair {number}: {shown}", flush=True)
    balanced = [math.sqrt(one * other) for one, other in zip(ratios[::2], ratios[1::2], strict=False)]
    print("ratios with cores exchanged:", ", ".join(f"{ratio:.3f}" for ratio in balanced))
    print(f"median ratio {statistics.median(balanced or ratios):.3f}")


def _export(folder: Path, overrides: list[str]) -> Path:
    command = [sys.executable, "-m", "primus_hydra", *overrides, "action=export", f"run.dir={folder}"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def _start(core: int, *command: str) -> "subprocess.Popen[bytes]":
    pinned = ["taskset", "-c", str(core), *command]
    return subprocess.Popen(pinned, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _take_median(folder: Path) -> float:
    """Median step time of the run that ended in a folder (s)."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return statistics.median(json.loads(line)["perf/step_time_seconds"] for line in lines[WARMUP_STEPS:])


if __name__ == "__main__":
    main()
