"""GPUs of local nodes, on machines that have none: SLIPWAY_TEST_GPUS stands for the cards."""

import os
import re
import signal
import unittest

from harness import Service, wait_until

SHOW = "echo \"gpus=${CUDA_VISIBLE_DEVICES-unset} order=${CUDA_DEVICE_ORDER-unset}\""


def gpu_service(count):
    return Service(variables={"SLIPWAY_TEST_GPUS": str(count)})


def nodes_of(service, pool="lab"):
    return {node["name"]: node for node in service.get(f"/v1/nodes?pool={pool}")["items"]}


def indices_of(service, pool="lab"):
    return {name: node["gpu_indices"] for name, node in nodes_of(service, pool).items()}


def hold(gpus, **more):
    """A task that shows what it sees and stays until the file `go` of its job is there."""
    return {"name": "t", "resources": {"cores": 0.1, "gpus": gpus},
            "command": SHOW + "; until [ -e \"$SLIPWAY_SHARED/go\" ]; do sleep 0.05; done", **more}


def let_go(service, job):
    shared = os.path.join(service.data, "workspaces/default/jobs", job, "_shared")
    wait_until(lambda: os.path.isdir(shared), what="the job's shared folder")
    open(os.path.join(shared, "go"), "w").close()


class Gpus(unittest.TestCase):
    def test_tasks_on_a_node_see_different_gpus_and_one_without_sees_none(self):
        with gpu_service(2) as service:
            service.pool("lab", 1, 1)
            job = service.submit({"name": "hold", "pool": "lab", "tasks": [hold(1, count=2)]})
            seen = [wait_until(lambda i=i: service.log(job, f"t[{i}]"), what="output") for i in range(2)]
            self.assertEqual(sorted(seen), ["gpus=0 order=PCI_BUS_ID\n", "gpus=1 order=PCI_BUS_ID\n"])
            shown = service.ok("node", "show", "lab-1").out
            self.assertIn("2 of 2 used; indices 0, 1, granted 0, 1", shown)
            none = service.submit({"name": "none", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1}, "command": SHOW}]})
            service.wait_for(none, "succeeded")
            self.assertEqual(service.log(none, "t"), "gpus= order=unset\n", "set, and empty")
            waits = service.submit({"name": "waits", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1, "gpus": 1}, "command": SHOW}]})
            self.assertEqual(service.job(waits)["state"], "queued")
            let_go(service, job)
            service.wait_for(job, "succeeded")
            service.wait_for(waits, "succeeded")
            self.assertEqual(service.task(job, "t[0]")["history"][0]["gpus"], [[0]])

    def test_gpus_are_divided_and_pools_share_none(self):
        with gpu_service(4) as service:
            service.pool("lab", 2, 1, "--gpus-per-node", 1)
            service.pool("rest", 1, 1)
            self.assertEqual(indices_of(service), {"lab-1": [0], "lab-2": [1]})
            self.assertEqual(indices_of(service, "rest"), {"rest-1": [2, 3]})
            self.assertEqual(service.get("/v1/pools/rest")["gpus_per_node"], 2)
            self.assertIn("2 GPUs", service.ok("pool", "show", "rest").out)
            service.refused("pool", "create", "more", "--nodes", 1, "--gpus-per-node", 1,
                            says=["would need 1 GPUs", "this machine has 4, and other pools have 4 of them",
                                  "--gpus-per-node 0"])

    def test_a_gang_over_two_nodes_has_the_gpus_of_each(self):
        with gpu_service(4) as service:
            service.pool("lab", 2, 1)
            job = service.submit({"name": "gang", "pool": "lab", "tasks": [
                {"name": "g", "nodes": 2, "processes_per_node": 2, "resources": {"cores": 0.1, "gpus": 1},
                 "command": SHOW}]})
            service.wait_for(job, "succeeded")
            self.assertEqual([service.log(job, "g", process=rank).split()[0] for rank in range(4)],
                             ["gpus=0", "gpus=1", "gpus=2", "gpus=3"])

    def test_a_start_task_sees_all_gpus_of_its_node(self):
        with gpu_service(2) as service:
            service.pool("lab", 1, 1, "--start-task", SHOW)
            self.assertEqual(service.ok("node", "logs", "lab-1").out, "gpus=0,1 order=PCI_BUS_ID\n")

    def test_a_restart_keeps_the_assignment_and_fewer_cards_shrink_it(self):
        with gpu_service(4) as service:
            service.pool("lab", 2, 1)
            before = indices_of(service)
            self.assertEqual(before, {"lab-1": [0, 1], "lab-2": [2, 3]})
            job = service.submit({"name": "hold", "pool": "lab", "tasks": [hold(1, count=4)]})
            for i in range(4):
                service.wait_for_task(job, f"t[{i}]", "running")
            os.kill(service.pid, signal.SIGKILL)
            wait_until(lambda: not service.pid, what="the end of the service")
            service.variables["SLIPWAY_TEST_GPUS"] = "2"
            service.up()
            # Agents of the old service are still there, and say four; the service knows better.
            wait_until(lambda: indices_of(service) == {"lab-1": [0, 1], "lab-2": []}, what="fewer GPUs")
            wait_until(lambda: sum(service.task(job, f"t[{i}]")["history"][0]["end"] == "evicted" for i in range(4)) == 2,
                       what="two interrupted attempts")
            details = {service.task(job, f"t[{i}]")["history"][0]["detail"] for i in range(4)} - {""}
            self.assertEqual(details, {"interrupted: GPU 2 of node lab-2 is gone",
                                       "interrupted: GPU 3 of node lab-2 is gone"})
            events = [event["text"] for event in service.get("/v1/events?limit=1000")["items"]
                      if event["kind"] == "node.gpus_lost"]
            self.assertEqual(events, ["lab-2 lost GPU 2, 3: it has 0 instead of 2"])
            let_go(service, job)
            service.wait_for(job, "succeeded")
            logs = {service.log(job, f"t[{i}]").split()[0] for i in range(4)}
            self.assertEqual(logs, {"gpus=0", "gpus=1"}, "what was interrupted ran on cards that are there")
            service.down()
            service.variables["SLIPWAY_TEST_GPUS"] = "4"
            service.up()
            service.wait_for_nodes(2)
            self.assertEqual(indices_of(service), before, "cards that are back are used again")

    def test_a_machine_that_joins_offers_what_it_is_told_to(self):
        with gpu_service(4) as service:
            service.ok("pool", "create", "far", "--provisioner", "none")
            service.ok("token", "create", "nodes", "--role", "node", "--to", os.path.join(service.base, "join"))
            folder = os.path.join(service.base, "far-1")
            service.also.append(folder)
            agent = service.spawn("node", "run", "--service", service.url, "--token-file",
                                  os.path.join(service.base, "join"), "--pool", "far", "--name", "far-1", "--folder", folder,
                                  "--gpus", "1,3")
            service.wait_for_nodes(1, "far")
            self.assertEqual(indices_of(service, "far"), {"far-1": [1, 3]})
            service.refused("node", "run", "--gpus", "a", "--pool", "far", code=2, says="not a list of GPU indices")
            agent.terminate()  # it has nothing to run, so its keeper goes with it
            agent.wait()

    def test_the_cards_of_this_machine_are_found(self):
        cards = len([name for name in os.listdir("/dev") if re.fullmatch(r"nvidia[0-9]+", name)])
        with Service() as service:
            service.pool("lab", 1, 1)
            self.assertEqual(indices_of(service), {"lab-1": list(range(cards))})


if __name__ == "__main__":
    unittest.main()
