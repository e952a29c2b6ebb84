"""A trainer program without MaxText: reads the same file, writes the same metrics and log lines, and fails as told.

    python stub_trainer.py maxtext.yml [key=value ...]

STUB holds what to do, as words separated by blanks, `name` or `name=value`:

    step_s=0.01        time of one step            resume_at=N     first step
    fail_at=N          raise ValueError            stop_at=N       "ran out of data", exit code 0
    quit_at=N          exit code 0, no word        exit=N          exit code at the very end
    nan_at=N           loss is NaN from step N     signal_at=N:SIGSEGV   send itself a signal
    crash_once         raise ValueError in the first attempt that a run folder sees
    hang_at=N          never go on                 hang_once=N         the same, but only in the first attempt
    ignore_sigterm     SIGTERM does nothing
    oom_at=N           XLA's out-of-memory error   config_error    MaxText's refusal of an unknown key
    difference         what our child prints when MaxText resolves another configuration
    empty_batch        total_weights is 0          garbage         bytes that are no text, and very long lines
    eval_at=N          truncate the metrics file before step N is written, as MaxText's evaluation does
    silent_log         no step lines in the log    no_metrics      no metrics file
    grandchildren      leave processes behind: one in the group, one in a session of its own, one orphaned
    secret=NAME        print the value of that variable
    metrics=JSON       figures that replace those of each metrics line, without blanks: {"perf/step_time_seconds":NaN}
    files=JSON         what child.json and effective.json hold
    flood=N            print N MB of short lines
    noise              losses and step times that no other attempt has

STUB_JOURNAL names a file outside the run folder: each start, step and end of the last step appends a JSON line to it.
STUB_READY names a FIFO: its reader gets one line, when the trainer hangs or ends its last step.
The environment is written to `stub_env.json`, pids of grandchildren to `grandchildren.json`, in the current folder.
"""

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import yaml

SLEEP = [sys.executable, "-c", "import signal; signal.pause()"]
ATTEMPT = secrets.token_hex(8)
"""What tells this process from all others, for the journal."""
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()",
]


def read_words() -> dict[str, str]:
    """STUB as name -> value."""
    return {name: value for name, _, value in (word.partition("=") for word in os.environ.get("STUB", "").split())}


def log(text: str, letter: str = "I") -> None:
    """One line as absl writes it."""
    now = time.strftime("%m%d %H:%M:%S")
    print(f"{letter}{now}.000000 140040413186944 stub_trainer.py:1] {text}", file=sys.stderr, flush=True)


def announce(word: str) -> None:
    """Tell the test how far we are."""
    if fifo := os.environ.get("STUB_READY"):
        Path(fifo).write_text(f"{word} {os.getpid()}\n", encoding="ascii")


