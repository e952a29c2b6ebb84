#!/usr/bin/env bash
# Print the path of a Python 3.12 that can make virtual environments; the first argument, if any, is the one to take.
# Exit code 2 where there is none. Uses nothing but the shell's own commands.
set -u

is_usable() {
    "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

if [ -n "${1:-}" ]; then
    candidates=("$1")
else
    # The version that constraints.txt was made with first; python3 last, since it may be newer than what was tested.
    candidates=(python3.12 "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/3.12*/bin/python)
    if command -v uv >/dev/null; then
        candidates+=("$(uv python find --no-python-downloads 3.12 2>/dev/null)")
    fi
    candidates+=(python3)
fi

for candidate in "${candidates[@]}"; do
    if [ -n "$candidate" ] && is_usable "$candidate"; then
        "$candidate" -c 'import sys; print(sys.executable)'
        exit 0
    fi
done

printf '%s\n' >&2 \
    "No usable Python was found; looked at: ${candidates[*]}." \
    "  MaxText needs Python 3.12 or newer, with the modules venv and ensurepip; this project is tested with 3.12." \
    "  Install one of: pyenv install 3.12 | uv python install 3.12 | apt-get install python3.12 python3.12-venv," \
    "  or name one that you have: make demo PYTHON=/path/to/python3.12"
exit 2
