"""Users: added, signed in, disabled; what scripts that begin with a login see."""

import json
import os
import stat
import subprocess
import unittest

from harness import SLIPWAY, SlipwayCase, job, read_line, shell, wait_until


class Users(SlipwayCase):
    def setUp(self):
        self.s = self.service()
        self.outside = os.path.join(self.s.base, "elsewhere")  # of somebody who is not on the service's machine
        os.makedirs(self.outside)

    def ana(self, *words, **options):
        """A command as ana runs it: of the service she knows the address only."""
        environment = {"SLIPWAY_HOME": self.outside, "SLIPWAY_SERVICE": self.s.url}
        return self.s.run(*words, env=environment, **options)

    def test_from_an_invitation_to_being_disabled(self):
        code = self.s.ok("user", "add", "ana", "--role", "member", "--invite", "-o", "quiet").out.strip()
        password = self.s.write("password", "correct horse\n")
        signed = self.ana("login", "--user", "ana", "--code", code, "--set-password", "--password-file", password)
        self.assertEqual(signed.code, 0, signed)
        self.assertIn("as ana, member of workspace default", signed.err)
        (file,) = os.listdir(self.outside + "/logins")
        self.assertEqual(stat.S_IMODE(os.stat(f"{self.outside}/logins/{file}").st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.outside + "/logins").st_mode), 0o700)

        submitted = self.ana("submit", self.s.write("job.json", json.dumps(job(shell("a", "true")))))
        self.assertEqual(submitted.code, 0, submitted)
        (mine,) = self.s.get("/v1/jobs")["items"]
        self.assertEqual(mine["submitted_by"], "ana")
        self.assertNotEqual(self.ana("user", "list").code, 0)

        own = self.ana("token", "create", "ci", "--scope", "submit", "-o", "quiet")
        self.assertEqual(own.code, 0, own)
        self.s.ok("run", "--token-file", self.s.write("ci", own.out), "--", "true")
        self.assertEqual(self.ana("token", "create", "more", "--role", "admin").code, 1)
        self.assertIn("ci", self.ana("token", "list").out)
        self.assertEqual(self.ana("token", "revoke", "ci", "--yes").code, 0)

        self.assertEqual(self.ana("logout").code, 0)
        self.assertEqual(os.listdir(self.outside + "/logins"), [])
        self.assertNotEqual(self.ana("job", "list").code, 0)
        self.assertEqual(self.ana("login", "--user", "ana", "--password-file", "-", input="correct horse\n").code, 0)

        (file,) = os.listdir(self.outside + "/logins")
        watch = self.s.spawn("events", "-f", "--token-file", f"{self.outside}/logins/{file}")
        self.assertTrue(read_line(watch))  # it sees what was
        with open(f"{self.outside}/logins/{file}") as kept:
            waiting = self.s.submit(job(shell("a", "sleep 1000")), token=kept.read().strip())
        self.assertIn("1 job is cancelled", self.s.ok("user", "disable", "ana").err)
        ended = self.s.wait_for(waiting)
        self.assertEqual((ended["state"], ended["reason"]), ("cancelled", "cancelled: admin disabled user ana"))
        watch.wait(timeout=30)  # its stream was cut, and it is not let in again
        refused = self.ana("job", "list")
        self.assertEqual(refused.code, 1)
        self.assertIn("slipway login --user", refused.err)
        self.assertIn("disabled", self.ana("login", "--user", "ana", "--password-file", password).err)

    def test_a_login_without_a_user_shows_where_one_is(self):
        for words in (["login"], ["login", "-u", "me", "-p", "x"]):
            ran = self.s.run(*words, input="")
            self.assertEqual(ran.code, 0, ran)
            self.assertIsInstance(json.loads(ran.out), list)

    def test_a_login_needs_a_terminal_or_a_file(self):
        self.s.ok("user", "add", "ana")
        child = subprocess.run(["setsid", SLIPWAY, "login", "--user", "ana"], env=self.s.environment(), capture_output=True, text=True,
                               stdin=subprocess.DEVNULL)
        self.assertEqual(child.returncode, 2)
        self.assertIn("--password-file", child.stderr)

    def test_members_and_their_workspaces(self):
        password = self.s.write("password", "correct horse\n")
        self.s.ok("user", "add", "ana", "--password-file", password, "--workspace", "ml", "--role", "viewer")
        self.assertEqual(self.ana("login", "--user", "ana", "--password-file", password).code, 0)
        self.assertEqual(self.ana("workspace", "list", "-o", "quiet").out, "ml\n")
        self.assertEqual(self.ana("submit", self.s.write("job.json", json.dumps(job(shell("a", "true"))))).code, 1)
        self.s.ok("workspace", "member", "add", "ml", "ana", "--role", "admin")
        self.assertEqual(self.ana("token", "list", "-o", "quiet").code, 0)
        self.assertEqual(self.s.ok("workspace", "member", "list", "ml", "-o", "quiet").out, "ana\n")
        self.s.ok("workspace", "member", "remove", "ml", "ana", "--yes")
        self.assertEqual(self.ana("job", "list").code, 1)
        self.s.ok("user", "delete", "ana", "--yes")
        self.assertEqual(self.s.ok("user", "list", "-o", "quiet").out, "")

    def test_tokens_survive_a_restart_and_expire(self):
        self.s.ok("token", "create", "ci", "--role", "member", "--scope", "read", "--expires", "30d", "--to", self.s.base + "/ci")
        self.s.ok("job", "list", "--token-file", self.s.base + "/ci")
        self.s.down()
        self.s.up()
        listed = {token["name"]: token for token in self.s.get("/v1/tokens")["items"]}
        self.assertEqual(listed["ci"]["scope"], "read")
        self.assertIsNotNone(listed["ci"]["expires_at"])
        self.s.refused("run", "--token-file", self.s.base + "/ci", "--", "true", says="viewer")
        self.s.ok("token", "create", "brief", "--expires", "1s", "--to", self.s.base + "/brief")
        watch = self.s.spawn("events", "-f", "--token-file", self.s.base + "/brief")
        watch.wait(timeout=30)  # what it opened is cut when it expires
        wait_until(lambda: "brief" not in {token["name"] for token in self.s.get("/v1/tokens")["items"]})
        self.assertIn("token.expired", {event["kind"] for event in self.s.get("/v1/events")["items"]})
        new = self.s.ok("token", "rotate", "ci", "-o", "quiet").out.strip()
        self.s.refused("job", "list", "--token-file", self.s.base + "/ci", says="valid token")
        self.s.ok("job", "list", "--token-file", self.s.write("new", new))


if __name__ == "__main__":
    unittest.main()
