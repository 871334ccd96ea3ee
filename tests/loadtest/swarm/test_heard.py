"""The health check of a Locust worker. On a real master: tests/test_deployment.py."""

from __future__ import annotations

import pytest

from loadtest.swarm.heard import heard, main
from lost_update_lab.embedded.ports import free_port

MINE = {"id": "box_0a1b", "state": "ready"}


@pytest.mark.parametrize(
    ("workers", "told"),
    [
        ([], False),
        ([MINE], True),
        ([MINE | {"state": "missing"}], False),  # until it is heard again
        ([MINE | {"id": "boxes_0a1b"}], False),  # another host's
        ([MINE | {"state": "missing"}, MINE | {"id": "box_2c3d"}], True),  # the one before a restart
    ],
)
def test_only_a_worker_of_this_host_that_is_heard_now_counts(
    workers: list[dict[str, str]], told: bool
) -> None:
    assert heard(workers, "box") is told


def test_a_master_that_does_not_answer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    master = f"http://127.0.0.1:{free_port()}"
    assert main(master) == 1
    assert capsys.readouterr().out.startswith(f"{master}: ")
