"""The demo: a real checkpoint, from a package, gives the eager model's numbers."""

import subprocess
import sys

from support import ENVIRONMENT, FERRY, ROOT


def test_demo(tmp_path):
    command = [sys.executable, ROOT / "tools/demo.py", FERRY, tmp_path / "demo"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": ok") == 2
