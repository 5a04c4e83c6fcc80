"""Granted cores are enforced: by a cgroup or by affinity, unless the pool says otherwise."""

import os
import unittest

from harness import Service

CORES = len(os.sched_getaffinity(0))
# What a process may use of the machine: its quota in its group, or the cores it is held to.
SHOW = {"cgroup": "cat /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/cpu.max", "affinity": "env -u OMP_NUM_THREADS nproc"}


def make_pool(service, nodes, cores, *more):
    """Not overcommitted, as the pools of the harness are."""
    service.ok("pool", "create", "lab", "--nodes", nodes, "--cores-per-node", cores, *more)
    service.wait_for_nodes(nodes)


def run_one(service, cores, how="affinity"):
    job = service.submit({"name": "one", "pool": "lab", "tasks": [
        {"name": "t", "resources": {"cores": cores}, "command": SHOW[how]}]})
    service.wait_for(job, "succeeded")
    return service.log(job, "t").strip()


class Cores(unittest.TestCase):
    @unittest.skipUnless(CORES > 1, "one core cannot be divided")
    def test_a_task_has_the_cores_it_asked_for(self):
        for no_cgroup in ("0", "1"):
            with self.subTest(no_cgroup=no_cgroup), Service(variables={"SLIPWAY_NO_CGROUP": no_cgroup}) as service:
                make_pool(service, 1, 2)
                node = service.get("/v1/nodes/lab-1")
                self.assertIn(node["cpu_limit"], ("affinity",) if no_cgroup == "1" else ("cgroup", "affinity"))
                self.assertTrue(node["cpu_limit_reason"])
                self.assertIn(f"core limit: {node['cpu_limit']}: {node['cpu_limit_reason']}",
                              " ".join(service.ok("node", "show", "lab-1").out.split()).replace("core limit ", "core limit: "))
                in_group = node["cpu_limit"] == "cgroup"
                self.assertEqual(run_one(service, 1, node["cpu_limit"]), "100000 100000" if in_group else "1")
                self.assertEqual(run_one(service, 2, node["cpu_limit"]), "200000 100000" if in_group else str(min(2, CORES)))

    def test_a_pool_can_do_without(self):
        with Service(variables={"SLIPWAY_NO_CGROUP": "1"}) as service:
            make_pool(service, 1, 1, "--cpu-limit", "off")
            self.assertEqual(run_one(service, 1), str(CORES))
            node = service.get("/v1/nodes/lab-1")
            self.assertEqual((node["cpu_limit"], node["cpu_limit_reason"]), ("off", "pool lab has cpu_limit off"))
            self.assertEqual(service.get("/v1/pools/lab")["cpu_limit"], "off")
            service.refused("pool", "create", "other", "--cpu-limit", "some", code=2)

    def test_an_overcommitted_pool_is_not_held_by_affinity(self):
        with Service(variables={"SLIPWAY_NO_CGROUP": "1"}) as service:
            service.pool("lab", 1, 1)
            self.assertEqual(run_one(service, 1), str(CORES))
            node = service.get("/v1/nodes/lab-1")
            self.assertEqual(node["cpu_limit"], "off")
            self.assertIn("overcommitted", node["cpu_limit_reason"])

    @unittest.skipUnless(CORES > 1, "one core cannot be divided")
    def test_nodes_of_a_machine_use_different_cores(self):
        with Service(variables={"SLIPWAY_NO_CGROUP": "1"}) as service:
            make_pool(service, 2, 1, "--gpus-per-node", 0)
            job = service.submit({"name": "gang", "pool": "lab", "tasks": [
                {"name": "g", "nodes": 2, "resources": {"cores": 1},
                 "command": "sed -n 's/Cpus_allowed_list:.//p' /proc/self/status"}]})
            service.wait_for(job, "succeeded")
            self.assertEqual(len({service.log(job, "g", process=rank) for rank in range(2)}), 2)


if __name__ == "__main__":
    unittest.main()
