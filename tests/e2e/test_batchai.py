"""The Batch AI compatibility API over plain HTTP: requests that no SDK sends, and access rules."""

import glob
import json
import signal
import unittest
import urllib.parse

from harness import SharedServiceCase, wait_until

GROUP = "/subscriptions/lab/resourceGroups/ml/providers/Microsoft.BatchAI"
VERSION = "api-version=2018-05-01"
CLUSTER = {"properties": {"vmSize": "cpu", "userAccountSettings": {"adminUserName": "ops"},
                          "scaleSettings": {"manual": {"targetNodeCount": 0}}}}
SERVER = {"properties": {"vmSize": "x", "sshConfiguration": {"userAccountSettings": {"adminUserName": "ops"}},
                         "dataDisks": {"diskSizeInGB": 1, "diskCount": 1, "storageAccountType": "Standard_LRS"}}}
ROUTES = [
    ("GET", "/providers/Microsoft.BatchAI/operations"),
    ("GET", "/subscriptions/lab/providers/Microsoft.BatchAI/locations/local/usages"),
    ("GET", "/subscriptions/lab/providers/Microsoft.BatchAI/workspaces"),
    ("GET", GROUP + "/workspaces"),
    *[(m, GROUP + "/workspaces/w") for m in ("PUT", "PATCH", "GET", "DELETE")],
    ("GET", GROUP + "/workspaces/w/experiments"),
    *[(m, GROUP + "/workspaces/w/experiments/e") for m in ("PUT", "GET", "DELETE")],
    ("GET", GROUP + "/workspaces/w/experiments/e/jobs"),
    *[(m, GROUP + "/workspaces/w/experiments/e/jobs/j") for m in ("PUT", "GET", "DELETE")],
    *[("POST", GROUP + "/workspaces/w/experiments/e/jobs/j/" + a)
      for a in ("terminate", "listOutputFiles", "listRemoteLoginInformation")],
    ("GET", GROUP + "/workspaces/w/clusters"),
    *[(m, GROUP + "/workspaces/w/clusters/c") for m in ("PUT", "PATCH", "GET", "DELETE")],
    ("POST", GROUP + "/workspaces/w/clusters/c/listRemoteLoginInformation"),
    ("GET", GROUP + "/workspaces/w/fileServers"),
    *[(m, GROUP + "/workspaces/w/fileServers/f") for m in ("PUT", "GET", "DELETE")],
    ("GET", "/subscriptions/lab/providers/Microsoft.BatchAI/locations/local/operationresults/x"),
    ("GET", "/subscriptions/lab/providers/Microsoft.BatchAI/locations/local/operationstatuses/x"),
]


