"""Which process plays which episodes, and what all of them know afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from mappa_rl.evaluation.evaluate import play_chunk
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.policy.base import Sampling
from mappa_rl.rollout.collector import Collector, Episode, EpisodeSpec, rows_of
from mappa_rl.rollout.rewards import mix_outcome
from mappa_rl.rollout.row import Row
from mappa_rl.training.facts import EpisodeFacts, facts_of
from mappa_rl.training.processes import Processes

_T = TypeVar("_T")


def chunks(total: int, concurrency: int, processes: Processes) -> list[range]:
    """Return the episodes that this process plays, those of each range at the same time.

    Episodes that are played together are sampled together, so a result depends on how they are cut into ranges, and
    not on who plays a range. Where `concurrency` is at most the episodes per process, the ranges, and with them the
    texts, are those of a run in one process.

    Args:
        total: Episodes that there are.
        concurrency: Most episodes of a range.
        processes: Ranges are dealt out one by one.
    """
    size = max(1, min(concurrency, -(-total // processes.count)))
    ranges = [range(start, min(start + size, total)) for start in range(0, total, size)]
    return ranges[processes.rank :: processes.count]


@dataclass(frozen=True, slots=True)
class Experience:
    """What a training step has to learn from."""

    rows: list[Row]
    """This process's, with the rewards to learn from; `Row.episode` is the episode's place in the step."""
    facts: list[EpisodeFacts]
    """Of the episodes of all processes, by place."""
    records: list[EpisodeRecord]
    """The first few episodes of the step, of all processes."""


def play(
    collector: Collector,
    specs: Sequence[EpisodeSpec],
    sampling: Sampling,
    *,
    seed: int,
    outcome_weight: float | None,
    keep: int,
    processes: Processes,
) -> Experience:
    """Play the episodes of a training step, each process its share.

    Args:
        collector: Plays on the training split.
        specs: All episodes of the step.
        sampling: How the policy samples.
        seed: The step's.
        outcome_weight: Of the outcome in a mixed reward; None: the verdict is the reward.
        keep: How many records to return.
        processes: Who plays.

    Raises:
        MappaError: In every process, if playing failed in one.
    """
    places: list[int] = []
    episodes: list[Episode] = []

    def play_mine() -> None:
        for part in chunks(len(specs), collector.concurrency, processes):
            episodes.extend(collector.collect([specs[i] for i in part], sampling, seed=seed, first=part.start))
            places.extend(part)

    processes.each(play_mine)
    judged = rows_of(episodes)
    rows = judged if outcome_weight is None else mix_outcome(judged, episodes, outcome_weight)
    facts, records = {}, {}
    for number, (place, episode) in enumerate(zip(places, episodes, strict=True)):
        pairs = [(j, r) for j, r in zip(judged, rows, strict=True) if r.episode == number]
        facts[place] = facts_of(place, episode, [j for j, _ in pairs], [r for _, r in pairs])
        if place < keep:
            records[place] = EpisodeRecord.of(episode)
    return Experience(
        [replace(row, episode=places[row.episode]) for row in rows],
        _by_place(processes.gather(facts)),
        _by_place(processes.gather(records)),
    )


def play_evaluation(
    collector: Collector, specs: Sequence[EpisodeSpec], sampling: Sampling, *, seed: int, processes: Processes
) -> list[EpisodeRecord]:
    """Play an evaluation together and return all of its records, in order, in every process.

    Raises:
        MappaError: In every process, if playing failed in one.
    """

    def mine() -> dict[int, EpisodeRecord]:
        records: dict[int, EpisodeRecord] = {}
        for part in chunks(len(specs), collector.concurrency, processes):
            chosen = [specs[i] for i in part]
            made = play_chunk(collector, chosen, sampling, seed=seed, start=part.start)
            records |= dict(zip(part, made, strict=True))
        return records

    return _by_place(processes.gather(processes.each(mine)))


def _by_place(parts: Sequence[Mapping[int, _T]]) -> list[_T]:
    together = {place: value for part in parts for place, value in part.items()}
    return [together[place] for place in sorted(together)]
