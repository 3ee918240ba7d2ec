"""How close an update comes to the machine: python -m benchmarks.update.

Prints, in one run, the machine's rate at a 1024^3 matrix product, and for every preset of GFA-RFE at
`paper` and `compact`: the FLOPs one update needs, its time, and the share of the matrix product's rate that
it reaches. Then the same for every other explorer and every planner at `compact`, with the FLOPs that its
update does, what sampling costs, what exploring costs beyond its updates, and whether four tasks planned in
one program are faster than one after the other.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxprs_in_params

import rewardfree as rf
from rewardfree import registry
from rewardfree.data.dataset import Recorder
from rewardfree.data.replay import ReplayBuffer, sample
from rewardfree.explorers._actor_critic import Agent
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.interfaces import Domain, Explorer, Spec
from rewardfree.pipeline import make_domain
from rewardfree.planners._ddpg import DdpgFamily
from rewardfree.sizes import SizeName

DOMAIN = "walker"
ROUNDS = 5
EXPLORATIONS = 3
UPDATES: dict[SizeName, int] = {"paper": 2, "compact": 50}


def needed_flops(explorer: rf.GfaRfe, spec: Spec) -> float:
    """Multiplications and additions in the matrix products of one update that cannot be left out."""
    batch, hidden, members = explorer.batch, explorer.hidden, explorer.critics
    feature = explorer.feature or hidden
    view = spec.observation + explorer.skill_size(spec)
    inputs = view + spec.action
    critic = 2 * batch * (inputs * hidden + hidden * hidden + hidden)  # one member, forward
    actor = 2 * batch * (view * feature + feature * hidden + hidden * spec.action)
    targets = members * critic * (2 if explorer.needs_values_here else 1)  # (s, a) and (s', a')
    trained = 3 * critic * (1 if explorer.trained == "cycle" else members)  # forward and backward
    policy = 2 * members * critic + 4 * actor  # critics forward, gradient to the action; actor at s' and s
    oracle = 0
    if isinstance(explorer.oracle, rf.Elliptical):
        d = explorer.oracle.features
        oracle = 2 * batch * ((spec.observation + spec.action) * d + d * d)  # phi, and norm(C^-1 phi)
    return targets + trained + policy + oracle


def counted_flops(update: Callable[..., Any], *inputs: Any) -> float:
    """Multiplications and additions in the matrix products of one update as it is traced."""
    return _products(jax.make_jaxpr(update)(*inputs).jaxpr)


def _products(jaxpr: Any) -> float:
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            inner = np.prod([equation.invars[0].aval.shape[axis] for axis in contracted])
            total += 2 * inner * np.prod(equation.outvars[0].aval.shape)
        total += sum(_products(inner) for inner in jaxprs_in_params(equation.params))
    return float(total)


def seconds(function: Callable[[], Any]) -> float:
    """Wall time of a call, results awaited."""
    start = time.perf_counter()
    _await(function())
    return time.perf_counter() - start


def _await(value: Any) -> None:
    for leaf in jax.tree.leaves(value):
        leaf.block_until_ready()


def gemm() -> Callable[[], Any]:
    """A 1024^3 matrix product, repeated."""
    a = jax.random.normal(jax.random.PRNGKey(0), (1024, 1024))
    product = jax.jit(lambda a: a @ a)

    def run() -> Any:
        for _ in range(10):
            result = product(a)
        return result

    run()
    return run


def collected(simulator: Domain, episodes: int, explorer: Explorer | None = None) -> ReplayBuffer:
    """A replay of random episodes, with random skills if the explorer has any."""
    skills = 0 if explorer is None else explorer.skill_size(simulator.spec)
    buffer = ReplayBuffer(simulator.spec, episodes * simulator.spec.episode_length, 3, 0.99, skills)
    rng = np.random.default_rng(0)
    for seed in range(episodes):
        recorder = Recorder(simulator.reset(seed))
        for _ in range(simulator.spec.episode_length):
            action = rng.uniform(-1, 1, simulator.spec.action)
            recorder.add(action, simulator.step(action), rng.uniform(size=skills).astype(np.float32))
        buffer.append(recorder.arrays())
    return buffer


def measure_update(
    explorer: ActorCriticExplorer, updates: int, buffer: ReplayBuffer, spec: Spec
) -> dict[str, float]:
    """One update of an explorer, beside the machine's rate."""
    state = explorer.absorb(explorer.init(spec, jax.random.PRNGKey(0)), buffer)
    if isinstance(explorer, rf.GfaRfe):
        flops = needed_flops(explorer, spec)
    else:
        flops = counted_flops(explorer._one_update, buffer.replay, state, jax.random.PRNGKey(0))

    def update() -> Any:
        nonlocal state
        state, _ = explorer.update(state, buffer.replay, jax.random.PRNGKey(1), updates)
        return state

    return measure(update, updates, flops)