def is_first_attempt(mark: str) -> bool:
    """Whether no earlier trainer left this mark in the run folder; leaves it."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def note(event: str, **figures: float) -> None:
    """Append what really happened to the journal, in one write, before anybody is told of it."""
    if journal := os.environ.get("STUB_JOURNAL"):
        line = json.dumps({"run": Path.cwd().name, "attempt": ATTEMPT, "event": event, **figures}).encode() + b"\n"
        descriptor = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, line)
        os.close(descriptor)


def hang() -> None:
    """Never go on."""
    announce("hanging")
    while True:
        signal.pause()


def leave_grandchildren() -> None:
    """Start processes that would outlive us."""
    in_group = subprocess.Popen(STUBBORN, stdout=subprocess.PIPE)
    in_session = subprocess.Popen(STUBBORN, stdout=subprocess.PIPE, start_new_session=True)
    for child in (in_group, in_session):
        assert child.stdout is not None
        child.stdout.readline()
    spawn = f"import subprocess; print(subprocess.Popen({SLEEP!r}, start_new_session=True, stdout=-3).pid)"
    orphan = int(subprocess.check_output([sys.executable, "-c", spawn]))
    Path("grandchildren.json").write_text(json.dumps([in_group.pid, in_session.pid, orphan]), encoding="ascii")


def print_garbage() -> None:
    """Output that no log reader should be hurt by."""
    out = sys.stdout.buffer
    out.write(b"\xff\xfe\x00\x01 no text \x1b[31mred\x1b[0m\n")
    out.write(b"".join(b"downloading %d%%\r" % percent for percent in range(101)) + b"\n")
    out.write(b"x" * 3_000_000 + b"\n")
    out.write(b"\n\r\n[bold]not markup[/bold]\n")
    out.flush()


def print_config_error() -> None:
    """What MaxText 0.2.5 prints for a key that it does not have."""
    names = ", ".join(f"'key_number_{number}'" for number in range(900))
    message = f"'bogus_key' not in {names}"
    print(f"MAXTEXT CONFIG ERROR: ValueError: {message}", file=sys.stderr)
    raise ValueError(message)


def write_metrics(path: str, step: int, loss: float, words: dict[str, str], step_s: float) -> None:
    """One line as MaxText writes it: bare NaN, step as a float, truncated at step 0."""
    record = {
        "learning/loss": loss,
        "learning/total_weights": 0.0 if "empty_batch" in words else 128.0,
        "perf/step_time_seconds": step_s,
        "perf/per_device_tflops": 2.0 * step_s,
        "perf/per_device_tokens": 128.0,
        "step": float(step),
        "run_name": "stub",
        **json.loads(words.get("metrics", "{}")),
    }
    with Path(path).open("a", encoding="utf-8") as stream:
        if step == 0 or words.get("eval_at") == str(step):
            stream.truncate(0)
            stream.write(json.dumps({"eval/avg_loss": 1.0, "step": 0.0}) + "\n")
        stream.write(json.dumps(record) + "\n")


def train(config: dict[str, Any], words: dict[str, str]) -> None:
    """The loop."""
    length_s = float(words.get("step_s", "0.001"))
    note("start", steps=config["steps"])
    for step in range(int(words.get("resume_at", "0")), int(config["steps"])):
        if words.get("stop_at") == str(step):
            log("Training stopped: You may have run out of training data. Load failed.")
            return
        if words.get("quit_at") == str(step):
            return
        if words.get("fail_at") == str(step):
            raise ValueError(f"told to fail at step {step}")
        if words.get("oom_at") == str(step):
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 123456789 bytes.")
        if words.get("signal_at", "").startswith(f"{step}:"):
            os.kill(os.getpid(), signal.Signals[words["signal_at"].partition(":")[2]])
        if words.get("hang_at") == str(step):
            hang()
        if words.get("hang_once") == str(step) and is_first_attempt("hung"):
            hang()
        noise = random.random() / 10 if "noise" in words else 0.0
        step_s = length_s * (1 + noise)
        time.sleep(step_s)
        loss = float("nan") if "nan_at" in words and step >= int(words["nan_at"]) else 10.0 - step / 100 + noise
        note("step", step=step, loss=loss, step_time_s=step_s)
        if "silent_log" not in words:
            weights = 0 if "empty_batch" in words else 128
            log(
                f"completed step: {step}, seconds: {step_s:.3f}, TFLOP/s/device: 2.000, "
                f"Tokens/s/device: {128 / step_s:.3f}, total_weights: {weights}, loss: {loss:.3f}, lm_loss: {loss:.3f}"
            )
        if "no_metrics" not in words:
            write_metrics(config["metrics_file"], step, loss, words, step_s)
    note("end")


def main() -> int:
    """Do what STUB says; returns the exit code."""
    words = read_words()
    Path("stub_env.json").write_text(json.dumps(dict(os.environ)), encoding="utf-8")
    config = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))
    config |= {key: yaml.safe_load(value) for key, _, value in (word.partition("=") for word in sys.argv[2:])}
    if "ignore_sigterm" in words:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log("System Information: Jax Backend: cpu")
    log("Num_devices: 1, shape (1, 1)")
    log("Config param steps: 3")
    if "secret" in words:
        print(f"the secret is {os.environ[words['secret']]}", flush=True)
    if "garbage" in words:
        print_garbage()
    if "files" in words:
        for name in ("child.json", "effective.json"):
            Path(name).write_text(words["files"], encoding="utf-8")
    for _ in range(int(words.get("flood", "0"))):
        print("one of many short lines\n" * 41_666, end="", flush=True)
    if "grandchildren" in words:
        leave_grandchildren()
    if "crash_once" in words and is_first_attempt("crashed"):
        raise ValueError("told to crash once")
    if "config_error" in words:
        print_config_error()
    if "difference" in words:
        print("PRIMUS_HYDRA DIFFERENCE\n  steps: composed 5, MaxText would run 7", file=sys.stderr)
        return 3
    train(config, words)
    announce("trained")
    return int(words.get("exit", "0"))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, RuntimeError):
        traceback.print_exc()
        sys.exit(1)
