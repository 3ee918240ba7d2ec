"""How close an update comes to the machine: python -m benchmarks.update.

Prints, in one run, the machine's rate at a 1024^3 matrix product, and for every preset of GFA-RFE at
`paper` and `compact`: the FLOPs one update needs, its time, and the share of the matrix product's rate that
it reaches. Then the same for every other explorer at `compact`, with the FLOPs that its update does, what
sampling costs, and what exploring costs beyond its updates.
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
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import rewardfree as rf
from rewardfree import registry
from rewardfree.data.dataset import Recorder
from rewardfree.data.replay import ReplayBuffer, sample
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.interfaces import Domain, Spec
from rewardfree.pipeline import make_domain
from rewardfree.sizes import SizeName

DOMAIN = "walker"
ROUNDS = 5
EXPLORATIONS = 3
UPDATES: dict[SizeName, int] = {"paper": 2, "compact": 50}


def needed_flops(explorer: rf.GfaRfe, spec: Spec) -> float:
    """Multiplications and additions in the matrix products of one update that cannot be left out."""
    batch, hidden, members = explorer.batch, explorer.hidden, explorer.critics
    feature = explorer.feature or hidden
    inputs = spec.observation + spec.action
    critic = 2 * batch * (inputs * hidden + hidden * hidden + hidden)  # one member, forward
    actor = 2 * batch * (spec.observation * feature + feature * hidden + hidden * spec.action)
    targets = members * critic * (2 if explorer.needs_values_here else 1)  # (s, a) and (s', a')
    trained = 3 * critic * (1 if explorer.trained == "cycle" else members)  # forward and backward
    policy = 2 * members * critic + 4 * actor  # critics forward, gradient to the action; actor at s' and s
    oracle = 0
    if isinstance(explorer.oracle, rf.Elliptical):
        d = explorer.oracle.features
        oracle = 2 * batch * (inputs * d + d * d)  # phi, and norm(C^-1 phi)
    return targets + trained + policy + oracle


def counted_flops(explorer: ActorCriticExplorer, buffer: ReplayBuffer, spec: Spec) -> float:
    """Multiplications and additions in the matrix products of one update as it is traced."""
    state = explorer.init(spec, jax.random.PRNGKey(0))
    traced = jax.make_jaxpr(explorer._one_update)(buffer.replay, state, jax.random.PRNGKey(0))
    return _products(traced.jaxpr)


def _products(jaxpr: Any) -> float:
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            inner = np.prod([equation.invars[0].aval.shape[axis] for axis in contracted])
            total += 2 * inner * np.prod(equation.outvars[0].aval.shape)
        total += sum(_products(inner) for inner in jax.core.jaxprs_in_params(equation.params))
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


def collected(simulator: Domain, episodes: int, skills: int = 0) -> ReplayBuffer:
    """A replay of random episodes."""
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
    """Time per update, and the matrix product's in turns with it: the machine's speed wanders."""
    state = explorer.absorb(explorer.init(spec, jax.random.PRNGKey(0)), buffer)
    product = gemm()

    def update() -> Any:
        nonlocal state
        state, _ = explorer.update(state, buffer.replay, jax.random.PRNGKey(1), updates)
        return state

    compiling = seconds(update)
    pairs = [(seconds(update) / updates, 10 * 2 * 1024**3 / seconds(product)) for _ in range(ROUNDS)]
    if isinstance(explorer, rf.GfaRfe):
        flops = needed_flops(explorer, spec)
    else:
        flops = counted_flops(explorer, buffer, spec)
    return {
        "gflop": flops / 1e9,
        "ms": 1e3 * statistics.median(time for time, _ in pairs),
        "gemm_gflops": statistics.median(rate for _, rate in pairs) / 1e9,
        "fraction": statistics.median(flops / time / rate for time, rate in pairs),
        "first_call_s": compiling,
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
    buffer = collected(simulator, 3)
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

    def measure(size: SizeName, name: str, explorer: ActorCriticExplorer, buffer: ReplayBuffer) -> None:
        row = measure_update(rf.resize(explorer, size), UPDATES[size], buffer, simulator.spec)
        found[f"{size}/{name}"] = row
        print(
            f"{size:8} {name:12} {row['gflop']:7.2f} {row['ms']:10.2f} {row['gemm_gflops']:13.0f}"
            f" {row['fraction']:14.2f}"
        )

    for size in UPDATES:
        for preset, explorer in rf.GfaRfe.presets().items():
            measure(size, preset, explorer, buffer)
        found[f"{size}/sampling_ms"] = measure_sampling(buffer, rf.SIZES[size].batch)
        print(f"{size:8} sampling     {found[f'{size}/sampling_ms']:26.3f} ms a minibatch")
    for name in registry.names("explorer"):
        explorer = registry.load("explorer", name)()
        if isinstance(explorer, ActorCriticExplorer) and not isinstance(explorer, rf.GfaRfe):
            measure("compact", name, explorer, collected(simulator, 4, explorer.skills))
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
