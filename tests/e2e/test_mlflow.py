"""MLflow's REST API over plain HTTP: shapes, codes, limits, and that nothing acknowledged is lost."""

import base64
import http.client
import json
import math
import os
import threading
import time
import unittest
import urllib.parse

from harness import SharedServiceCase, SlipwayCase, wait_until

API = "/api/2.0/mlflow"
FILES = "/api/2.0/mlflow-artifacts/artifacts"


class Client:
    def __init__(self, service, token=""):
        self.service, self.token = service, token

    def ask(self, method, path, body=None, **options):
        if method == "GET" and body:
            pairs = [(key, one) for key, value in body.items() for one in (value if isinstance(value, list) else [value])]
            path += "?" + urllib.parse.urlencode(pairs)
            body = None
        return self.service.ask(method, API + path, body=body, token=self.token, **options)

    def ok(self, method, path, body=None):
        answer = self.ask(method, path, body)
        if answer.status != 200:
            raise AssertionError(f"{method} {path}: {answer!r}")
        return answer.json

    def refused(self, method, path, body=None, status=400, code="INVALID_PARAMETER_VALUE"):
        answer = self.ask(method, path, body)
        got = (answer.status, answer.json.get("error_code"))
        if got != (status, code) or not answer.json.get("message"):
            raise AssertionError(f"{method} {path} should be {status} {code}: {answer!r}")
        return answer.json["message"]

    def experiment(self, name):
        return self.ok("POST", "/experiments/create", {"name": name})["experiment_id"]

    def run(self, experiment="0", **more):
        return self.ok("POST", "/runs/create", {"experiment_id": experiment, **more})["run"]["info"]["run_id"]

    def log(self, run, metrics=(), params=(), tags=()):
        self.ok(
            "POST",
            "/runs/log-batch",
            {
                "run_id": run,
                "metrics": [{"key": k, "value": v, "timestamp": t, "step": s} for k, v, t, s in metrics],
                "params": [{"key": k, "value": v} for k, v in params],
                "tags": [{"key": k, "value": v} for k, v in tags],
            },
        )

    def history(self, run, key):
        points, token = [], ""
        while True:
            page = self.ok("GET", "/metrics/get-history", {"run_id": run, "metric_key": key, "page_token": token})
            points += page.get("metrics", [])
            token = page.get("next_page_token", "")
            if not token:
                return points

    def search(self, experiment, filter="", **more):
        body = {"experiment_ids": [experiment], "filter": filter, **more}
        return [run["info"]["run_name"] for run in self.ok("POST", "/runs/search", body).get("runs", [])]


