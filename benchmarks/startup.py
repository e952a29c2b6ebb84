"""How long until the program answers? Whole processes, medians of several runs.

python benchmarks/startup.py --runs 7
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time

COMMANDS = {
    "--cfg job": ["model=llama3_8B", "platform=mi300x", "--cfg", "job"],
    "action=explain": ["model=llama3_8B", "platform=mi300x", "action=explain"],
    "action=export": ["experiment=llama3_8B", "platform=mi300x", "action=export"],
}


def main() -> None:
    """Time each command and print a line (s)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    for name, arguments in COMMANDS.items():
        _time(arguments)  # fills the disk cache
        times = sorted(_time(arguments) for _ in range(runs))
        print(
            f"{name:<16} median {statistics.median(times):.2f} s (min {times[0]:.2f}, max {times[-1]:.2f}, {runs} runs)"
        )


def _time(arguments: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "primus_hydra", *arguments], cwd=folder, check=True, capture_output=True)
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
