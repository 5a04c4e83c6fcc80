"""The Python clients of MLflow 2 and 3, unmodified, against a service."""

import os
import subprocess
import unittest

from training import ROOT, folder_of_python
from harness import SlipwayCase


class Mlflow(SlipwayCase):
    def day_with(self, environment, version):
        service = self.service()
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": service.home,
            "MLFLOW_TRACKING_URI": service.address,
            "MLFLOW_TRACKING_TOKEN": service.token,
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # what clients try again was answered wrongly
            "GIT_PYTHON_REFRESH": "quiet",
        }
        python = os.path.join(folder_of_python(environment), "python3")
        script = os.path.join(ROOT, "tests", "frameworks", "mlflow_client.py")
        ran = subprocess.run([python, "-B", script], cwd=service.base, env=variables, capture_output=True, text=True, timeout=600)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn(f"all is well with MLflow {version}", ran.stdout)

    def test_mlflow_2(self):
        self.day_with("mlflow2", "2.22.")

    def test_mlflow_3(self):
        self.day_with("mlflow3", "3.")


if __name__ == "__main__":
    unittest.main()