class Tracking(SharedServiceCase):
    def setUp(self):
        self.c = Client(self.s)

    def test_probes_need_no_token(self):
        for path, body in (("/health", b"OK"), ("/version", b"3.0.0")):
            answer = self.s.ask("GET", path, token=None)
            self.assertEqual((answer.status, answer.body), (200, body))
        info = self.s.ask("GET", "/api/3.0/mlflow/server-info", token=None).json
        self.assertEqual((info["store_type"], info["multipart_uploads_enabled"]), ("SqlStore", False))

    def test_who_may_ask(self):
        path = API + "/experiments/get?experiment_id=0"
        for token in (None, "wrong"):
            refused = self.s.ask("GET", path, token=token)
            self.assertEqual((refused.status, refused.json["error_code"]), (401, "UNAUTHENTICATED"))
            self.assertEqual(refused.headers["WWW-Authenticate"], 'Basic realm="mlflow"')
        pair = base64.b64encode(b"ann:" + self.s.token.encode()).decode()
        self.assertEqual(self.s.ask("GET", path, token=None, headers={"Authorization": "Basic " + pair}).status, 200)
        for wrong in (base64.b64encode(b"ann:x").decode(), "%%%", base64.b64encode(self.s.token.encode()).decode()):
            answer = self.s.ask("GET", path, token=None, headers={"Authorization": "Basic " + wrong})
            self.assertEqual(answer.status, 401)
        # Elsewhere a browser would send it without being asked by the user.
        native = self.s.ask("GET", "/v1/pools", token=None, headers={"Authorization": "Basic " + pair})
        self.assertEqual(native.status, 401)

    def test_experiments(self):
        default = self.c.ok("GET", "/experiments/get", {"experiment_id": "0"})["experiment"]
        self.assertEqual((default["name"], default["lifecycle_stage"]), ("Default", "active"))
        made = self.c.experiment("fits")
        self.assertIsInstance(made, str)
        found = self.c.ok("GET", "/experiments/get-by-name", {"experiment_name": "fits"})["experiment"]
        self.assertEqual(found["experiment_id"], made)
        self.assertEqual(found["artifact_location"], f"mlflow-artifacts:/{made}")
        self.c.refused("POST", "/experiments/create", {"name": "fits"}, code="RESOURCE_ALREADY_EXISTS")
        self.c.refused("GET", "/experiments/get-by-name", {"experiment_name": "none"}, 404, "RESOURCE_DOES_NOT_EXIST")
        self.c.refused("POST", "/experiments/create", {})
        self.c.refused("POST", "/experiments/create", {"name": "x" * 501})
        self.c.ok("POST", "/experiments/set-experiment-tag", {"experiment_id": made, "key": "team", "value": "red"})
        run = self.c.run(made)
        self.c.ok("POST", "/experiments/delete", {"experiment_id": made})
        self.assertEqual(self.c.ok("GET", "/runs/get", {"run_id": run})["run"]["info"]["lifecycle_stage"], "deleted")
        self.c.refused("POST", "/runs/create", {"experiment_id": made})
        names = lambda **more: [e["name"] for e in self.c.ok("POST", "/experiments/search", more).get("experiments", [])]
        self.assertNotIn("fits", names())
        self.assertEqual(names(view_type="DELETED_ONLY", filter="name = 'fits'"), ["fits"])
        self.c.ok("POST", "/experiments/restore", {"experiment_id": made})
        self.assertEqual(names(filter="tags.team = 'red' AND name LIKE 'f%'"), ["fits"])
        self.c.ok("POST", "/experiments/update", {"experiment_id": made, "new_name": "fits 2"})
        self.assertEqual(names(filter="name ILIKE 'FITS%'"), ["fits 2"])

    def test_what_is_logged_comes_back(self):
        run = self.c.run(run_name="first", start_time=1700000000000, tags=[{"key": "mlflow.user", "value": "ann"}])
        self.c.log(run, [("loss", 0.5, 1700000000000, 0), ("loss", 0.25, 1700000000100, 1)], [("lr", "0.10"), ("empty", "")], [("a", "1")])
        self.c.ok("POST", "/runs/log-metric", {"run_id": run, "key": "bad", "value": "NaN", "timestamp": "1700000000000", "step": "-3"})
        for value in ("Infinity", "-Infinity"):
            self.c.ok("POST", "/runs/log-metric", {"run_id": run, "key": value, "value": value, "timestamp": 5})
        self.c.ok("POST", "/runs/log-metric", {"run_id": run, "key": "zero", "value": 0, "timestamp": 5})
        self.c.ok("POST", "/runs/update", {"run_id": run, "status": "FINISHED", "end_time": 1700000001000})
        got = self.c.ok("GET", "/runs/get", {"run_id": run})["run"]
        info = got["info"]
        self.assertEqual((info["run_uuid"], info["status"], info["end_time"]), (run, "FINISHED", 1700000001000))
        self.assertEqual(info["artifact_uri"], f"mlflow-artifacts:/0/{run}/artifacts")
        metrics = {metric["key"]: metric for metric in got["data"]["metrics"]}
        self.assertEqual(metrics["loss"], {"key": "loss", "value": 0.25, "timestamp": 1700000000100, "step": 1})
        self.assertEqual((metrics["bad"]["value"], metrics["bad"]["step"]), ("NaN", -3))
        self.assertEqual((metrics["Infinity"]["value"], metrics["-Infinity"]["value"]), ("Infinity", "-Infinity"))
        self.assertEqual(metrics["zero"], {"key": "zero", "value": 0.0, "timestamp": 5, "step": 0})
        self.assertEqual({p["key"]: p["value"] for p in got["data"]["params"]}, {"lr": "0.10", "empty": ""})
        tags = {t["key"]: t["value"] for t in got["data"]["tags"]}
        self.assertEqual(tags, {"a": "1", "mlflow.user": "ann", "mlflow.runName": "first"})
        self.c.ok("POST", "/runs/update", {"run_id": run, "run_name": "second"})
        self.c.ok("POST", "/runs/delete-tag", {"run_id": run, "key": "a"})
        got = self.c.ok("GET", "/runs/get", {"run_uuid": run})["run"]
        self.assertEqual({t["key"]: t["value"] for t in got["data"]["tags"]}["mlflow.runName"], "second")
        self.c.refused("POST", "/runs/delete-tag", {"run_id": run, "key": "a"}, 404, "RESOURCE_DOES_NOT_EXIST")

    def test_writes_may_be_repeated_and_params_do_not_change(self):
        run = self.c.run()
        points = [("m", i / 7, 1000 + i, i) for i in range(900)]
        for _ in range(3):
            self.c.log(run, points + [("m", "NaN", 5, 5)] * 2, [("p", "1")])
        self.assertEqual(len(self.c.history(run, "m")), 901)
        message = self.c.refused("POST", "/runs/log-parameter", {"run_id": run, "key": "p", "value": "2"})
        self.assertIn("already logged", message)
        batch = {"run_id": run, "params": [{"key": "q", "value": "1"}, {"key": "p", "value": "2"}], "metrics": [{"key": "n", "value": 1, "timestamp": 1}]}
        self.c.refused("POST", "/runs/log-batch", batch)
        data = self.c.ok("GET", "/runs/get", {"run_id": run})["run"]["data"]
        self.assertEqual([p["key"] for p in data["params"]], ["p"])
        self.assertEqual([m["key"] for m in data["metrics"]], ["m"])
        self.c.refused("POST", "/runs/log-batch", {"run_id": run, "params": [{"key": "d", "value": "1"}] * 2})

    def test_bad_input_names_what_is_wrong(self):
        run = self.c.run()
        metric = {"run_id": run, "key": "m", "value": 1, "timestamp": 1}
        for wrong in (
            {"key": "../x"},
            {"key": "k" * 251},
            {"key": ""},
            {"value": "one"},
            {"value": True},
            {"value": None},
            {"timestamp": -1},
            {"timestamp": "soon"},
            {"step": 1.5},
            {"run_id": "a/b"},
        ):
            with self.subTest(wrong=wrong):
                self.c.refused("POST", "/runs/log-metric", {**metric, **wrong})
        self.c.refused("POST", "/runs/log-metric", {**metric, "run_id": "0" * 32}, 404, "RESOURCE_DOES_NOT_EXIST")
        self.c.refused("POST", "/runs/log-batch", {"run_id": run, "metrics": [{"key": "m", "value": 1, "timestamp": 1}] * 1001})
        self.c.refused("POST", "/runs/log-batch", {"run_id": run, "metrics": {"key": "m"}})
        self.c.refused("GET", "/nothing", status=404, code="ENDPOINT_NOT_FOUND")
        self.c.refused("GET", "/runs/create", status=404, code="ENDPOINT_NOT_FOUND")
        path = API + "/runs/log-metric"
        for body in ("{", "[]", '"x"', "\xff"):
            answer = self.s.ask("POST", path, body=body.encode("latin-1"), headers={"Content-Type": "application/json"})
            self.assertEqual(answer.status, 400, answer)
        twice = json.dumps(json.dumps(metric))  # an old client
        self.assertEqual(self.s.ask("POST", path, body=twice, headers={"Content-Type": "application/json; charset=utf-8"}).status, 200)
        self.assertEqual(self.s.ask("POST", path, body="{}", headers={"Content-Type": "application/yaml"}).status, 400)
        long = self.c.run(tags=[{"key": "t", "value": "v" * 9000}])
        self.c.log(long, params=[("p", "ü" * 7000)])
        data = self.c.ok("GET", "/runs/get", {"run_id": long})["run"]["data"]
        self.assertEqual(len(data["params"][0]["value"]), 6000)
        self.assertIn(8000, [len(tag["value"]) for tag in data["tags"]])

    def test_search_filters_orders_and_pages(self):
        experiment = self.c.experiment("search")
        for i in range(25):
            run = self.c.run(experiment, run_name=f"r{i:02}", start_time=1000 + i)
            self.c.log(run, [("acc", i / 10, 1, 0)] if i % 5 else [], [("model", "lr" if i % 2 else "svm")])
        self.assertEqual(self.c.search(experiment)[:3], ["r24", "r23", "r22"])
        self.assertEqual(self.c.search(experiment, "metrics.acc > 2.2 and params.model = 'lr'"), ["r23"])
        by_acc = self.c.search(experiment, order_by=["metrics.acc DESC"])
        self.assertEqual(by_acc[:2] + by_acc[-2:], ["r24", "r23", "r05", "r00"])
        seen, token = [], ""
        while True:
            body = {"experiment_ids": [experiment], "order_by": ["metrics.acc"], "max_results": 7, "page_token": token}
            page = self.c.ok("POST", "/runs/search", body)
            seen += [run["info"]["run_name"] for run in page["runs"]]
            token = page.get("next_page_token")
            if not token:
                break
        self.assertEqual(seen, self.c.search(experiment, order_by=["metrics.acc"]))
        self.assertEqual(len(set(seen)), 25)
        for filter in ("metrics.a = 'x'", "params.a = 1", "a OR b", "params.a", "foo.a = 'x'", "metrics.a > 1; metrics.b > 2", "run_id IN ()"):
            message = self.c.refused("POST", "/runs/search", {"experiment_ids": [experiment], "filter": filter})
            self.assertIn("at character", message)
        self.c.refused("POST", "/runs/search", {"experiment_ids": [experiment], "max_results": 50001})
        self.assertEqual(self.c.ok("POST", "/runs/search", {"experiment_ids": ["999"]}), {})

    def test_long_series_are_paged_and_sampled(self):
        run = self.c.run()
        for begin in range(0, 30_000, 1000):
            self.c.log(run, [("m", math.sin(i), 1000 + i, i) for i in range(begin, begin + 1000)])
        history = self.c.history(run, "m")
        self.assertEqual([point["step"] for point in history], list(range(30_000)))
        self.assertEqual(history[777]["value"], math.sin(777))
        for path in ("/metrics/get-history-bulk-interval",):
            sampled = self.c.ok("GET", path, {"run_ids": [run], "metric_key": "m", "max_results": 320})["metrics"]
            self.assertEqual((len(sampled), sampled[0]["step"], sampled[-1]["step"]), (320, 0, 29_999))
            some = {"run_ids": [run], "metric_key": "m", "start_step": 10, "end_step": 14, "max_results": 3}
            self.assertEqual([p["step"] for p in self.c.ok("GET", path, some)["metrics"]], [10, 12, 14])
            self.c.refused("GET", path, {"run_ids": [run], "metric_key": "m", "start_step": 1})
        alias = self.s.get(f"/ajax-api/2.0/mlflow/metrics/get-history-bulk?run_id={run}&metric_key=m&max_results=10")
        self.assertEqual(len(alias["metrics"]), 10)

    def test_artifacts(self):
        run = self.c.run()
        root = f"{FILES}/0/{run}/artifacts"
        content = os.urandom(3 << 20)
        self.assertEqual(self.s.ask("PUT", f"{root}/model/weights.bin", body=content).json, {})
        self.assertEqual(self.s.ask("PUT", f"{root}/empty.txt", body=b"").status, 200)
        self.assertEqual(self.s.ask("PUT", f"{root}/a%20b/%C3%BC.txt", body=b"x").status, 200)
        got = self.s.ask("GET", f"{root}/model/weights.bin")
        self.assertEqual((got.body, got.headers["X-Content-Type-Options"]), (content, "nosniff"))
        part = self.s.ask("GET", f"{root}/model/weights.bin", headers={"Range": "bytes=10-19"})
        self.assertEqual((part.status, part.body), (206, content[10:20]))
        self.assertEqual(self.s.ask("GET", f"{root}/empty.txt").body, b"")
        self.assertEqual(self.s.ask("GET", f"{root}/none").status, 404)
        self.assertEqual(self.s.ask("GET", f"{root}/model").status, 400)
        listed = self.c.ok("GET", "/artifacts/list", {"run_id": run})
        self.assertEqual(listed["root_uri"], f"mlflow-artifacts:/0/{run}/artifacts")
        self.assertEqual([(f["path"], f["is_dir"]) for f in listed["files"]], [("a b", True), ("empty.txt", False), ("model", True)])
        below = self.c.ok("GET", "/artifacts/list", {"run_id": run, "path": "model"})["files"]
        self.assertEqual(below, [{"path": "model/weights.bin", "is_dir": False, "file_size": len(content)}])
        plain = self.s.get(f"{FILES}?path=0/{run}/artifacts/model")
        self.assertEqual([f["path"] for f in plain["files"]], ["weights.bin"])
        self.assertEqual(self.s.get(f"{FILES}?path=0/{run}/artifacts/empty.txt"), {})
        self.assertEqual(self.s.get(f"{FILES}?path=0/none"), {})
        shown = self.s.ask("GET", f"/get-artifact?run_id={run}&path=a%20b/%C3%BC.txt")
        self.assertEqual(shown.body, b"x")
        for path in ("../../../token", "%2e%2e/%2e%2e/token", "a%5cb", "%252e%252e/x"):
            self.assertEqual(self.s.ask("GET", f"{FILES}/{path}").status, 400, path)
            self.assertEqual(self.s.ask("PUT", f"{FILES}/{path}", body=b"x").status, 400, path)
        refused = self.s.ask("POST", "/api/2.0/mlflow-artifacts/mpu/create/x", body={"path": "x", "num_parts": 2})
        self.assertEqual((refused.status, refused.json["error_code"]), (501, "NOT_IMPLEMENTED"))
        self.assertTrue(refused.json["message"].startswith("Multipart upload is not supported for the current artifact repository"))
        self.assertEqual(self.s.ask("DELETE", f"{root}/model").json, {})
        self.assertEqual(self.s.ask("GET", f"{root}/model/weights.bin").status, 404)

    def test_registry(self):
        c = self.c
        c.ok("POST", "/registered-models/create", {"name": "digits", "tags": [{"key": "a", "value": "1"}]})
        c.refused("POST", "/registered-models/create", {"name": "digits"}, code="RESOURCE_ALREADY_EXISTS")
        run = c.run()
        for number in ("1", "2", "3"):
            made = c.ok("POST", "/model-versions/create", {"name": "digits", "source": f"mlflow-artifacts:/0/{run}/artifacts/m", "run_id": run})
            self.assertEqual((made["model_version"]["version"], made["model_version"]["status"]), (number, "READY"))
        c.refused("POST", "/model-versions/create", {"name": "digits", "source": "/etc"})
        c.ok("POST", "/registered-models/alias", {"name": "digits", "alias": "champion", "version": "2"})
        by_alias = c.ok("GET", "/registered-models/alias", {"name": "digits", "alias": "champion"})["model_version"]
        self.assertEqual((by_alias["version"], by_alias["aliases"]), ("2", ["champion"]))
        c.refused("GET", "/registered-models/alias", {"name": "digits", "alias": "none"})
        c.refused("POST", "/registered-models/alias", {"name": "digits", "alias": "latest", "version": "2"})
        c.ok("POST", "/model-versions/transition-stage", {"name": "digits", "version": "1", "stage": "production"})
        moved = {"name": "digits", "version": "2", "stage": "Production", "archive_existing_versions": True}
        self.assertEqual(c.ok("POST", "/model-versions/transition-stage", moved)["model_version"]["current_stage"], "Production")
        self.assertEqual(c.ok("GET", "/model-versions/get", {"name": "digits", "version": "1"})["model_version"]["current_stage"], "Archived")
        latest = c.ok("POST", "/registered-models/get-latest-versions", {"name": "digits", "stages": ["Production"]})
        self.assertEqual([v["version"] for v in latest["model_versions"]], ["2"])
        self.assertEqual(c.ok("GET", "/model-versions/get-download-uri", {"name": "digits", "version": "2"})["artifact_uri"], f"mlflow-artifacts:/0/{run}/artifacts/m")
        c.ok("DELETE", "/model-versions/delete", {"name": "digits", "version": "3"})
        made = c.ok("POST", "/model-versions/create", {"name": "digits", "source": "models:/digits/2"})["model_version"]
        self.assertEqual((made["version"], made["run_id"]), ("4", run))
        found = c.ok("GET", "/model-versions/search", {"filter": "name = 'digits' AND version_number >= 2", "order_by": ["version_number ASC"]})
        self.assertEqual([v["version"] for v in found["model_versions"]], ["2", "4"])
        c.ok("PATCH", "/registered-models/update", {"name": "digits", "description": "ten of them"})
        renamed = c.ok("POST", "/registered-models/rename", {"name": "digits", "new_name": "numbers"})["registered_model"]
        self.assertEqual((renamed["name"], renamed["description"], renamed["aliases"]), ("numbers", "ten of them", [{"alias": "champion", "version": "2"}]))
        self.assertEqual([m["name"] for m in c.ok("GET", "/registered-models/search", {"filter": "name LIKE 'num%'"})["registered_models"]], ["numbers"])
        c.ok("DELETE", "/registered-models/delete", {"name": "numbers"})
        c.refused("GET", "/registered-models/get", {"name": "numbers"}, 404, "RESOURCE_DOES_NOT_EXIST")

    def test_logged_models(self):
        c = self.c
        run = c.run()
        model = c.ok("POST", "/logged-models", {"experiment_id": "0", "name": "net", "source_run_id": run, "params": [{"key": "depth", "value": "3"}]})["model"]
        id = model["info"]["model_id"]
        self.assertRegex(id, "^m-[0-9a-f]{32}$")
        self.assertEqual(model["info"]["status"], "LOGGED_MODEL_PENDING")
        c.ok("POST", "/runs/outputs", {"run_id": run, "models": [{"model_id": id, "step": 0}]})
        c.ok("POST", "/runs/log-metric", {"run_id": run, "key": "acc", "value": 0.9, "timestamp": 1, "model_id": id})
        done = c.ok("PATCH", f"/logged-models/{id}", {"status": "LOGGED_MODEL_READY"})["model"]
        self.assertEqual((done["info"]["status"], done["data"]["metrics"][0]["value"]), ("LOGGED_MODEL_READY", 0.9))
        c.ok("PATCH", f"/logged-models/{id}/tags", {"tags": [{"key": "t", "value": "v"}]})
        found = c.ok("POST", "/logged-models/search", {"experiment_ids": ["0"], "filter": "metrics.acc > 0.5", "order_by": [{"field_name": "metrics.acc", "ascending": False}]})
        self.assertEqual([m["info"]["model_id"] for m in found["models"]], [id])
        c.ok("POST", "/registered-models/create", {"name": "nets"})
        version = c.ok("POST", "/model-versions/create", {"name": "nets", "source": f"models:/{id}", "model_id": id})["model_version"]
        self.assertEqual((version["run_id"], version["model_id"]), (run, id))
        self.assertEqual(c.ok("GET", f"/logged-models/{id}")["model"]["info"]["registrations"], [{"name": "nets", "version": "1"}])
        uri = c.ok("GET", "/model-versions/get-download-uri", {"name": "nets", "version": "1"})["artifact_uri"]
        self.assertEqual(uri, f"mlflow-artifacts:/0/models/{id}/artifacts")
        c.ok("DELETE", f"/logged-models/{id}")
        c.refused("GET", f"/logged-models/{id}", status=404, code="RESOURCE_DOES_NOT_EXIST")
        c.ok("GET", f"/logged-models/{id}", {"allow_deleted": "True"})


