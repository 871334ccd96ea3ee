"""`manage.py` by a Python that has not got the lab's requirements."""

import subprocess
import sys

from tests.test_house import ROOT


def test_without_django_it_says_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-S", str(ROOT / "manage.py"), "check"],  # -S: nothing that was installed
        env={},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "`make install`, then `. .venv/bin/activate`" in done.stderr
    assert "Traceback" not in done.stderr
