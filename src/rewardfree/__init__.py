"""Explore an environment once without a reward, keep the data, then solve any reward from it, offline."""

from rewardfree.data.dataset import Dataset, LabelledDataset
from rewardfree.data.transitions import Transitions
from rewardfree.errors import UserError
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.explorers.gfa_rfe import GfaRfe
from rewardfree.explorers.random import Random
from rewardfree.oracles.elliptical import Elliptical
from rewardfree.oracles.q_ensemble import QEnsemble
from rewardfree.pipeline import Evaluation, Plan, evaluate, explore, inspect, label, plan
from rewardfree.planners.ddpg import Ddpg
from rewardfree.planners.ddpg_twin import DdpgTwin
from rewardfree.rewards.tolerance import tolerance
from rewardfree.sizes import SIZES, resize

__all__ = [
    "SIZES",
    "ActorCriticExplorer",
    "Dataset",
    "Ddpg",
    "DdpgTwin",
    "Elliptical",
    "Evaluation",
    "GfaRfe",
    "LabelledDataset",
    "Plan",
    "QEnsemble",
    "Random",
    "Transitions",
    "UserError",
    "evaluate",
    "explore",
    "inspect",
    "label",
    "plan",
    "resize",
    "tolerance",
]