SCRIPT = """
import json, os, urllib.request
def ask(method, path, body=None):
    request = urllib.request.Request(os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow" + path, method=method,
        data=json.dumps(body).encode() if body else None,
        headers={"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request).read())
run = os.environ["MLFLOW_RUN_ID"]
ask("GET", "/runs/get?run_id=" + run)
ask("POST", "/runs/log-metric", {"run_id": run, "key": "loss", "value": 0.5, "timestamp": 1, "step": int(os.environ["SLIPWAY_ATTEMPT"])})
print(os.environ["MLFLOW_TRACKING_TOKEN"])
"""


class InJobs(SharedServiceCase):
    def test_a_task_has_a_run_once_it_logs(self):
        self.s.write("track.py", SCRIPT)
        python = f"python3 {self.s.base}/track.py"
        c = Client(self.s)
        silent = self.s.submit({"pool": "lab", "tasks": [{"name": "quiet", "command": "true"}]})
        self.assertEqual(self.s.wait_for(silent)["state"], "succeeded")
        spec = {"name": "fit", "pool": "lab", "tasks": [{"name": "train", "command": python}, {"name": "again", "command": f"{python}; test $SLIPWAY_ATTEMPT = 2", "retries": 1}]}
        job = self.s.submit(spec)
        self.assertEqual(self.s.wait_for(job)["state"], "succeeded", self.s.log(job, "train"))
        filter = f"tags.`slipway.job` = '{job}'"
        self.assertEqual(sorted(c.search("0", filter)), ["fit/again", "fit/train"])
        self.assertEqual(c.search("0", f"tags.`slipway.job` = '{silent}'"), [])
        runs = c.ok("POST", "/runs/search", {"experiment_ids": ["0"], "filter": filter + " and tags.`slipway.task` = 'again'"})["runs"]
        # Both attempts are one curve.
        self.assertEqual([point["step"] for point in c.history(runs[0]["info"]["run_id"], "loss")], [1, 2])
        self.assertEqual(runs[0]["info"]["user_id"], "admin")
        # What the job was given is worth nothing after it, and never was elsewhere.
        token = self.s.log(job, "train").strip()
        self.assertTrue(token.startswith("slipway_task."))
        self.assertEqual(self.s.ask("GET", API + "/experiments/get?experiment_id=0", token=token).status, 401)

    def test_the_token_of_a_task_tracks_and_nothing_else(self):
        self.s.write("wait.py", SCRIPT + "import sys, time\nsys.stdout.flush()\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)\n")
        gate = os.path.join(self.s.base, "gate")
        job = self.s.submit({"pool": "lab", "tasks": [{"name": "train", "command": f"python3 {self.s.base}/wait.py {gate}"}]})
        token = wait_until(lambda: self.s.job(job)["state"] == "running" and self.s.log(job, "train").strip(), what="its token")
        path = API + "/experiments/get?experiment_id=0"
        self.assertEqual(self.s.ask("GET", path, token=token).status, 200)
        for method, other in (("GET", "/v1/jobs"), ("GET", "/v1/secrets"), ("POST", "/v1/jobs")):
            self.assertEqual(self.s.ask(method, other, token=token).status, 401, other)
        self.s.kill_service()
        self.s.up()
        self.assertEqual(self.s.ask("GET", path, token=token).status, 200)
        self.s.write("gate", "")
        self.assertEqual(self.s.wait_for(job)["state"], "succeeded")
        self.assertEqual(self.s.ask("GET", path, token=token).status, 401)


