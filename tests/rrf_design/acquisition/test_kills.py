"""At least 200 processes killed with SIGKILL at random moments; see `killing.py` for what is checked after each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

KILLS = 200


def test_killed_runs_keep_every_promise(folder: Path) -> None:
    program = Path(__file__).with_name("killing.py")
    # One thread per child: it is forked, and a pool of numeric threads would not survive that.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(program), str(folder), str(KILLS), "20260"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["kills"] >= KILLS
