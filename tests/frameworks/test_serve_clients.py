"""The model server, asked by the clients' own libraries."""

import os
import subprocess
import sys
import tempfile
import unittest

from training import folder_of_python

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from test_serve import Server, line_model  # noqa: E402


class Grpc(unittest.TestCase):
    def test_python_client(self):
        with tempfile.TemporaryDirectory() as base:
            os.makedirs(f"{base}/m/1")
            with open(f"{base}/m/1/model.slipway", "wb") as file:
                file.write(line_model(0.5, 2))
            server = Server("--model", f"m={base}/m", "--rest-port", "0", "--grpc-port", "0")
            self.addCleanup(server.close)
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "serve_grpc.py")
            ran = subprocess.run([os.path.join(folder_of_python("tensorflow"), "python3"), script, str(server.grpc_port)], capture_output=True, text=True, timeout=300)
            self.assertEqual((ran.returncode, ran.stdout.strip()), (0, "all answered"), ran.stderr)


if __name__ == "__main__":
    unittest.main()
