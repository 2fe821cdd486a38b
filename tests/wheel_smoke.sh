#!/usr/bin/env bash
# wheel_smoke.sh [PYTHON]   Build the wheel, install it into an empty environment, and use it from
# an empty folder. Only this notices a checkout without symlinks, or a file that is no package data.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(command -v "${1:-python3}")
case $python in /*) ;; *) python=$PWD/$python ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$root/constraints.txt" "$work" # pip splits the variable at spaces, and $root may have some
export PIP_CONSTRAINT=$work/constraints.txt PIP_BUILD_CONSTRAINT=$work/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK=1

# a copy: an old build folder would put files into the wheel that are no longer there
mkdir "$work/src" "$work/empty"
tar -C "$root" -c --exclude='./.*' --exclude=./build --exclude=./dist --exclude='*.egg-info' \
  --exclude=__pycache__ . | tar -C "$work/src" -x
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$work/dist" "$work/src"
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --no-compile "$work"/dist/teller_rca-*.whl

cd "$work/empty"
"$work/venv/bin/python" - "$root/src/teller" <<'PYTHON'
import os
import sys
from importlib.resources import files
from pathlib import Path

import teller.graph.queries

there = Path(str(files("teller")))
assert "site-packages" in str(there), there
wanted = {
    (Path(folder) / name).relative_to(sys.argv[1])
    for folder, _, names in os.walk(sys.argv[1], followlinks=True)
    for name in names
    if not name.startswith(".") and "__pycache__" not in folder
}
missing = sorted(str(p) for p in wanted if p.suffix != ".md" and not (there / p).is_file())
if missing:
    sys.exit("not in the wheel (see package-data in pyproject.toml): " + ", ".join(missing))
for kind in ("graph/queries/*.cypher", "models/rules/*.toml", "demo/run/*.gz", "**/*.html"):
    assert any(there.glob(kind)), f"no {kind} in the wheel"
PYTHON

"$work/venv/bin/teller" rules list >rules.txt
test -s rules.txt
status=0
"$work/venv/bin/teller" demo --workspace "$work/workspace" >demo.txt || status=$?
cat demo.txt
test "$status" -eq 1 # the demo run has a fault
grep -qF layers.2.self_attn.o_proj demo.txt
test -s "$work/workspace/demo-report.html"
echo "the wheel works: $(wc -l <rules.txt) lines of rules, demo diagnosed"
