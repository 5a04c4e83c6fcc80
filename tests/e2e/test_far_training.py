"""A native run on two hosts, each with a network of its own: what goes over the wire, and who is let in."""

import os
import socket
import threading
import unittest
import zlib

from harness import SLIPWAY, SlipwayCase
from ledger import FarNode, Link

os.environ["PATH"] = os.path.dirname(SLIPWAY) + ":" + os.environ["PATH"]  # where the nodes' processes find slipway-train

TRAIN = "exec slipway-train --data=synthetic --distribute=allreduce --model=mlp --batch-size=20 --steps=30 --seed=3"
ALL = 3  # ETH_P_ALL


class Capture:
    """Everything that TCP carried over one interface, but for what a port of the service sent or took."""

    def __init__(self, interface, without):
        self.without, self.payload, self.ended = without, bytearray(), False
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
        self.socket.bind((interface, 0))
        self.socket.settimeout(0.1)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while not self.ended:
            try:
                packet = self.socket.recv(1 << 17)
            except TimeoutError:
                continue
            ip = packet[14:]
            if packet[12:14] != b"\x08\x00" or len(ip) < 40 or ip[9] != socket.IPPROTO_TCP:
                continue
            tcp = ip[(ip[0] & 15) * 4:int.from_bytes(ip[2:4], "big") or len(ip)]
            if self.without in (int.from_bytes(tcp[0:2], "big"), int.from_bytes(tcp[2:4], "big")):
                continue
            self.payload += tcp[(tcp[12] >> 4) * 4:]

    def stop(self):
        self.ended = True
        self.thread.join()
        self.socket.close()
        return bytes(self.payload)


class FarTraining(SlipwayCase):
    def setUp(self):
        self.link = Link()
        self.addCleanup(self.link.remove)
        if self.link.problem:
            self.skipTest(self.link.problem)
        self.s = self.service(listen="0.0.0.0:0", arguments=["--insecure"])
        self.s.ok("pool", "create", "far", "--provisioner", "none")
        # A machine is known by its processes, too: those of one share memory.
        other_machine = [*self.link.prefix, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        for name, prefix in (("n1", ()), ("n2", other_machine)):
            node = FarNode(self.s, name, prefix=prefix, address=self.link.address)
            self.addCleanup(node.stop)
        self.s.wait_for_nodes(2, "far")

    def train(self, command=TRAIN, **environment):
        """How the job ended, its messages, and what went over the link."""
        capture = Capture(self.link.here, self.s.port)
        try:
            job = self.s.submit({"pool": "far", "tasks": [
                {"name": "train", "nodes": 2, "resources": {"cores": 1}, "command": command, "environment": environment}]})
            ended = self.s.wait_for(job, timeout=120)
        finally:
            sent = capture.stop()
        return ended, self.s.run("logs", f"{job}/train", "--stderr").out, sent

    def test_gradients_are_not_in_clear(self):
        clear, said, in_clear = self.train(SLIPWAY_TRUSTED_NETWORK="1")
        self.assertEqual(clear["state"], "succeeded", said)
        ended, said, sealed = self.train()
        self.assertEqual(ended["state"], "succeeded", said)
        # The same numbers were exchanged: 30 steps of some 100,000 weights. Floats have something to compress, ciphertext nothing.
        self.assertGreater(len(in_clear), 1 << 20)
        self.assertGreater(len(sealed), len(in_clear) * 0.9)
        ratios = [len(zlib.compress(data, 1)) / len(data) for data in (in_clear, sealed)]
        print(f"bytes in clear {len(in_clear):,}, compressed to {ratios[0]:.3f}; encrypted {len(sealed):,}, to {ratios[1]:.3f}")
        self.assertLess(ratios[0], 0.97)
        self.assertGreater(ratios[1], 0.99)
        # And no run of a few floats of the one is found in the other.
        words = {in_clear[at:at + 16] for at in range(0, len(in_clear) - 16, 4096)} - {bytes(16)}
        self.assertFalse([word for word in words if word in sealed])

    def test_who_has_another_key_is_refused(self):
        ended, said, sent = self.train(f'if [ "$SLIPWAY_RANK" = 1 ]; then export SLIPWAY_GANG_KEY={"f" * 64}; fi; {TRAIN}')
        self.assertEqual(ended["state"], "failed", said)
        self.assertRegex(said, "does not know the gang key|is another than that of this run")
        self.assertLess(len(sent), 1 << 16, "something was exchanged with it")


if __name__ == "__main__":
    unittest.main()
