"""The checkpoints that make_*.py write, one folder per case: configurations that the fixtures do not have. They are
made once and kept in build/conformance until the scripts change."""

import subprocess
import sys
from pathlib import Path

import support
import transformers

HERE = Path(__file__).parent
PARTS = {"decoders": 2, "encoders": 1, "experts": 1, "gpt": 1, "multimodal": 1, "seq2seq": 1, "state_space": 1,
         "vision": 1}  # fmt: skip
SHARED = (HERE / "checkpoints.py", HERE / "released.json")
SCRIPTS = {HERE / f"make_{name}.py": parts for name, parts in PARTS.items()}


def make_checkpoints(directory: Path) -> None:
    """One folder per case."""
    commands = [
        [sys.executable, script, directory, f"{part}/{parts}"]
        for script, parts in SCRIPTS.items()
        for part in range(1, parts + 1)
    ]
    running = [subprocess.Popen(command) for command in commands]
    statuses = [process.wait() for process in running]
    assert not any(statuses), f"{commands}: {statuses}"


CHECKPOINTS = support.make_once(
    "variants", (*SHARED, *SCRIPTS), make_checkpoints, transformers.__version__.encode()
)
