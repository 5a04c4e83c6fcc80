"""The service answers what docs/api/openapi.yaml says, and nothing else."""

import http.client
import json
import os
import re
import threading
import unittest

from harness import ROOT, SharedServiceCase, job, shell, wait_until

METHODS = ("get", "put", "post", "patch", "delete", "head", "options")


def routes():
    """(METHOD, path) of every operation in the contract."""
    found, path = [], None
    with open(os.path.join(ROOT, "docs/api/openapi.yaml")) as file:
        inside = False
        for line in file:
            if re.match(r"\S", line):
                inside = line.startswith("paths:")
            elif inside and (match := re.match(r"  (/\S*):\s*$", line)):
                path = match[1]
            elif inside and (match := re.match(r"    (\w+):\s*$", line)) and match[1] in METHODS:
                found.append((match[1].upper(), path))
    return found


class Contract(SharedServiceCase):
    def known(self, method, path):
        """Whether there is such a route, by the answer to a request."""
        body = "{" if method in ("POST", "PUT", "PATCH") else None  # broken on purpose: nothing must happen
        answer = self.s.ask(method, path, body=body, headers={"Content-Type": "application/json"} if body else {})
        if answer.status == 405:
            return False
        return not (answer.status == 404 and b"there is nothing at" in answer.body)

    def test_routes_are_those_of_the_contract(self):
        contract = routes()
        self.assertGreater(len(contract), 30)
        paths = {path for _, path in contract}
        for path in paths:
            concrete = path.replace("{hash}", "0" * 64).replace("{", "no-").replace("}", "")
            for method in ("GET", "PUT", "POST", "PATCH", "DELETE"):
                with self.subTest(route=f"{method} {path}"):
                    if (method, path) in (("POST", "/v1/service/stop"),):
                        continue
                    self.assertEqual(self.known(method, concrete), (method, path) in contract)
        for path in ("/v1", "/nothing", "/jobs/a/b", "/v2/jobs", "/v1/job", "/v1/jobs/job_1/nothing", "/v1/jobs/a/b/c/d/e", "/v1/tokens/a/b",
                     "/v1/blobs", "/admin", "/v1/nodes/a/b", "/v1/pools/lab/x", "/healthz/x", "//v1/jobs"):
            with self.subTest(unknown=path):
                self.assertFalse(self.known("GET", path))

    def test_fields_that_are_required_are_there(self):
        submitted = self.s.submit(job(shell("a", "echo hello"), shell("b", "false", depends_on=["a"])))
        self.s.wait_for(submitted)
        job_fields = "id name workspace pool priority state reason submitted_by source submitted_at started_at ended_at tasks"
        task_fields = "job name state attempts retries_used exit_code signal reason not_before nodes"
        attempt = "attempt nodes gpus placed_at started_at ended_at end exit_code signal rank detail memory_peak cpu_time processes"
        node = "name pool workspace state reason address host local shares_storage cores memory gpus gpu_indices gpus_granted cpu_limit cpu_limit_reason used running notes created_at changed_at"
        pool = "name workspace provisioner nodes cores_per_node memory_per_node gpus_per_node cpu_limit overcommit lost_after created_at notes"
        for path, fields, of_list in [
            (f"/v1/jobs/{submitted}", job_fields + " spec", False), ("/v1/jobs", job_fields, True),
            (f"/v1/jobs/{submitted}/tasks", task_fields, True),
            (f"/v1/jobs/{submitted}/tasks/a", task_fields + " processes spec history", False),
            (f"/v1/jobs/{submitted}/tasks/a/attempts", attempt, True),
            (f"/v1/jobs/{submitted}/tasks/a/attempts/1", attempt, False),
            (f"/v1/jobs/{submitted}/tasks/a/files", "path kind size modified_at", True),
            ("/v1/nodes", node, True), ("/v1/nodes/lab-1", node, False), ("/v1/pools", pool, True),
            ("/v1/pools/lab", pool, False), ("/v1/service", "version pid url data started_at degraded nodes jobs", False),
            ("/v1/service/storage", "path probe nonce", False), ("/v1/tokens", "id name workspace role created_at", True),
            ("/v1/events", "id time kind job task attempt node pool text", True),
            (f"/v1/jobs/{submitted}/why", "job state answer tasks", False),
        ]:
            with self.subTest(path=path):
                answer = self.s.get(path)
                for item in answer["items"][:3] if of_list else [answer]:
                    self.assertEqual(set(fields.split()) - set(item), set())

    def test_why_has_the_state_of_each_task(self):
        submitted = self.s.submit(job(shell("a", "sleep 1000"), shell("b", "true", depends_on=["a"])))
        self.s.wait_for_task(submitted, "a", "running")
        answer = self.s.get(f"/v1/jobs/{submitted}/why")
        self.s.ok("job", "cancel", submitted)
        for task in answer["tasks"]:
            self.assertEqual({"task", "state", "reason"} - set(task), set(), task)

    def test_cancel_answers_200_and_repeats(self):
        submitted = self.s.submit(job(shell("a", "sleep 1000")))
        first = self.s.ask("POST", f"/v1/jobs/{submitted}/cancel")
        self.s.wait_for(submitted, "cancelled")
        again = self.s.ask("POST", f"/v1/jobs/{submitted}/cancel")
        self.assertEqual((first.status, again.status), (200, 200), again)

    def test_what_is_no_valid_request_is_answered_as_the_rest(self):
        self.assertEqual(self.s.get("/v1/jobs?after="), self.s.get("/v1/jobs"))
        self.assertEqual(self.s.get("/v1/events?after=&limit=1"), self.s.get("/v1/events?limit=1"))
        for path in ("jobs", "pools", "nodes", "tokens", "events", "datastores", "queue", "pools/lab/history"):
            answer = self.s.ask("GET", f"/v1/{path}?limit=1001")
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (400, "application/problem+json"), path)
        for target in ("/v1/jobs?name=%00", "/v1/jobs?name=%zz"):
            answer = self.s.ask("GET", target)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (400, "application/problem+json"), target)
            self.assertEqual((answer.json["status"], answer.json["code"]), (400, "invalid"))
        for method, path, allowed in (("TRACE", "/v1/jobs", "GET, HEAD, POST"), ("DELETE", "/healthz", "GET, HEAD"),
                                      ("POST", "/v1/pools/lab", "GET, HEAD, PATCH, DELETE")):
            answer = self.s.ask(method, path)
            self.assertEqual(answer.status, 405)
            self.assertEqual(set(answer.headers["Allow"].split(", ")), set(allowed.split(", ")), path)
        self.assertEqual(self.s.ask("POST", "/v1/blobs/missing").status, 400)

    def test_the_schema_of_job_files(self):
        answer = self.s.ask("GET", "/v1/schemas/job.json", token=None)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/schema+json"))
        with open(os.path.join(ROOT, "docs/schemas/job.json"), "rb") as file:
            self.assertEqual(answer.body, file.read())

    def test_pages(self):
        submitted = self.s.submit(job(shell("a", "true", count=25)))
        self.s.wait_for(submitted)
        names, after = [], ""
        while True:
            page = self.s.get(f"/v1/jobs/{submitted}/tasks?limit=10{after}")
            names += [task["name"] for task in page["items"]]
            if not page.get("next"):
                break
            after = "&after=" + page["next"].replace("[", "%5B").replace("]", "%5D")
        self.assertEqual(names, [f"a[{i}]" for i in range(25)])
        for bad in ("limit=0", "limit=1001", "limit=x", "state=nothing"):
            self.assertEqual(self.s.ask("GET", f"/v1/jobs?{bad}").status, 400, bad)

    def test_wait(self):
        submitted = self.s.submit(job(shell("a", "sleep 1000")))
        self.assertNotIn(self.s.get(f"/v1/jobs/{submitted}/wait?timeout=0")["state"], ("succeeded", "cancelled"))
        waited = {}
        thread = threading.Thread(target=lambda: waited.update(self.s.get(f"/v1/jobs/{submitted}/wait?timeout=60", timeout=90)))
        thread.start()
        self.s.ok("job", "cancel", submitted)
        thread.join(80)
        self.assertEqual(waited.get("state"), "cancelled")

    def events(self, headers=None, until=lambda event: False, query=""):
        """Events of a stream until one fulfils `until`; (id, event) each."""
        connection = http.client.HTTPConnection("127.0.0.1", self.s.port, timeout=60)
        try:
            connection.request("GET", "/v1/events" + query, headers={
                "Authorization": "Bearer " + self.s.token, "Accept": "text/event-stream", **(headers or {})})
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            self.assertTrue(response.headers["Content-Type"].startswith("text/event-stream"))
            found, current = [], {}
            while True:
                line = response.readline().decode().rstrip("\n")
                if not line and "data" in current:
                    found.append((current["id"], json.loads(current["data"])))
                    if until(found[-1][1]):
                        return found
                    current = {}
                elif ":" in line:
                    name, value = line.split(":", 1)
                    current[name] = value.strip()
        finally:
            connection.close()

    def test_events_stream_and_resume(self):
        submitted = self.s.submit(job(shell("a", "true")))
        last = lambda event: event["kind"] == "job.succeeded" and event["job"] == submitted
        everything = self.events(until=last)
        ids = [int(number) for number, _ in everything]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual([int(n) for n, e in everything], [e["id"] for n, e in everything])
        middle = ids[len(ids) // 2]
        rest = self.events(headers={"Last-Event-ID": str(middle)}, until=last)
        self.assertEqual([int(n) for n, _ in rest], [i for i in ids if i > middle])
        wins = self.events(headers={"Last-Event-ID": str(middle)}, until=last, query="?after=0")
        self.assertEqual(wins, rest)
        of_job = self.events(until=last, query=f"?job={submitted}&follow=true")
        self.assertEqual({event["job"] for _, event in of_job}, {submitted})

    def test_events_stream_live(self):
        wait_for = {}
        started = threading.Event()

        def listen():
            def until(event):
                started.set()
                return event["kind"] == "job.cancelled" and event["job"] == wait_for.get("job")

            wait_for["events"] = self.events(until=until)

        thread = threading.Thread(target=listen)
        thread.start()
        started.wait(60)
        wait_for["job"] = self.s.submit(job(shell("a", "sleep 1000")))
        self.s.ok("job", "cancel", wait_for["job"])
        thread.join(60)
        self.assertIn("events", wait_for)

    def test_metrics_are_prometheus_text(self):
        self.s.wait_for(self.s.submit(job(shell("a", "true"))))
        answer = self.s.ask("GET", "/metrics")
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain"))
        typed = set()
        sample = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_]\w*="[^"]*"(,[a-zA-Z_]\w*="[^"]*")*\})? (-?[0-9.e+]+|NaN|[+-]Inf)$')
        names = set()
        for line in answer.body.decode().splitlines():
            if match := re.match(r"# TYPE (\S+) (counter|gauge|histogram|summary)$", line):
                typed.add(match[1])
            elif not line.startswith("#"):
                match = sample.match(line)
                self.assertTrue(match, line)
                self.assertIn(match[1], typed)
                names.add(match[1])
        self.assertGreaterEqual(names, {"slipway_jobs", "slipway_nodes", "slipway_unauthorized_total"})

    def test_healthz_without_a_token(self):
        self.assertEqual(self.s.ask("GET", "/healthz", token=None).status, 200)

    def test_an_idempotency_key_gives_the_same_job(self):
        first = self.s.ask("POST", "/v1/jobs", body=job(shell("a", "true")), headers={"Idempotency-Key": "k-1"})
        again = self.s.ask("POST", "/v1/jobs", body=job(shell("a", "true")), headers={"Idempotency-Key": "k-1"})
        other = self.s.ask("POST", "/v1/jobs", body=job(shell("a", "true")), headers={"Idempotency-Key": "k-2"})
        self.assertEqual(first.json["id"], again.json["id"])
        self.assertNotEqual(first.json["id"], other.json["id"])
        self.assertEqual(first.headers["Location"], "/v1/jobs/" + first.json["id"])

    def test_blobs(self):
        import hashlib

        content = os.urandom(100_000)
        name = hashlib.sha256(content).hexdigest()
        self.assertEqual(self.s.ask("POST", "/v1/blobs/missing", body={"hashes": [name]}).json["missing"], [name])
        self.assertEqual(self.s.ask("PUT", f"/v1/blobs/{'1' * 64}", body=content).status, 400, "content and hash differ")
        self.assertEqual(self.s.ask("PUT", f"/v1/blobs/{name}", body=content).status, 201)
        self.assertEqual(self.s.ask("POST", "/v1/blobs/missing", body={"hashes": [name]}).json["missing"], [])
        self.assertEqual(self.s.ask("GET", f"/v1/blobs/{name}").body, content)
        self.assertEqual(self.s.ask("PUT", f"/v1/blobs/{name}", body=content).status, 200)
        ranged = self.s.ask("GET", f"/v1/blobs/{name}", headers={"Range": "bytes=10-19"})
        self.assertEqual((ranged.status, ranged.body), (206, content[10:20]))


if __name__ == "__main__":
    unittest.main()