def measure_plan(planner: DdpgFamily, updates: int, buffer: ReplayBuffer, spec: Spec) -> dict[str, float]:
    """One update of a planner, beside the machine's rate."""
    learned = planner.init(spec, buffer.replay, 0)
    flops = counted_flops(planner._one_update, buffer.replay, learned.agent, jax.random.PRNGKey(0))
    keys = jax.random.split(jax.random.PRNGKey(1), updates)

    def update() -> Any:
        nonlocal learned
        learned, _ = planner._updates(learned, buffer.replay, keys, 0.1)
        return learned

    return measure(update, updates, flops)


def measure(update: Callable[[], Any], updates: int, flops: float) -> dict[str, float]:
    """Time per update, and the matrix product's in turns with it: the machine's speed wanders."""
    product = gemm()
    compiling = seconds(update)
    pairs = [(seconds(update) / updates, 10 * 2 * 1024**3 / seconds(product)) for _ in range(ROUNDS)]
    return {
        "gflop": flops / 1e9,
        "ms": 1e3 * statistics.median(time for time, _ in pairs),
        "gemm_gflops": statistics.median(rate for _, rate in pairs) / 1e9,
        "fraction": statistics.median(flops / time / rate for time, rate in pairs),
        "first_call_s": compiling,
    }


def measure_together(
    planner: DdpgFamily, updates: int, buffer: ReplayBuffer, spec: Spec, tasks: int = 4
) -> dict[str, float]:
    """Time of tasks planned one after the other, over that of all in one program, in turns.

    In one program they share the minibatch, and their networks are batched products (`batched`) or stand
    one below the other (`looped`).
    """
    agents = [planner.init(spec, buffer.replay, seed).agent for seed in range(tasks)]
    keys = jax.random.split(jax.random.PRNGKey(1), updates)
    step = partial(planner._one_update, buffer.replay)

    @jax.jit
    def alone(agent: Agent) -> Agent:
        return jax.lax.scan(lambda agent, key: (step(agent, key)[0], None), agent, keys)[0]

    @jax.jit
    def looped(agents: list[Agent]) -> list[Agent]:
        return jax.lax.scan(
            lambda agents, key: ([step(agent, key)[0] for agent in agents], None), agents, keys
        )[0]

    @jax.jit
    def batched(agents: Agent) -> Agent:
        every: Callable[..., Agent] = jax.vmap(lambda agent, key: step(agent, key)[0], in_axes=(0, None))
        return jax.lax.scan(lambda agents, key: (every(agents, key), None), agents, keys)[0]

    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *agents)
    calls: dict[str, Callable[[], Any]] = {
        "alone": lambda: [alone(agent) for agent in agents],
        "looped": lambda: looped(agents),
        "batched": lambda: batched(stacked),
    }
    for call in calls.values():
        _await(call())
    rounds = [{name: seconds(call) for name, call in calls.items()} for _ in range(ROUNDS)]
    return {
        name: statistics.median(times["alone"] / times[name] for times in rounds)
        for name in ("looped", "batched")
    }


