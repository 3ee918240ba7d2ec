"""The exact track: Algorithm 1 as the paper states it, its peers, and MDPs whose optimum is known."""

from rewardfree.exact.classes.finite import Finite
from rewardfree.exact.classes.generalised_linear import GeneralisedLinear
from rewardfree.exact.classes.linear import Linear
from rewardfree.exact.classes.tabular import Tabular
from rewardfree.exact.compare import Comparison, compare, plot
from rewardfree.exact.explore import Until, explore, explore_until
from rewardfree.exact.gfa_rfe import GfaRfe
from rewardfree.exact.interfaces import Algorithm, FunctionClass, Learner, Plan, Statistics
from rewardfree.exact.mdp import Mdp, Problem
from rewardfree.exact.mdps import from_gymnasium, load

__all__ = [
    "Algorithm",
    "Comparison",
    "Finite",
    "FunctionClass",
    "GeneralisedLinear",
    "GfaRfe",
    "Learner",
    "Linear",
    "Mdp",
    "Plan",
    "Problem",
    "Statistics",
    "Tabular",
    "Until",
    "compare",
    "explore",
    "explore_until",
    "from_gymnasium",
    "load",
    "plot",
]
