"""An exploration on disk: every transition, and what it takes to rebuild the learner from them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int

from rewardfree import registry
from rewardfree.data import files
from rewardfree.errors import UserError, unknown
from rewardfree.exact.compare import all_rewards
from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Episode, Mdp, Purpose, Streams

_MOST_RANDOM = 1000


class Record:
    """Collects the episodes of one seed while exploring (as the `watch` of `explore`), or reads them back."""

    def __init__(self, mdp: str, horizon: int | None, algorithm: Algorithm, budget: int, seed: int) -> None:
        self.mdp, self.horizon = mdp, horizon
        self.algorithm, self.budget, self.seed = algorithm, budget, seed
        self._episodes: list[Episode] = []

    @property
    def episodes(self) -> int:
        """Episodes so far."""
        return len(self._episodes)

    def __call__(self, k: int, learner: Learner, episode: Episode) -> None:
        self._episodes.append(episode)

    def write(self, folder: Path, mdp: Mdp) -> None:
        """Write the run. What names the data is written last, so a run is whole or it is not there."""
        stacked = {
            name: np.concatenate([getattr(episode, name) for episode in self._episodes]).astype(np.int32)
            for name in Episode._fields
        }
        _, checksum = files.write_arrays(folder / "episodes.safetensors", stacked)
        config = {
            "mdp": self.mdp,
            "horizon": self.horizon,
            "algorithm": registry.to_json(self.algorithm),
            "budget": self.budget,
            "seed": self.seed,
            "episodes": self.episodes,
            "checksums": {"episodes": checksum, "transitions": _checksum(mdp)},
        }
        files.write_json(folder / "run.json", config)

    @classmethod
    def read(cls, folder: Path) -> tuple[Self, dict[str, Any]]:
        """A run, and the checksums that it was written with."""
        config = files.read_json(folder / "run.json")
        try:
            algorithm = registry.from_json("algorithm", config["algorithm"])
            record = cls(config["mdp"], config["horizon"], algorithm, config["budget"], config["seed"])
            checksums = config["checksums"]
            count = int(config["episodes"])
        except (KeyError, TypeError) as error:
            raise UserError(f"{folder} is not a run of `rewardfree exact explore`: {error}") from error
        path = folder / "episodes.safetensors"
        arrays = files.map_arrays(path)
        if files.sha256(path) != checksums["episodes"]:
            raise UserError(f"{path} is damaged: its checksum is not the one in run.json; explore again")
        rows = [arrays[name].astype(np.int64) for name in Episode._fields]
        record._episodes = [Episode(*(row[k : k + 1] for row in rows)) for k in range(count)]
        return record, checksums

    def replay(self, mdp: Mdp, checksums: dict[str, Any]) -> Learner:
        """The learner, with everything it had learned: it observes the episodes again."""
        if checksums.get("transitions") != _checksum(mdp):
            raise UserError(f"{self.mdp} is not what it was when it was explored; explore it again")
        learner = self.algorithm.start(mdp.problem, Streams([self.seed], Purpose.POLICY), self.budget)
        for episode in self._episodes:
            learner.observe(episode)
        return learner


def reward_named(mdp: Mdp, name: str) -> Float[np.ndarray, "H S A"]:
    """A reward of the MDP's own, reach-STATE (be there at the last stage), random-NUMBER, or a .npy file."""
    if name in mdp.rewards:
        return mdp.rewards[name]
    if name.endswith(".npy"):
        return mdp.check(_load(Path(name)))
    match = re.fullmatch(r"(reach|random)-(\d{1,9})", name)
    S = mdp.problem.states
    if match is None:
        raise unknown("reward", name, mdp.rewards, "; or reach-STATE, random-NUMBER, or a .npy file")
    number = int(match[2])
    if match[1] == "reach":
        if number >= S:
            raise UserError(f"there is no state {number} to reach; {mdp.name} has states 0 to {S - 1}")
        return all_rewards(mdp, dense=0)[number]
    if number >= _MOST_RANDOM:
        raise UserError(f"random rewards are numbered 0 to {_MOST_RANDOM - 1}")
    return all_rewards(mdp, dense=number + 1)[-1]


def write_policy(path: Path, policy: Int[np.ndarray, "H S"]) -> None:
    """Write the action of every stage and state."""
    files.write_arrays(path, {"policy": policy.astype(np.int32)})


def _load(path: Path) -> np.ndarray:
    try:
        found = np.load(path, allow_pickle=False)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UserError(f"{path} is not a .npy file of plain numbers: {error}") from error
    if not isinstance(found, np.ndarray):
        raise UserError(f"{path} holds several arrays; a reward is one, in a .npy file")
    return found


def _checksum(mdp: Mdp) -> str:
    digest = hashlib.sha256(str(mdp.transitions.shape).encode())
    for h in range(mdp.problem.horizon if mdp.transitions.strides[0] else 1):
        digest.update(mdp.transitions[h].tobytes())
    return digest.hexdigest()