class BatchAiApi(SharedServiceCase):
    pool_nodes = 0

    def ask(self, method, path, body=None, status=200, code=None, **options):
        answer = self.s.ask(method, path + ("&" if "?" in path else "?") + VERSION, body=body, **options)
        self.assertEqual(answer.status, status, f"{method} {path}: {answer!r}")
        if code:
            self.assertEqual(answer.json["error"]["code"], code)
        return answer

    def workspace(self, name, **tags):
        path = f"{GROUP}/workspaces/{name}"
        self.ask("PUT", path, {"location": "local", "tags": tags})
        self.addCleanup(self.s.ask, "DELETE", path)
        return path

    def token(self, workspace="default", role="member"):
        answer = self.s.ask("POST", "/v1/tokens", body={"name": "t", "workspace": workspace, "role": role})
        self.assertEqual(answer.status, 201)
        return answer.json["token"]

    def job(self, path, **more):
        return {"properties": {"cluster": {"id": path + "/clusters/c"}, "nodeCount": 1,
                               "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT",
                               "customToolkitSettings": {"commandLine": "true"}, **more}}

    def test_every_route_needs_a_token_and_answers_as_azure_does(self):
        for method, path in ROUTES:
            for token in (None, "wrong"):
                with self.subTest(route=f"{method} {path}", token=token):
                    answer = self.ask(method, path, {} if method in ("PUT", "PATCH") else None, 401,
                                      "AuthenticationFailed", token=token)
                    self.assertEqual(answer.headers["Content-Type"], "application/json; charset=utf-8")

    def test_roles(self):
        viewer = self.token(role="viewer")
        path = self.workspace("seen")
        self.ask("GET", path, token=viewer)
        self.ask("PUT", path, {"location": "local"}, 403, "AuthorizationFailed", token=viewer)
        self.ask("DELETE", path, None, 403, "AuthorizationFailed", token=viewer)
        with open(self.s.data + "/node-token") as file:
            self.ask("GET", path, None, 403, "AuthorizationFailed", token=file.read().strip())

    def test_another_workspace_of_the_service_sees_nothing(self):
        path = self.workspace("mine")
        self.ask("PUT", path + "/clusters/c", CLUSTER)
        other = self.token(workspace="elsewhere")
        self.ask("GET", path, None, 404, "WorkspaceNotFound", token=other)
        self.ask("DELETE", path, None, 204, token=other)
        self.assertEqual(self.ask("GET", GROUP + "/workspaces", token=other).json["value"], [])
        self.ask("GET", path + "/clusters/c")

    def test_paths_in_any_case(self):
        path = self.workspace("Mixed")
        self.ask("PUT", path.upper().replace("MIXED", "mixed") + "/EXPERIMENTS/Digits")
        shown = self.ask("GET", path.lower() + "/experiments/DIGITS").json
        self.assertEqual(shown["id"], path + "/experiments/Digits")
        self.assertEqual(shown["name"], "Digits")

    def test_versions(self):
        path = self.workspace("versions")
        self.assertEqual(self.s.ask("GET", path + "?api-version=2018-03-01").status, 200)
        answer = self.s.ask("GET", path + "?api-version=2030-01-01")
        self.assertEqual((answer.status, answer.json["error"]["code"]), (400, "NoRegisteredProviderFound"))

    def test_missing_resources_are_not_found(self):
        path = self.workspace("empty")
        self.ask("PUT", path + "/experiments/e")
        for method, tail, code in (("GET", "/clusters/c", "ClusterNotFound"), ("PATCH", "/clusters/c", "ClusterNotFound"),
                                   ("GET", "/fileServers/f", "FileServerNotFound"),
                                   ("GET", "/experiments/x", "ExperimentNotFound"),
                                   ("GET", "/experiments/x/jobs", "ExperimentNotFound"),
                                   ("GET", "/experiments/e/jobs/j", "JobNotFound"),
                                   ("POST", "/experiments/e/jobs/j/terminate", "JobNotFound"),
                                   ("PUT", "/../none/experiments/e", "ResourceNotFound")):
            with self.subTest(path=tail):
                answer = self.ask(method, path + tail, {} if method == "PATCH" else None, 404, code)
                self.assertEqual(answer.headers["Cache-Control"], "no-cache")
                self.assertRegex(answer.headers["request-id"], r"^[-0-9a-f]{36}$")
        for tail in ("/clusters/c", "/fileServers/f", "/experiments/x", "/experiments/e/jobs/j"):
            self.ask("DELETE", path + tail, None, 204)
        self.ask("POST", path, None, 405, "MethodNotAllowed")
        self.ask("GET", path + "/clusters/a.b", None, 400, "InvalidResourceName")

    def test_every_problem_of_a_body_at_once(self):
        path = self.workspace("strict")
        self.ask("PUT", path + "/experiments/e")
        body = json.dumps({"properties": {"nodeCount": 0, "inputDirectories": [{"id": "a b"}], "comment": "x"}}, indent=1)
        error = self.ask("PUT", path + "/experiments/e/jobs/j", body, 400, "InvalidRequestBody").json["error"]
        targets = {detail["target"] for detail in error["details"]}
        self.assertLessEqual({"properties.nodeCount", "properties.cluster", "properties.stdOutErrPathPrefix", "properties",
                              "properties.inputDirectories[0].path", "properties.inputDirectories[0].id"}, targets)
        self.assertIn("line 3: properties.nodeCount", " ".join(detail["message"] for detail in error["details"]))
        self.ask("PUT", path + "/experiments/e/jobs/j", "{", 400, "InvalidRequestBody")
        vault = {"sourceVault": {"id": "/x"}, "secretUrl": "https://v/secrets/s"}
        body = self.job(path, secrets=[{"name": "S", "valueSecretReference": vault}])
        error = self.ask("PUT", path + "/experiments/e/jobs/j", body, 400).json["error"]
        self.assertIn("key vault", error["message"])

    def test_lists_in_pages(self):
        path = self.workspace("pages")
        names = [f"cluster-number-{i}" for i in range(5)]
        for name in names:
            self.ask("PUT", f"{path}/clusters/{name}", CLUSTER)
        link, seen = f"{path}/clusters?maxresults=2&{VERSION}&x=a%20b", []
        while link:
            page = self.s.get(link)
            self.assertLessEqual(len(page["value"]), 2)
            seen += [one["name"] for one in page["value"]]
            link = page.get("nextLink")
            if link:
                parts = urllib.parse.urlsplit(link)
                self.assertEqual(f"{parts.scheme}://{parts.netloc}", self.s.url)
                query = urllib.parse.parse_qs(parts.query)
                self.assertEqual((query["maxresults"], query["x"], query["api-version"]), (["2"], ["a b"], ["2018-05-01"]))
                link = link[len(self.s.url):]
        self.assertEqual(seen, names)
        self.ask("GET", path + "/clusters?maxresults=0", None, 400, "InvalidParameter")
        self.ask("GET", path + "/clusters?maxresults=1001", None, 400, "InvalidParameter")
        answer = self.s.ask("GET", f"{path}/clusters?maxresults=1", headers={"X-Forwarded-Proto": "https", "Host": "10.1.2.3"})
        self.assertTrue(answer.json["nextLink"].startswith("https://10.1.2.3/subscriptions/"))

    def test_the_same_body_again_and_another(self):
        path = self.workspace("again")
        for tail, body, change, code in (
                ("/clusters/c", CLUSTER, {"vmSize": "gpu1"}, "ClusterAlreadyExists"),
                ("/fileServers/f", SERVER, {"vmSize": "y"}, "FileServerAlreadyExists")):
            first = self.ask("PUT", path + tail, body)
            again = self.ask("PUT", path + tail, body)
            self.assertEqual(first.json["properties"]["creationTime"], again.json["properties"]["creationTime"])
            self.assertEqual(self.ask("GET", path + tail).headers["ETag"], again.headers["ETag"])
            self.ask("PUT", path + tail, {"properties": {**body["properties"], **change}}, 409, code)
        self.ask("PUT", path + "/experiments/e")
        job = self.job(path, secrets=[{"name": "S", "value": "one"}])
        first = self.ask("PUT", path + "/experiments/e/jobs/j", job)
        again = self.ask("PUT", path + "/experiments/e/jobs/j", job)
        segment = "jobOutputDirectoryPathSegment"
        self.assertEqual(first.json["properties"][segment], again.json["properties"][segment])
        other = self.job(path, secrets=[{"name": "S", "value": "two"}])
        self.ask("PUT", path + "/experiments/e/jobs/j", other, 409, "JobAlreadyExists")

    def test_secrets_are_neither_returned_nor_stored_in_plain_text(self):
        path = self.workspace("secrets")
        cluster = json.loads(json.dumps(CLUSTER))
        cluster["properties"]["userAccountSettings"]["adminUserPassword"] = "sesame-1"
        cluster["properties"]["nodeSetup"] = {
            "setupTask": {"commandLine": "true", "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/s",
                          "secrets": [{"name": "S", "value": "sesame-2"}]},
            "mountVolumes": {"azureFileShares": [{"accountName": "a", "azureFileUrl": "https://a.file.core.windows.net/s",
                                                  "credentials": {"accountKey": "sesame-3"}, "relativeMountPath": "s"}]}}
        made = self.ask("PUT", path + "/clusters/c", cluster)
        self.assertNotIn(b"sesame", made.body)
        shown = made.json["properties"]["nodeSetup"]
        self.assertEqual(shown["setupTask"]["secrets"], [{"name": "S"}])
        self.assertEqual(shown["mountVolumes"]["azureFileShares"][0]["credentials"], {})
        self.ask("PUT", path + "/experiments/e")
        job = self.job(path, secrets=[{"name": "S", "value": "sesame-4"}])
        self.assertNotIn(b"sesame", self.ask("PUT", path + "/experiments/e/jobs/j", job).body)
        self.assertNotIn(b"sesame", self.s.ask("GET", "/v1/pools").body)
        for name in ("slipway.db", "slipway.db-wal"):
            with open(f"{self.s.data}/{name}", "rb") as file:
                self.assertNotIn(b"sesame", file.read())

    def test_old_paths_use_the_default_workspace(self):
        self.ask("PUT", GROUP + "/clusters/old", CLUSTER)
        shown = self.ask("GET", GROUP + "/workspaces/default/clusters/old").json
        self.assertEqual(shown["name"], "old")
        self.ask("PUT", GROUP + "/jobs/j", {"location": "eastus", **self.job(GROUP, cluster={"id": GROUP + "/clusters/old"})})
        self.ask("GET", GROUP + "/workspaces/default/experiments/default/jobs/j")
        self.ask("DELETE", GROUP + "/workspaces/default")

    def test_a_cluster_of_the_same_name_in_two_workspaces(self):
        one, two = self.workspace("one"), self.workspace("two")
        for path in (one, two):
            self.ask("PUT", path + "/clusters/c", CLUSTER)
            self.ask("PUT", path + "/experiments/e")
        self.ask("PUT", one + "/experiments/e/jobs/j", self.job(two))  # a cluster may lie elsewhere
        self.assertEqual(self.ask("GET", one + "/experiments/e/jobs/j").json["properties"]["cluster"]["id"], two + "/clusters/c")
        self.ask("DELETE", two + "/clusters/c")
        self.ask("GET", one + "/clusters/c")
        job = wait_until(lambda: (j := self.ask("GET", one + "/experiments/e/jobs/j").json["properties"])["executionState"]
                         == "failed" and j)
        self.assertEqual(job["executionInfo"]["errors"][0]["code"], "JobTerminated")
        self.assertNotIn("exitCode", job["executionInfo"])

    def test_queued_job_is_terminated(self):
        path = self.workspace("waits")
        self.ask("PUT", path + "/clusters/c", CLUSTER)
        self.ask("PUT", path + "/experiments/e")
        shown = self.ask("PUT", path + "/experiments/e/jobs/j", self.job(path, nodeCount=7)).json["properties"]
        self.assertEqual(shown["executionState"], "queued")
        self.assertNotIn("executionInfo", shown)
        self.assertEqual(self.ask("POST", path + "/experiments/e/jobs/j/listOutputFiles?outputdirectoryid=stdOuterr").json,
                         {"value": []})
        self.assertEqual(self.ask("POST", path + "/experiments/e/jobs/j/listRemoteLoginInformation").json, {"value": []})
        self.ask("POST", path + "/experiments/e/jobs/j/listOutputFiles", None, 400, "InvalidParameter")
        self.ask("POST", path + "/experiments/e/jobs/j/listOutputFiles?outputdirectoryid=stdouterr&linkexpiryinminutes=4",
                 None, 400, "InvalidParameter")
        self.ask("POST", path + "/experiments/e/jobs/j/terminate")
        shown = self.ask("GET", path + "/experiments/e/jobs/j").json["properties"]
        self.assertEqual(shown["executionState"], "failed")
        self.assertEqual(shown["executionInfo"]["startTime"], shown["executionInfo"]["endTime"])
        self.assertEqual(shown["executionInfo"]["errors"][0]["code"], "JobTerminated")
        self.ask("POST", path + "/experiments/e/jobs/j/terminate")

    def test_a_container_without_an_engine_or_image(self):
        path = self.workspace("contained")
        self.ask("PUT", path + "/clusters/c", {"properties": {**CLUSTER["properties"],
                                                              "scaleSettings": {"manual": {"targetNodeCount": 1}}}})
        self.ask("PUT", path + "/experiments/e")
        image = {"imageSourceRegistry": {"image": "localhost:1/there/is/none:1"}}
        self.ask("PUT", path + "/experiments/e/jobs/j", self.job(path, containerSettings=image))
        job = wait_until(lambda: (j := self.ask("GET", path + "/experiments/e/jobs/j").json["properties"])["executionState"]
                         == "failed" and j)
        error = job["executionInfo"]["errors"][0]
        self.assertEqual(error["code"], "FailedStartingContainer")
        self.assertIn({"name": "imageName", "value": "localhost:1/there/is/none:1"}, error["details"])

    def test_unknown_operations(self):
        self.ask("GET", "/subscriptions/lab/providers/Microsoft.BatchAI/locations/local/operationresults/none", None, 404)
        self.assertEqual(self.s.ask("GET", "/batchai/download/1/2/3/4/5/6", token=None).status, 403)
        self.assertEqual(self.s.ask("GET", "/batchai/download/x", token=None).status, 404)

    def test_deletions_continue_after_a_restart(self):
        path = self.workspace("torn")
        self.ask("PUT", path + "/clusters/c", {"properties": {**CLUSTER["properties"],
                                                              "scaleSettings": {"manual": {"targetNodeCount": 1}}}})
        self.ask("PUT", path + "/experiments/e")
        wait_until(lambda: self.ask("GET", path + "/clusters/c").json["properties"]["nodeStateCounts"]["idleNodeCount"] == 1)
        streams = lambda: set(glob.glob(self.s.data + "/workspaces/default/jobs/*/run.1/stdout.txt"))
        before = streams()
        frozen = list(self.s.pids("keeper").values())  # so that what runs there cannot end
        self.s.kill(*frozen, sig=signal.SIGSTOP)
        try:
            self.ask("PUT", path + "/experiments/e/jobs/j", self.job(path))
            # Its streams are made when the keeper gets the request to start it: from then on nothing ends it but the keeper.
            wait_until(lambda: streams() - before)
            self.assertIn("operationresults", self.ask("DELETE", path, None, 202).headers["Azure-AsyncOperation"])
            self.assertEqual(self.ask("GET", path).json["properties"]["provisioningState"], "deleting")
            self.ask("PUT", path + "/experiments/f", None, 409, "OperationNotAllowed")
            self.s.kill_service()
            self.s.up()
            self.assertEqual(self.ask("GET", path).json["properties"]["provisioningState"], "deleting")
        finally:
            self.s.kill(*frozen, sig=signal.SIGCONT)
        wait_until(lambda: self.s.ask("GET", path).status == 404)


if __name__ == "__main__":
    unittest.main()
