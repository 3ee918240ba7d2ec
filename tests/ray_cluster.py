"""A driver for test_bench_ray: a Ray cluster of two nodes on this machine; each line on its input kills one.

Prints the cluster's address, then `killed` after each kill.
"""

from __future__ import annotations

import sys

from ray.cluster_utils import Cluster

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)
    for _ in sys.stdin:
        cluster.remove_node(node, allow_graceful=False)
        print("killed", flush=True)
    cluster.shutdown()  # type: ignore[no-untyped-call]