class Commands(SharedServiceCase):
    def test_runs_are_listed_shown_compared_exported_and_deleted(self):
        c = Client(self.s)
        first, second = c.run(run_name="first"), c.run(run_name="second")
        c.log(first, [("loss", 0.5, 1, 0), ("loss", 0.25, 2, 1), ("a/b", 1, 1, 1)], [("lr", "0.1"), ("same", "1")])
        c.log(second, [("loss", 0.125, 1, 0)], [("lr", "0.2"), ("same", "1")])
        self.assertIn("Default", self.s.ok("experiment", "list").out)
        self.assertEqual(self.s.ok("runs", "list", "-o", "quiet", "--filter", "metrics.loss < 0.2").out.split(), [second])
        self.assertEqual(self.s.ok("runs", "list", "-o", "quiet", "--order", "metrics.loss DESC", "--limit", 1).out.split(), [first])
        self.assertIn("  lr = 0.1", self.s.ok("runs", "show", first).out)
        compared = self.s.ok("runs", "compare", first, second).out
        self.assertIn("params.lr", compared)
        self.assertNotIn("same", compared)
        exported = self.s.ok("runs", "export", first, "--metric", "loss").out
        self.assertEqual(exported.split(), ["metric,step,timestamp,value", "loss,0,1,0.5", "loss,1,2,0.25"])
        self.assertEqual(len(self.s.ok("runs", "export", first, "--format", "json").json["history"]["loss"]), 2)
        self.s.refused("runs", "list", "--filter", "metrics.loss =", says="at character 15")
        self.s.refused("runs", "show", "none", says="there is no run")
        self.s.refused("runs", "delete", first, says="--yes")
        self.s.ok("runs", "delete", first, "--yes")
        self.assertEqual(self.s.ok("runs", "list", "-o", "quiet").out.split(), [second])


