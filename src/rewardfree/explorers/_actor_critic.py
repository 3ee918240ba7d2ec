"""The one actor-critic update, shared by every explorer and by the DDPG planners.

An update is named steps in order: target values, (the caller's reward and weight), critics, actor, targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rewardfree.data.replay import Batch, ReplayBuffer
from rewardfree.errors import UserError
from rewardfree.interfaces import Metrics, Spec
from rewardfree.networks import Init, Net, Normed, apply, make_ensemble, make_net, member
from rewardfree.normalise import Moments, identity, refreshed, standardise

COMBINE: dict[str, Callable[..., Array]] = {
    "min": jnp.min,
    "mean": jnp.mean,
    "sum": jnp.sum,
    "own": lambda values, axis: values,
}


class Agent(NamedTuple):
    """All that the actor-critic learns."""

    actor: Net
    target_actor: Net | None
    """The slow copy of the actor, if it is asked for."""
    critics: Net
    targets: Net
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    seen: Moments
    """What the networks' observations are normalised with."""
    step: Int[Array, ""]


class Values(NamedTuple):
    """The N target critics at the ends of a batch of transitions."""

    here: Float[Array, "N B"]
    """T_i(s, a); not a number unless they were asked for."""
    next: Float[Array, "N B"]
    """T_i(s', a')."""
    next_action: Float[Array, "B A"]