def measure_sampling(buffer: ReplayBuffer, batch: int) -> float:
    """Milliseconds to draw one minibatch inside a compiled loop."""

    @jax.jit
    def draw(keys: jax.Array) -> jax.Array:
        def one(total: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
            return total + sum(jnp.sum(part) for part in sample(buffer.replay, key, batch)), None

        return jax.lax.scan(one, jnp.float32(0), keys)[0]

    keys = jax.random.split(jax.random.PRNGKey(0), 1000)
    draw(keys)
    return min(seconds(lambda: draw(keys)) for _ in range(3))


def measure_exploration(explorer: rf.GfaRfe) -> dict[str, float]:
    """Exploration as a whole against its updates alone, in turns: the machine's speed wanders.

    Of three episodes the first is random and the second compiles; the third is measured.
    """
    warm, simulator = replace(explorer, seed_frames=1000), make_domain(DOMAIN)
    each = warm.chunk // warm.update_every
    buffer = collected(simulator, 3, warm)
    state = warm.absorb(warm.init(simulator.spec, jax.random.PRNGKey(0)), buffer)
    ratios = []
    for _ in range(EXPLORATIONS):
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            rf.explore(DOMAIN, warm, frames=3000, out=run)
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        whole = lines[-1]["seconds"] - lines[-2]["seconds"]
        updates = lines[-1]["updates"] - lines[-2]["updates"]
        start = time.perf_counter()
        for _ in range(updates // each):
            state, _ = warm.update(state, buffer.replay, jax.random.PRNGKey(0), each)
        _await(state)
        ratios.append(whole / (time.perf_counter() - start))
    return {"updates": updates, "ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}


def main() -> None:
    """Print the figures, and write them as JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    args = parser.parse_args()
    simulator = make_domain(DOMAIN)
    buffer = collected(simulator, 4)
    found: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {len(jax.devices())} {jax.default_backend()} device",
        "jax": jax.__version__,
    }
    print(f"{found['machine']}, jax {found['jax']}, {found['date']}; domain {DOMAIN}")
    print(
        f"{'size':8} {'explorer':12} {'GFLOP':>7} {'ms/update':>10} {'GEMM GFLOP/s':>13}"
        f" {'share of GEMM':>14}"
    )

    def add(size: SizeName, name: str, row: dict[str, float]) -> None:
        found[f"{size}/{name}"] = row
        print(
            f"{size:8} {name:12} {row['gflop']:7.2f} {row['ms']:10.2f} {row['gemm_gflops']:13.0f}"
            f" {row['fraction']:14.2f}"
        )

    for size, updates in UPDATES.items():
        for preset, explorer in rf.GfaRfe.presets().items():
            sized, data = rf.resize(explorer, size), collected(simulator, 4, explorer)
            add(size, preset, measure_update(sized, updates, data, simulator.spec))
        found[f"{size}/sampling_ms"] = measure_sampling(buffer, rf.SIZES[size].batch)
        print(f"{size:8} sampling     {found[f'{size}/sampling_ms']:26.3f} ms a minibatch")
    for name in registry.names("explorer"):
        explorer = registry.load("explorer", name)()
        if isinstance(explorer, ActorCriticExplorer) and not isinstance(explorer, rf.GfaRfe):
            sized, data = rf.resize(explorer, "compact"), collected(simulator, 4, explorer)
            add("compact", name, measure_update(sized, UPDATES["compact"], data, simulator.spec))
    for name in registry.names("planner"):
        planner = rf.resize(registry.load("planner", name)(), "compact")
        if isinstance(planner, DdpgFamily):
            add("compact", name, measure_plan(planner, UPDATES["compact"], buffer, simulator.spec))
    shared = rf.resize(rf.DdpgTwin(), "compact")
    row = found["four tasks in one program"] = measure_together(shared, 20, buffer, simulator.spec)
    print(
        "four tasks one after the other take"
        f" {row['looped']:.2f} x the time of one program that loops over them,"
        f" {row['batched']:.2f} x that of one with batched products"
    )
    for preset, explorer in rf.GfaRfe.presets().items():
        row = found[f"exploration/{preset}"] = measure_exploration(rf.resize(explorer, "compact"))
        print(
            f"exploring at compact, {preset}: {row['ratio']:.2f} x its {row['updates']:.0f} updates alone"
            f" ({row['least']:.2f} to {row['most']:.2f})"
        )
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