class Recovery(SlipwayCase):
    def test_a_killed_service_has_each_acknowledged_point_once(self):
        service = self.service()
        client = Client(service)
        runs = [client.run(run_name=f"r{i}") for i in range(3)]
        acknowledged = [0] * len(runs)
        ended = threading.Event()

        def log(index):
            """Batches of 50 until the end; one that got no answer is sent again, as clients do."""
            connection, step = None, 0
            while not ended.is_set():
                body = json.dumps({"run_id": runs[index], "metrics": [{"key": "m", "value": i / 8, "timestamp": 1000 + i, "step": i} for i in range(step, step + 50)]})
                try:
                    connection = connection or service.connect()
                    connection.request("POST", API + "/runs/log-batch", body=body, headers={"Content-Type": "application/json", "Authorization": "Bearer " + service.token})
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == 200:
                        step += 50
                        acknowledged[index] = step
                except (OSError, http.client.HTTPException, ValueError):
                    if connection:
                        connection.close()
                    connection = None
                    time.sleep(0.01)  # the service is down: as long as a client would wait
            if connection:
                connection.close()

        threads = [threading.Thread(target=log, args=(i,)) for i in range(len(runs))]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                before = list(acknowledged)
                wait_until(lambda: all(now > was + 100 for now, was in zip(acknowledged, before)), what="points that are acknowledged")
                service.kill_service()
                service.up()
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        for run, wanted in zip(runs, acknowledged):
            steps = [point["step"] for point in client.history(run, "m")]
            self.assertGreaterEqual(len(steps), wanted)
            self.assertEqual(steps, list(range(len(steps))))


