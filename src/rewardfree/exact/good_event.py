"""The inequalities of the proof, checked where the transitions are known."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from rewardfree.exact.compare import all_rewards, reachable
from rewardfree.exact.gfa_rfe import GfaRfeLearner
from rewardfree.exact.mdp import Mdp

_TOLERANCE = 1e-9


def good_event(mdp: Mdp, learner: GfaRfeLearner, visited: Bool[np.ndarray, "H S A"]) -> dict[str, bool]:
    """Which of the claims hold for what a learner of one seed has seen.

    At scale 1 all do with probability 1 - delta. V_k are the exploration's values, V^ the planning's, b the
    planning bonus; claims about rewards are checked for all of `all_rewards`, on the states that can be
    reached: elsewhere a reward may total more than 1.
    """
    problem = mdp.problem
    D, f, Q = (array[0] for array in learner.sweep())
    r = learner.beta * D
    V = np.concatenate([Q.max(axis=-1), np.zeros((1, problem.states))])
    target = np.stack([r[h] + mdp.expectation(h, V[h + 1]) for h in range(problem.horizon)])  # T_h V_{h+1}
    rewards = all_rewards(mdp, dense=3)
    plan, b = learner.plan(rewards), learner.planning_bonus()
    V_hat, _ = learner.values(rewards[None], b)
    best, actual = mdp.optimal(rewards).V, mdp.value(plan.policy[0], rewards)
    certificate = learner.certificate()[0]
    once, twice = (problem.mean_start(mdp.optimal(c * b[0], cap=1).V[0]) for c in (1, 2))
    gap = problem.mean_start(best[:, 0] - actual[:, 0])
    seen = reachable(mdp).any(axis=-1)  # (H, S)
    assert plan.bound is not None

    def below(small: np.ndarray, large: np.ndarray) -> bool:
        return bool(np.all(small <= large + _TOLERANCE))

    return {
        "|f - T V| <= beta D": below(np.abs(f - target)[visited], r[visited]),
        "V_k >= V~*(r_k)": below(mdp.optimal(r, cap=1).V, V[:-1]),
        "V^ >= V*": below(best[:, seen], V_hat[0][:, seen]),
        "V^ <= V* + V_k": below(V_hat[0][:, seen], (best + V[:-1])[:, seen]),
        "V^ - V^pi <= V~*(2b)": below(problem.mean_start(V_hat[0, :, 0] - actual[:, 0]), twice),
        "V~*(2b) <= 2 V~*(b)": below(twice, 2 * once),
        "2 V~*(b) <= certificate": below(np.minimum(2 * once, 1), certificate),
        "V* - V^pi <= bound": below(gap, plan.bound[0]),
        "bound <= certificate": below(plan.bound[0], certificate),
    }
