"""Explore an environment once without a reward, keep the data, then solve any reward from it, offline."""

from rewardfree.data.dataset import Dataset, LabelledDataset
from rewardfree.data.transitions import Transitions
from rewardfree.errors import UserError
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.explorers.aps import Aps
from rewardfree.explorers.apt import Apt
from rewardfree.explorers.diayn import Diayn
from rewardfree.explorers.disagreement import Disagreement
from rewardfree.explorers.gfa_rfe import GfaRfe
from rewardfree.explorers.icm import Icm
from rewardfree.explorers.random import Random
from rewardfree.explorers.rnd import Rnd
from rewardfree.explorers.smm import Smm
from rewardfree.oracles.elliptical import Elliptical
from rewardfree.oracles.elliptical_inverse import EllipticalInverse
from rewardfree.oracles.q_ensemble import QEnsemble
from rewardfree.oracles.random_returns import RandomReturns
from rewardfree.oracles.random_targets import RandomTargets
from rewardfree.pipeline import Evaluation, Plan, evaluate, explore, inspect, label, plan
from rewardfree.planners.ddpg import Ddpg
from rewardfree.planners.ddpg_ensemble import DdpgEnsemble
from rewardfree.planners.ddpg_twin import DdpgTwin
from rewardfree.planners.td3 import Td3
from rewardfree.rewards.tolerance import tolerance
from rewardfree.sizes import SIZES, resize

__all__ = [
    "SIZES",
    "ActorCriticExplorer",
    "Aps",
    "Apt",
    "Dataset",
    "Ddpg",
    "DdpgEnsemble",
    "DdpgTwin",
    "Diayn",
    "Disagreement",
    "Elliptical",
    "EllipticalInverse",
    "Evaluation",
    "GfaRfe",
    "Icm",
    "LabelledDataset",
    "Plan",
    "QEnsemble",
    "Random",
    "RandomReturns",
    "RandomTargets",
    "Rnd",
    "Smm",
    "Td3",
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