class Sharing(SlipwayCase):
    def test_roles_owners_and_workspaces(self):
        service = self.service()
        tokens = {}
        for name, workspace, role in (("ana", "default", "member"), ("bob", "default", "member"), ("vic", "default", "viewer"), ("eve", "other", "admin")):
            answer = service.ask("POST", "/v1/tokens", body={"name": name, "workspace": workspace, "role": role})
            self.assertIn(answer.status, (200, 201), answer)
            tokens[name] = answer.json["token"]
        ana, bob, vic, eve = (Client(service, tokens[name]) for name in ("ana", "bob", "vic", "eve"))
        run = ana.run()
        bob.log(run, [("m", 1, 1, 1)])
        vic.ok("GET", "/runs/get", {"run_id": run})
        vic.refused("POST", "/runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": 1}, 403, "PERMISSION_DENIED")
        bob.refused("POST", "/runs/delete", {"run_id": run}, 403, "PERMISSION_DENIED")
        eve.refused("GET", "/runs/get", {"run_id": run}, 404, "RESOURCE_DOES_NOT_EXIST")
        eve.refused("POST", "/runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": 1}, 404, "RESOURCE_DOES_NOT_EXIST")
        self.assertEqual(eve.ok("POST", "/runs/search", {"experiment_ids": ["0"]}), {})
        path = f"{FILES}/0/{run}/artifacts/x"
        self.assertEqual(service.ask("PUT", path, body=b"secret", token=tokens["ana"]).status, 200)
        self.assertEqual(service.ask("GET", path, token=tokens["eve"]).status, 404)
        self.assertEqual(service.ask("PUT", path, body=b"y", token=tokens["vic"]).status, 403)
        self.assertEqual(service.ask("DELETE", path, token=tokens["bob"]).status, 403)
        self.assertEqual(service.ask("GET", path, token=tokens["vic"]).body, b"secret")
        ana.ok("POST", "/runs/delete", {"run_id": run})
        ana.refused("POST", "/runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": 1})
        ana.ok("POST", "/runs/restore", {"run_id": run})


if __name__ == "__main__":
    unittest.main()
