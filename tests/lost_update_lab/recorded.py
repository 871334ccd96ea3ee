"""What a recording holds, wherever the workers were."""

from __future__ import annotations

from collections.abc import Iterator

from lost_update_lab.memo.recording import Recording, Told


def all_told(recording: Recording) -> Iterator[Told]:
    seen, nodes = set(), list(recording.roots.values())
    while nodes:
        if (node := nodes.pop()) in seen:
            continue
        seen.add(node)
        for told in node.told.values():
            yield told
            nodes += [segment.node for segment in told.ways.values()]
