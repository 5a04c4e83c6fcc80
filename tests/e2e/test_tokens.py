"""Who may do what: tokens, roles, workspaces."""

import glob
import os
import signal
import stat
import unittest

from harness import SharedServiceCase, SlipwayCase, job, shell, wait_until
from test_api_contract import routes


class Tokens(SharedServiceCase):
    def make(self, role, workspace="default", name="someone"):
        answer = self.s.ask("POST", "/v1/tokens", body={"name": name, "role": role, "workspace": workspace})
        self.assertEqual(answer.status, 201, answer)
        return answer.json["token"], answer.json["id"]

    def test_every_route_but_open_ones_needs_a_token(self):
        before = self.unauthorized()
        asked = 0
        for method, path in routes():
            path = path.replace("{hash}", "0" * 64).replace("{", "").replace("}", "")
            for token in (None, "slipway_wrong"):
                with self.subTest(route=f"{method} {path}", token=token):
                    answer = self.s.ask(method, path, token=token, body="{}" if method in ("POST", "PUT", "PATCH") else None)
                    if path == "/v1/schemas/job.json" or not path.startswith(("/v1/", "/metrics")):  # the same for everybody
                        self.assertEqual(answer.status, 404 if path.startswith("/ui/") else 200)
                        continue
                    if method == "POST" and path.startswith("/v1/login") and path != "/v1/login/links":  # says by itself who asks
                        self.assertIn(answer.status, (400, 404))
                        continue
                    asked += 1
                    self.assertEqual(answer.status, 401)
                    self.assertEqual(answer.headers["WWW-Authenticate"], "Bearer")
                    self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        self.assertEqual(self.unauthorized() - before, asked, "a wrong token leaves a counter")
        self.assertEqual(self.s.ask("GET", "/v1/nothing", token=None).status, 401)
        for scheme in ("Basic " + self.s.token, self.s.token, "Bearer", "Bearer "):
            answer = self.s.ask("GET", "/v1/jobs", token=None, headers={"Authorization": scheme})
            self.assertEqual(answer.status, 401, scheme)

    def unauthorized(self):
        for line in self.s.ask("GET", "/metrics").body.decode().splitlines():
            if line.startswith("slipway_unauthorized_total "):
                return int(float(line.split()[1]))
        self.fail("no counter of requests without a token")

    def test_command_line_errors_name_the_cause(self):
        wrong = self.s.write("wrong.token", "slipway_wrong\n")
        ran = self.s.refused("job", "list", "--token-file", wrong)
        self.assertIn("token", ran.err)

    def test_a_viewer_reads_and_does_not_write(self):
        token, _ = self.make("viewer")
        for path in ("/v1/jobs", "/v1/pools", "/v1/nodes", "/v1/events", "/v1/service", "/metrics"):
            self.assertEqual(self.s.ask("GET", path, token=token).status, 200, path)
        for method, path, body in [
            ("POST", "/v1/jobs", job(shell("a", "true"))), ("POST", "/v1/pools", {"name": "x", "nodes": 0}),
            ("PATCH", "/v1/pools/lab", {"nodes": 1}), ("DELETE", "/v1/pools/lab", None),
            ("POST", "/v1/nodes/lab-1/drain", None), ("POST", "/v1/service/stop", {}),
            ("POST", "/v1/tokens", {"name": "x", "role": "admin"}), ("DELETE", "/v1/tokens/token_x", None),
            ("GET", "/v1/nodes/connect", None), ("PUT", "/v1/blobs/" + "0" * 64, "x"),
        ]:
            with self.subTest(route=f"{method} {path}"):
                answer = self.s.ask(method, path, body=body, token=token)
                self.assertEqual(answer.status, 403, answer)
                self.assertEqual(answer.json["code"], "denied")

    def test_a_member_works_and_does_not_administer(self):
        token, _ = self.make("member", name="ana")
        answer = self.s.ask("POST", "/v1/jobs", body=job(shell("a", "true")), token=token)
        self.assertEqual(answer.status, 201, answer)
        self.assertEqual(answer.json["submitted_by"], "ana")
        self.assertEqual(self.s.wait_for(answer.json["id"])["state"], "succeeded")
        for method, path, body in [
            ("POST", "/v1/service/stop", {}), ("GET", "/v1/users", None),
            ("POST", "/v1/tokens", {"name": "x", "role": "viewer"}),  # of no user
            ("POST", "/v1/users", {"name": "x"}),
        ]:
            self.assertEqual(self.s.ask(method, path, body=body, token=token).status, 403, path)

    def test_a_node_token_only_joins(self):
        token, _ = self.make("node")
        for method, path, body in [
            ("GET", "/v1/jobs", None), ("POST", "/v1/jobs", job(shell("a", "true"))), ("GET", "/v1/tokens", None),
            ("GET", "/v1/events", None), ("GET", "/v1/nodes", None), ("POST", "/v1/service/stop", {}),
        ]:
            self.assertEqual(self.s.ask(method, path, body=body, token=token).status, 403, path)
        self.assertEqual(self.s.ask("GET", "/v1/nodes/connect", token=token).status, 400)  # no WebSocket, but let in
        self.assertEqual(self.s.ask("GET", "/v1/service/storage", token=token).status, 200)

    def test_another_workspace_sees_nothing(self):
        mine = self.s.submit(job(shell("a", "echo secret"), name="mine"))
        self.s.wait_for(mine)
        other, _ = self.make("admin", workspace="other", name="eve")
        for path in ("/v1/jobs", "/v1/pools", "/v1/nodes"):
            self.assertEqual(self.s.get(path, token=other)["items"], [], path)
        kinds = {event["kind"] for event in self.s.get("/v1/events", token=other)["items"]}
        self.assertLessEqual(kinds, {"token.created"})
        for path in (f"/v1/jobs/{mine}", "/v1/jobs/mine", f"/v1/jobs/{mine}/tasks", f"/v1/jobs/{mine}/tasks/a/logs",
                     f"/v1/jobs/{mine}/tasks/a/files", f"/v1/jobs/{mine}/why", "/v1/pools/lab", "/v1/nodes/lab-1",
                     f"/v1/events?job={mine}"):
            self.assertEqual(self.s.ask("GET", path, token=other).status, 404, path)
        for method, path in (("DELETE", f"/v1/jobs/{mine}"), ("POST", f"/v1/jobs/{mine}/cancel"),
                             ("POST", f"/v1/jobs/{mine}/resubmit"), ("POST", "/v1/nodes/lab-1/drain"),
                             ("DELETE", "/v1/pools/lab")):
            self.assertEqual(self.s.ask(method, path, token=other).status, 404, path)

    def test_another_workspace_does_not_see_counts(self):
        self.s.wait_for(self.s.submit(job(shell("a", "true"))))
        other, _ = self.make("admin", workspace="other", name="eve")
        service = self.s.get("/v1/service", token=other)
        self.assertEqual(sum(service["jobs"].values()), 0, service)
        self.assertEqual(sum(service["nodes"].values()), 0, service)

    def test_an_admin_of_another_workspace_has_no_power_here(self):
        other, _ = self.make("admin", workspace="other", name="eve")
        listed = self.s.get("/v1/tokens", token=other)["items"]
        self.assertEqual({token["workspace"] for token in listed}, {"other"}, "it sees the tokens of workspace default")
        _, mine = self.make("viewer", name="victim")
        self.assertEqual(self.s.ask("DELETE", f"/v1/tokens/{mine}", token=other).status, 404)
        made = self.s.ask("POST", "/v1/tokens", body={"name": "x", "role": "admin", "workspace": "default"}, token=other)
        self.assertEqual(made.status, 403, "it can make itself an admin of workspace default")

    def test_revoked_at_once(self):
        token, name = self.make("viewer")
        connection = self.s.connect()
        self.addCleanup(connection.close)

        def status():
            connection.request("GET", "/v1/jobs", headers={"Authorization": "Bearer " + token})
            response = connection.getresponse()
            response.read()
            return response.status

        self.assertEqual(status(), 200)
        self.s.ok("token", "revoke", name, "--yes")
        self.assertEqual(status(), 401)  # also on a connection that was there before
        self.assertEqual(self.s.ask("GET", "/v1/jobs", token=token).status, 401)

    def test_secrets_lie_nowhere_but_in_their_file(self):
        secret, _ = self.make("member")
        self.s.wait_for(self.s.submit(job(shell("a", "env"))))
        file = os.path.join(self.s.base, "kept.token")
        self.s.ok("token", "create", "kept", "--to", file)
        self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.s.data + "/token").st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.s.data + "/node-token").st_mode), 0o600)
        with open(self.s.data + "/node-token") as node_token, open(file) as kept:
            secrets = [secret, self.s.token, node_token.read().strip(), kept.read().strip()]
        searched = 0
        for path in glob.glob(self.s.data + "/**", recursive=True):
            if not os.path.isfile(path) or os.path.basename(path) in ("token", "node-token"):
                continue
            with open(path, "rb") as content:
                text = content.read()
            searched += 1
            for one in secrets:
                self.assertNotIn(one.encode(), text, path)
        self.assertGreater(searched, 5)

    def test_token_file_of_the_environment(self):
        file = os.path.join(self.s.base, "viewer.token")
        self.s.ok("token", "create", "v", "--role", "viewer", "--to", file)
        environment = {"SLIPWAY_TOKEN_FILE": file, "SLIPWAY_SERVICE": self.s.url}
        self.s.ok("job", "list", env=environment)
        self.s.refused("pool", "create", "x", env=environment, says="viewer")


class LastAdmin(SlipwayCase):
    def test_the_last_admin_token_stays(self):
        s = self.service()
        (admin,) = [token["id"] for token in s.get("/v1/tokens")["items"] if token["role"] == "admin"]
        s.refused("token", "revoke", admin, "--yes", says="last admin")
        # An admin of another workspace does not count.
        self.assertEqual(s.ask("POST", "/v1/tokens", body={"name": "o", "role": "admin", "workspace": "other"}).status, 201)
        secret = s.token
        answer = s.ask("DELETE", f"/v1/tokens/{admin}")
        if answer.status == 204:  # locked out: end it by its pid
            s.kill(s.pid, sig=signal.SIGTERM)
            wait_until(lambda: not s.pid)
        self.assertEqual(answer.status, 409, "the last admin token of the workspace could be revoked")
        self.assertEqual(s.token, secret)


if __name__ == "__main__":
    unittest.main()