@dataclass(frozen=True)
class ActorCritic:
    """DDPG with any number of critics; the fields are its hyper-parameters."""

    hidden: int = 256
    """Width of the hidden layers."""
    batch: int = 256
    """Transitions in a minibatch."""
    feature: int = 0
    """Width of the actor's first layer; 0 means `hidden`."""
    critics: int = 2
    """Number of critics N."""
    share: Literal["nothing", "norm", "trunk"] = "trunk"
    """What the critics share: nothing, the LayerNorm's affine map, or the trunk up to the tanh."""
    actor_init: Init = "orthogonal"
    """Initialisation of the actor."""
    critic_init: Init = "orthogonal"
    """Initialisation of the critics; `released` reads the fan off the wrong axis."""
    critic_norm: Normed = "first"
    """Hidden layers of the critics that have a LayerNorm."""
    bootstrap: Literal["min", "mean", "own"] = "min"
    """The target critics at the end of a window: the least, their mean, or each critic's own."""
    actor_objective: Literal["min", "mean", "sum"] = "min"
    """What the actor maximises over the critics."""
    trained: Literal["all", "cycle"] = "all"
    """Critics trained in an update: all of them, or only member t mod N."""
    optimiser: Literal["own", "joint"] = "own"
    """In a cycle: each member its own Adam, or one Adam over all, so that idle members drift on momentum."""
    averaged: Literal["all", "cycle"] = "all"
    """Target networks moved in an update: all of them, or only member t mod N."""
    tau: float = 0.01
    """Rate at which a target network follows its critic."""
    target_clip: float | None = None
    """Regression targets are clamped to [0, this]."""
    gamma: float = 0.99
    """Discount."""
    nstep: int = 3
    """Steps in a window: the discount is gamma^n and s' lies n steps on."""
    learning_rate: float = 1e-4
    """Adam's step size, for actor and critics."""
    noise: float = 0.2
    """Standard deviation of the noise on actions, in acting and in the update."""
    noise_clip: float = 0.3
    """Bound on the noise in the update (not in acting)."""
    actor_noise: bool = True
    """Whether the action that the actor's step judges is noisy too."""
    actor_every: int = 1
    """Critic steps per step of the actor and of the target networks."""
    target_actor: bool = False
    """Whether a' comes from a slow copy of the actor."""
    normalise: bool = False
    """Networks see observations with the data's mean and spread taken out, clipped to +-5."""

    def __post_init__(self) -> None:
        for name in ("hidden", "batch", "critics", "nstep", "actor_every"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.gamma <= 1:
            raise UserError(f"gamma must be between 0 and 1, not {self.gamma:g}")
        if self.trained == "cycle" and self.optimiser == "own" and self.share != "nothing":
            raise UserError("critics trained in turn with their own optimisers cannot share parameters")

    @property
    def critic_outputs(self) -> int:
        """1, or the skill's length: then a critic's value is its output times the skill."""
        return 1

    @property
    def critic_prior(self) -> float:
        """Scale of the fixed random network that is added to each critic; 0: none is."""
        return 0.0

    def init_agent(self, spec: Spec, key: PRNGKeyArray, skills: int = 0) -> Agent:
        key_actor, key_critics = jax.random.split(key)
        feature, view = self.feature or self.hidden, spec.observation + skills
        actor = make_net(key_actor, (view, feature, self.hidden, spec.action), self.actor_init)
        sizes = (view + spec.action, self.hidden, self.hidden, self.critic_outputs)
        critics = make_ensemble(
            key_critics,
            self.critics,
            sizes,
            self.critic_init,
            self.share,
            self.critic_norm,
            self.critic_prior,
        )
        adam = optax.adam(self.learning_rate)
        return Agent(
            actor=actor,
            target_actor=jax.tree.map(jnp.copy, actor) if self.target_actor else None,
            critics=critics,
            targets=jax.tree.map(jnp.copy, critics),
            actor_optimiser=adam.init(actor),
            critic_optimiser=jax.vmap(adam.init)(critics) if self._own_adams else adam.init(critics),
            seen=identity(spec.observation),
            step=jnp.int32(0),
        )

    @property
    def _own_adams(self) -> bool:
        """All members trained at once need no Adam of their own: Adam is elementwise."""
        return self.trained == "cycle" and self.optimiser == "own"

    def refresh(self, agent: Agent, replay: ReplayBuffer) -> Agent:
        """Look at the data's moments again, if it is time."""
        return agent._replace(seen=refreshed(agent.seen, replay)) if self.normalise else agent

    def mean_action(
        self, agent: Agent, actor: Net, observation: Float[Array, "B O"], skill: Float[Array, "B K"]
    ) -> Float[Array, "B A"]:
        """tanh(mu(s, z))."""
        return jnp.tanh(actor(_view(agent, observation, skill)))

    def noisy(self, action: Float[Array, "B A"], key: PRNGKeyArray) -> Float[Array, "B A"]:
        """clip(a + clip(noise)). The gradient passes the outer clip, or saturated actions stay so."""
        noise = jnp.clip(self.noise * jax.random.normal(key, action.shape), -self.noise_clip, self.noise_clip)
        clipped = jnp.clip(action + noise, -1.0, 1.0)
        return action + jax.lax.stop_gradient(clipped - action)

    def target_values(self, agent: Agent, batch: Batch, key: PRNGKeyArray, here: bool) -> Values:
        """The target critics at (s', a') and, if asked for, at (s, a): one stacked batch of 2B."""
        actor = agent.actor if agent.target_actor is None else agent.target_actor
        next_action = self.noisy(self.mean_action(agent, actor, batch.next_observation, batch.skill), key)
        observation, action, skill = batch.next_observation, next_action, batch.skill
        if here:
            observation = jnp.concatenate([batch.observation, observation])
            action = jnp.concatenate([batch.action, action])
            skill = jnp.concatenate([skill, skill])
        values = _values(agent.targets, agent, observation, skill, action)
        split = batch.action.shape[0] if here else 0
        return Values(values[:, :split], values[:, split:], next_action)

    def mean_value(
        self, agent: Agent, observation: Float[Array, "B O"], action: Float[Array, "B A"]
    ) -> Float[Array, " B"]:
        """The mean of the target critics at (s, a), for the skill 0."""
        skills = agent.actor.w1.shape[-2] - observation.shape[-1]
        nothing = jnp.zeros((*action.shape[:-1], skills))
        return _values(agent.targets, agent, observation, nothing, action).mean(axis=0)

    def improve(
        self,
        agent: Agent,
        batch: Batch,
        reward: Float[Array, " B"],
        weight: Float[Array, " B"],
        values: Values,
        key: PRNGKeyArray,
    ) -> tuple[Agent, Metrics]:
        """Weighted regression of the critics on the target, a step of the actor, the targets' average."""
        combine = COMBINE[self.bootstrap]
        target = reward + batch.discount * combine(values.next, axis=0)
        if self.target_clip is not None:
            target = jnp.clip(target, 0.0, self.target_clip)
        turn = agent.step % self.critics
        critics, critic_optimiser, loss, q = self._critic_step(agent, batch, target, weight, turn)
        agent = agent._replace(critics=critics, critic_optimiser=critic_optimiser)

        def follow(agent: Agent) -> tuple[Agent, Array]:
            actor, actor_optimiser, objective = self._actor_step(agent, batch, key)
            agent = agent._replace(actor=actor, actor_optimiser=actor_optimiser)
            slow = agent.target_actor and jax.tree.map(self._mix, agent.target_actor, actor)
            return agent._replace(targets=self._average(agent, turn), target_actor=slow), objective

        if self.actor_every == 1:
            agent, objective = follow(agent)
        else:
            due = agent.step % self.actor_every == 0
            agent, objective = jax.lax.cond(due, follow, lambda agent: (agent, jnp.float32(0)), agent)
            objective *= self.actor_every  # the mean over updates is that over the actor's steps
        agent = agent._replace(step=agent.step + 1)
        return agent, {"critic_loss": loss, "q": q, "target": target.mean(), "actor_objective": objective}

    def _critic_step(
        self, agent: Agent, batch: Batch, target: Array, weight: Array, turn: Array
    ) -> tuple[Net, optax.OptState, Array, Array]:
        """One Adam step on mean_B weight * (Q_i - target)^2, summed over the members that are trained."""
        if self.trained == "cycle" and target.ndim == 2:
            target = target[turn]

        def loss(critics: Net) -> tuple[Array, Array]:
            q = _values(critics, agent, batch.observation, batch.skill, batch.action)
            return jnp.sum(jnp.mean(weight * jnp.square(q - target), axis=1)), q.mean()

        adam = optax.adam(self.learning_rate)
        critics, state = agent.critics, agent.critic_optimiser
        if self.trained == "all":
            (value, q), gradient = jax.value_and_grad(loss, has_aux=True)(critics)
            step, state = adam.update(gradient, state)
            return optax.apply_updates(critics, step), state, value, q
        one = jax.tree.map(lambda leaf: leaf[None], member(critics, turn))
        (value, q), gradient = jax.value_and_grad(loss, has_aux=True)(one)
        if self.optimiser == "joint":  # zero gradients for the others, whose moments still move them
            spread = jax.tree.map(lambda full, g: _put(jnp.zeros_like(full), g[0], turn), critics, gradient)
            step, state = adam.update(spread, state)
            return optax.apply_updates(critics, step), state, value, q
        step, own = adam.update(_first(gradient), jax.tree.map(lambda leaf: leaf[turn], state))
        moved = optax.apply_updates(_first(one), step)
        put = partial(jax.tree.map, lambda full, new: _put(full, new, turn))
        return put(critics, moved), put(state, own), value, q

    def _actor_step(self, agent: Agent, batch: Batch, key: PRNGKeyArray) -> tuple[Net, optax.OptState, Array]:
        """One Adam step up Q(s, pi(s)), differentiated with respect to the actor only."""
        combine = COMBINE[self.actor_objective]

        def loss(actor: Net) -> tuple[Array, Array]:
            mean = self.mean_action(agent, actor, batch.observation, batch.skill)
            action = self.noisy(mean, key) if self.actor_noise else mean
            q = combine(_values(agent.critics, agent, batch.observation, batch.skill, action), axis=0)
            return self.actor_loss(q, mean, batch), q.mean()

        (_, objective), gradient = jax.value_and_grad(loss, has_aux=True)(agent.actor)
        step, state = optax.adam(self.learning_rate).update(gradient, agent.actor_optimiser)
        return optax.apply_updates(agent.actor, step), state, objective

    def actor_loss(
        self, q: Float[Array, " B"], action: Float[Array, "B A"], batch: Batch
    ) -> Float[Array, ""]:
        """What the actor's step descends, from Q(s, pi(s)) and pi(s) without noise."""
        return -jnp.mean(q)

    def _average(self, agent: Agent, turn: Array) -> Net:
        """targets <- (1 - tau) targets + tau critics."""
        if self.averaged == "all":
            return jax.tree.map(self._mix, agent.targets, agent.critics)
        moved = jax.tree.map(self._mix, member(agent.targets, turn), member(agent.critics, turn))
        return jax.tree.map(lambda full, new: _put(full, new, turn), agent.targets, moved)

    def _mix(self, slow: Array, fast: Array) -> Array:
        return slow + self.tau * (fast - slow)


def regression_weight(
    sigma: Float[Array, " B"], floor: float, ceiling: float | None, mean_one: bool
) -> Float[Array, " B"]:
    """1 / sigma^2 with sigma between its bounds, scaled to mean 1 if asked for."""
    weight = jnp.clip(sigma, floor, ceiling) ** -2
    return weight / weight.mean() if mean_one else weight


def _view(agent: Agent, observation: Float[Array, "B O"], skill: Float[Array, "B K"]) -> Array:
    """What the networks see of a state: the normalised observation, then the skill."""
    return jnp.concatenate([standardise(agent.seen, observation), skill], axis=-1)


def _values(
    critics: Net,
    agent: Agent,
    observation: Float[Array, "B O"],
    skill: Float[Array, "B K"],
    action: Float[Array, "B A"],
) -> Float[Array, "N B"]:
    """Each critic's value; a critic with an output per entry of the skill is multiplied with the skill."""
    out = apply(critics, jnp.concatenate([_view(agent, observation, skill), action], axis=-1))
    return out[..., 0] if out.shape[-1] == 1 else jnp.sum(out * skill, axis=-1)


def _put(full: Array, new: Array, turn: Array) -> Array:
    """Write one member's leaf back; a shared leaf (leading axis 1) has one place only."""
    return full.at[turn if full.shape[0] > 1 else 0].set(new)


def _first(tree: Net) -> Net:
    return jax.tree.map(lambda leaf: leaf[0], tree)
