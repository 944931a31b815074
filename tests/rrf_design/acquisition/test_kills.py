"""At least 200 processes killed with SIGKILL at random moments; see `killing.py` for what is
checked after each. And runs killed while their calls are being repeated: `attempt_killing.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

KILLS = 200


def killed(program: str, *arguments: str) -> Any:
    # One thread per child: it is forked, and a pool of numeric threads would not survive that.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(program)), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_killed_runs_keep_every_promise(folder: Path) -> None:
    assert killed("killing.py", str(folder), str(KILLS), "20260")["kills"] >= KILLS


def test_a_killed_run_knows_how_often_it_had_called(folder: Path) -> None:
    """Every attempt is in the books, and those of all sessions together are no more than one
    session may make.
    """
    found = killed("attempt_killing.py", str(folder))
    assert found["1"] == {"kills": 12, "seen": [4, 4, 4], "answers": 0}  # killed at every request: given up in the end
    assert found["2"]["answers"] == 3  # two are cut, one or two are killed, and the last is answered
    assert sum(found["limited"]["seen"]) == 7
