"""How long does it take to plan a sweep, from the start of the program to the moment before the first write?

    python benchmarks/planning.py [override ...]

Whole processes that compose, check and judge 1,000 points and print their plan, then refuse to start one because
`sweep.on_invalid=stop` finds a point that is refused. Printed: seconds, and milliseconds a point beyond a sweep of two.
"""

import argparse
import subprocess
import sys
import tempfile
import time

COMMON = ["model=llama3_8B", "platform=mi300x", "data=synthetic", "sweep.on_invalid=stop", "run.accept=[no_gpu]"]
REFUSED = "attention=cudnn_flash_te,no_such_kernel"
TWO = [REFUSED]
THOUSAND = [
    REFUSED,
    "remat_policy=full,minimal",
    "precision=bf16,fp8",
    "steps=range(10,35)",
    "data_shuffle_seed=range(1,6)",
]


def main() -> None:
    """Time a small sweep and a large one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", help="instead of the thousand points")
    overrides = parser.parse_args().overrides
    few, num_few = _plan(TWO)
    many, num_many = _plan(overrides or THOUSAND)
    print(f"{num_few} points: {few:.2f} s")
    print(f"{num_many} points: {many:.2f} s, {1000 * (many - few) / max(1, num_many - num_few):.1f} ms a point")


def _plan(overrides: list[str]) -> tuple[float, int]:
    """Seconds, and the number of points."""
    command = [sys.executable, "-m", "primus_hydra", "--multirun", *COMMON, *overrides]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
    if done.returncode != 2 or " points: " not in done.stdout:
        sys.exit(f"The sweep was not planned to its end:\n{done.stdout}{done.stderr}")
    return seconds, int(done.stdout.split(" points: ")[0].split()[-1].replace(",", ""))


if __name__ == "__main__":
    main()
