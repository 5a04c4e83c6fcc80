"""By what machines join: found by attacking a running service, each closed. Named after the list (H2, M5)."""

import http.client
import http.server
import os
import stat
import threading
import unittest

from agent_socket import AgentSocket, Refused
from harness import SharedServiceCase, SlipwayCase, wait_until

KEY = "slipway_" + "1" * 48
OTHER_KEY = "slipway_" + "2" * 48


class H2(SharedServiceCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.s.ok("pool", "create", "far", "--provisioner", "none")

    def make(self, role="node", **more):
        answer = self.s.ask("POST", "/v1/tokens", body={"name": "someone", "role": role, **more})
        self.assertEqual(answer.status, 201, answer)
        return answer.json

    def dial(self, token, key=None):
        connection = AgentSocket(self.s.port, token, key)
        self.addCleanup(connection.close)
        return connection

    def tokens(self):
        return {token["id"]: token for token in self.s.get("/v1/tokens")["items"]}

    def state(self, node):
        return self.s.get(f"/v1/nodes/{node}")["state"]

    def test_H2_member_tokens_do_not_connect_as_nodes(self):
        for role in ("member", "viewer"):
            with self.assertRaises(Refused) as refused:
                self.dial(self.make(role)["token"])
            self.assertEqual(refused.exception.status, 403)

    def test_H2_a_join_token_is_used_up_and_becomes_the_key_of_its_node(self):
        made = self.make()
        self.assertEqual(made["uses_left"], 1)
        first = self.dial(made["token"], KEY).hello("a-1")
        self.assertEqual(first.next()["type"], "welcome")
        self.assertNotIn(made["id"], self.tokens())
        with self.assertRaises(Refused) as refused:
            self.dial(made["token"], OTHER_KEY)
        self.assertEqual(refused.exception.status, 401)
        (key,) = [token for token in self.tokens().values() if token.get("node") == "a-1"]
        self.assertEqual((key["role"], key["author"]), ("node", "someone"))
        first.close()
        # It comes back by its key, whatever has become of the join token; also after a restart of the service.
        again = self.dial(made["token"], KEY).hello("a-1")
        self.assertEqual(again.next()["type"], "welcome")
        self.s.kill_service()
        self.s.up()
        self.assertEqual(self.dial("", KEY).hello("a-1").next()["type"], "welcome")

    def test_H2_a_token_for_several_machines(self):
        made = self.make(uses=2)
        for i, left in ((1, 1), (2, None)):
            key = f"slipway_{i}" + "b" * 40
            self.assertEqual(self.dial(made["token"], key).hello(f"b-{i}").next()["type"], "welcome")
            self.assertEqual(self.tokens().get(made["id"], {}).get("uses_left"), left)
        with self.assertRaises(Refused):
            self.dial(made["token"])
        answer = self.s.ask("POST", "/v1/tokens", body={"name": "x", "role": "member", "uses": 2})
        self.assertEqual(answer.status, 400, answer)

    def test_H2_the_last_use_of_a_token_is_given_to_one(self):
        made = self.make()
        both = [self.dial(made["token"], f"slipway_{i}" + "c" * 40) for i in range(2)]
        for i, connection in enumerate(both):
            connection.hello(f"c-{i}")
        # The other is refused, or cut where the token was used up before its hello was read.
        answers = sorted((connection.next() or {"type": "refused"})["type"] for connection in both)
        self.assertEqual(answers, ["refused", "welcome"])

    def test_H2_a_key_lets_in_its_own_node_only(self):
        self.dial(self.make()["token"], "slipway_" + "d" * 48).hello("d-1").next()
        self.dial(self.make()["token"], "slipway_" + "e" * 48).hello("d-2").next()
        answer = self.dial("", "slipway_" + "d" * 48).hello("d-2").next()
        self.assertEqual((answer["type"], answer["final"]), ("refused", True))
        self.assertIn("the key of node d-1", answer["reason"])

    def test_H2_who_knows_the_instance_does_not_take_over_a_live_node(self):
        live = self.dial(self.make()["token"], "slipway_" + "f" * 48).hello("f-1", instance="00112233")
        self.assertEqual(live.next()["type"], "welcome")
        for local in (False, True):
            answer = self.dial(self.make()["token"], OTHER_KEY).hello("f-1", instance="00112233", local=local).next()
            self.assertEqual(answer["type"], "refused", answer)
        self.assertEqual(self.state("f-1"), "idle")
        live.close()
        wait_until(lambda: self.state("f-1") != "idle")
        answer = self.dial(self.make()["token"], OTHER_KEY).hello("f-1", instance="00112233").next()
        self.assertEqual((answer["type"], answer["final"]), ("refused", True))
        self.assertIn("has a key", answer["reason"])

    def test_H2_a_second_hello_is_refused_and_forges_no_logs(self):
        honest = self.dial(self.make()["token"], "slipway_" + "g" * 48).hello("g-1")
        self.assertEqual(honest.next()["type"], "welcome")
        other = self.dial(self.make()["token"], "slipway_" + "h" * 48).hello("g-2")
        self.assertEqual(other.next()["type"], "welcome")
        other.hello("g-1")
        self.assertIsNone(other.until("nothing"), "the connection should be closed")
        self.assertEqual(self.state("g-1"), "idle")
        wait_until(lambda: self.state("g-2") != "idle")

    def test_H2_a_session_has_its_name_from_the_welcome(self):
        live = self.dial(self.make()["token"], "slipway_" + "i" * 48).hello("i-1")
        self.assertEqual(live.next()["type"], "welcome")
        # Refused, and open for as long as it does not answer the close: no question about i-1 goes there.
        self.dial(self.make()["token"], OTHER_KEY).hello("i-1")
        self.assertEqual(self.state("i-1"), "idle")

    def test_H2_revoking_closes_sessions_and_streams_at_once(self):
        node = self.dial(self.make()["token"], "slipway_" + "k" * 48).hello("k-1")
        self.assertEqual(node.next()["type"], "welcome")
        (key,) = [token["id"] for token in self.tokens().values() if token.get("node") == "k-1"]
        self.s.ok("token", "revoke", key, "--yes")
        self.assertIsNone(node.until("nothing"), "the session of a revoked key stays open")
        with self.assertRaises(Refused):
            self.dial("", "slipway_" + "k" * 48)
        member = self.make("viewer")
        connection = self.s.connect(timeout=20)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/events?follow=true", headers={"Authorization": "Bearer " + member["token"],
                                                                     "Accept": "text/event-stream"})
        stream = connection.getresponse()
        self.assertEqual(stream.status, 200)
        self.assertEqual(stream.headers["Content-Type"], "text/event-stream")
        self.s.ok("token", "revoke", member["id"], "--yes")
        try:
            while stream.read1(65536):
                pass  # what had happened before; then the end, or the test's time is over
        except (ConnectionError, http.client.IncompleteRead):
            pass

    def test_H2_the_command_line_joins_with_a_key_in_the_nodes_folder(self):
        s = self.s
        token = os.path.join(s.base, "one.token")
        s.ok("token", "create", "rack", "--role", "node", "--to", token)
        folder = os.path.join(s.base, "real-1")
        s.also.append(folder)
        command = ("node", "run", "--service", s.url, "--token-file", token, "--pool", "far", "--name", "real-1", "--folder", folder)
        agent = s.spawn(*command)
        wait_until(lambda: s.ask("GET", "/v1/nodes/real-1").status == 200)
        wait_until(lambda: self.state("real-1") == "idle")
        self.assertEqual(stat.S_IMODE(os.stat(folder + "/node-key").st_mode), 0o600)
        agent.terminate()
        agent.wait()
        os.remove(token)
        agent = s.spawn(*command)
        wait_until(lambda: self.state("real-1") == "idle")
        agent.terminate()
        agent.wait()


class M5(SlipwayCase):
    def test_M5_the_local_admin_token_goes_to_its_own_service_only(self):
        s = self.service()
        seen = []

        class Thief(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(self.headers.get("Authorization"))
                self.send_response(401)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        thief = http.server.HTTPServer(("127.0.0.1", 0), Thief)
        threading.Thread(target=thief.serve_forever, daemon=True).start()
        self.addCleanup(thief.server_close)
        self.addCleanup(thief.shutdown)
        url = f"http://127.0.0.1:{thief.server_address[1]}"
        s.refused("job", "list", "--service", url, says=["belongs to another service", "--token-file"])
        s.refused("job", "list", env={"SLIPWAY_SERVICE": url})
        self.assertEqual(seen, [None, None])
        s.refused("job", "list", "--service", url, "--token-file", s.data + "/token")  # the user said so
        self.assertEqual(seen[-1], "Bearer " + s.token)
        s.ok("job", "list", "--service", s.url)
        s.ok("job", "list")


if __name__ == "__main__":
    unittest.main()
