"""Secrets by name: given to processes, kept from everybody else, masked where that is asked for, sealed anew."""

import glob
import os
import re
import sqlite3
import stat
import subprocess
import tempfile
import unittest

from harness import Service, SharedServiceCase, SlipwayCase, blocker, job, shell, wait_until

VALUE = "hunter2-correct-horse"


def everything_below(folder):
    """Path and content of every file."""
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            try:
                with open(path, "rb") as file:
                    yield path, file.read()
            except OSError:
                continue


class Secrets(SharedServiceCase):
    def set(self, name, value, *more):
        self.s.ok("secret", "set", name, *more, input=value)

    def test_a_process_gets_a_variable_and_a_file_only_its_user_reads(self):
        self.set("var", VALUE + "\n")
        self.s.write("file.bin", "two\nlines\n")
        self.s.ok("secret", "set", "file", "--from-file", "file.bin", "--scope", "workspace")
        spec = job(shell("t", 'printf %s "$VAR"; cat "$FILE"; stat -c "%a %u" "$FILE" "$(dirname "$FILE")"; ulimit -c',
                         secrets={"VAR": {"from": "var"}, "FILE": {"from": "file", "file": True}, "OLD": "in the job"}))
        id = self.s.submit(spec)
        self.assertEqual(self.s.wait_for(id)["state"], "succeeded", self.s.log(id, "t", stream="stderr"))
        uid = os.geteuid()
        self.assertEqual(self.s.log(id, "t"), f"{VALUE}two\nlines\n600 {uid}\n700 {uid}\n0\n")
        shown = self.s.get(f"/v1/jobs/{id}?spec=all")["spec"]["tasks"][0]["secrets"]
        self.assertEqual(shown, {"VAR": {"from": "var"}, "FILE": {"from": "file", "file": True}, "OLD": ""})
        wait_until(lambda: not glob.glob(f"{self.s.data}/workspaces/default/jobs/{id}/**/slipway-secrets-*", recursive=True),
                   what="the files are removed")

    def test_the_service_does_not_serve_the_files(self):
        self.set("served", VALUE)
        wait, release = blocker(self.s.base, "served.go")
        id = self.s.submit(job(shell("t", 'echo "$KEY"; ' + wait, secrets={"KEY": {"from": "served", "file": True}})))
        wait_until(lambda: self.s.log(id, "t").strip(), what="it says where the file is")
        path = self.s.log(id, "t").strip()
        with open(path) as file:
            self.assertEqual(file.read(), VALUE)
        folder = os.path.basename(os.path.dirname(path))
        listed = [item["path"] for item in self.s.get(f"/v1/jobs/{id}/tasks/t/files")["items"]]
        self.assertIn("stdout.txt", listed)
        self.assertNotIn(folder, listed)
        for path in (f"{folder}/KEY", f"./{folder}/KEY", f"wd/../{folder}/KEY", folder):
            for what in (f"files/content?path={path}", f"files?path={path}"):
                self.assertIn(self.s.ask("GET", f"/v1/jobs/{id}/tasks/t/{what}").status, (400, 404), what)
        release()
        self.s.wait_for(id)

    def test_a_new_value_is_used_by_the_next_attempt(self):
        self.set("turns", "one")
        wait, release = blocker(self.s.base, "turns.go")
        command = 'echo "$V"; [ "$V" = two ] && exit 0; ' + wait + "; exit 1"
        id = self.s.submit(job(shell("t", command, retries=1, secrets={"V": {"from": "turns"}})))
        wait_until(lambda: self.s.log(id, "t", attempt=1) == "one\n", what="the first attempt runs")
        self.set("turns", "two")
        release()
        self.assertEqual(self.s.wait_for(id)["state"], "succeeded")
        self.assertEqual(self.s.log(id, "t", attempt=2), "two\n")

    def test_unknown_and_deleted_ones_are_explained(self):
        task = shell("t", "true", secrets={"V": {"from": "missing"}})
        answer = self.s.ask("POST", "/v1/jobs", body=job(task))
        self.assertEqual(answer.status, 400, answer)
        self.assertIn("secret missing in V", answer.json["detail"])
        self.set("missing", "x")
        wait, release = blocker(self.s.base, "deleted.go")
        first = shell("first", wait)
        id = self.s.submit(job(first, {**task, "depends_on": ["first"]}))
        self.s.ok("secret", "delete", "missing", "--yes")
        release()
        self.assertEqual(self.s.wait_for(id)["state"], "failed")
        self.assertIn("secret missing of admin was deleted", self.s.task(id, "t")["reason"])

    def test_values_are_nowhere_but_where_they_belong(self):
        value = "do-not-find-me-4711"
        self.set("hidden", value)
        wait, release = blocker(self.s.base, "hidden.go")
        id = self.s.submit(job(shell("t", wait, secrets={"V": {"from": "hidden"}, "INLINE": value})))
        self.s.wait_for_task(id, "t", "running")
        words = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout
        self.assertNotIn(value.encode(), words)
        release()
        self.s.wait_for(id)
        for path in ("/v1/secrets", "/v1/events?limit=1000", f"/v1/jobs/{id}?spec=all", f"/v1/jobs/{id}/tasks/t"):
            self.assertNotIn(value.encode(), self.s.ask("GET", path).body, path)
        self.assertEqual([path for path, content in everything_below(self.s.data) if value.encode() in content], [])

    def test_the_command_line_takes_no_value(self):
        self.s.refused("secret", "set", "x", "value", code=2)
        self.s.refused("secret", "set", "x", input="", says=["no value was given"])
        self.set("listed", "x")
        items = self.s.run("secret", "list", "-o", "json")
        self.assertIn("listed", [item["name"] for item in items.json["items"]] if isinstance(items.json, dict)
                      else [item["name"] for item in items.json])
        self.assertIn("listed", self.s.ok("secret", "list").out)


class Killed(SlipwayCase):
    def test_files_are_removed_after_the_agent_was_killed(self):
        s = self.service()
        s.pool("lab", 1)
        s.ok("secret", "set", "key", input=VALUE)
        wait, release = blocker(s.base)
        id = s.submit(job(shell("t", 'echo "$KEY"; ' + wait, secrets={"KEY": {"from": "key", "file": True}})))
        wait_until(lambda: s.log(id, "t").strip(), what="it says where the file is")
        path = s.log(id, "t").strip()
        self.assertTrue(os.path.exists(path))
        s.kill(s.agent("lab-1"))
        release()
        self.assertEqual(s.wait_for(id)["state"], "succeeded")
        wait_until(lambda: not os.path.exists(os.path.dirname(path)), what="the folder is removed")
        self.assertEqual([at for at, content in everything_below(s.data) if VALUE.encode() in content], [])


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class AsUsers(SlipwayCase):
    def test_a_file_belongs_to_the_user_the_job_runs_as(self):
        s = Service(arguments=("--run-as", "ana=20001:20001", "--run-as", "ben=20002:20002"), start=False)
        self.addCleanup(s.close)
        os.chmod(s.base, 0o711)
        s.up()
        s.pool("lab", 1, 2)
        tokens = {user: s.ask("POST", "/v1/tokens", body={"name": user, "role": "member"}).json["token"]
                  for user in ("ana", "ben")}
        self.assertEqual(s.ask("PUT", "/v1/secrets/key", body={"value": VALUE}, token=tokens["ana"]).status, 200)
        spec = job(shell("t", 'cat "$KEY"; echo; echo "$KEY"; exec sleep 600',
                         secrets={"KEY": {"from": "key", "file": True}}), pool="lab")
        refused = s.ask("POST", "/v1/jobs", body=spec, token=tokens["ben"])
        self.assertEqual(refused.status, 400, refused)
        id = s.submit(spec, token=tokens["ana"])
        wait_until(lambda: s.log(id, "t").count("\n") == 2, what="it has read its file")
        value, path = s.log(id, "t").split()
        self.assertEqual(value, VALUE)
        self.assertEqual((os.stat(path).st_uid, stat.S_IMODE(os.stat(path).st_mode)), (20001, 0o600))
        spy = s.submit(job(shell("t", f"cat {path}"), pool="lab"), token=tokens["ben"])
        self.assertEqual(s.wait_for(spy)["state"], "failed")
        self.assertNotIn(VALUE, s.log(spy, "t"))
        self.assertEqual(s.ask("POST", f"/v1/jobs/{id}/cancel", body={}).status, 200)
        s.wait_for(id)


class Masking(SlipwayCase):
    def test_every_way_to_read_a_stream_masks_values(self):
        s = self.service(arguments=("--mask-secrets",))
        s.pool("lab", 1)
        s.ok("secret", "set", "key", input=VALUE)
        # The second time it is printed in two writes.
        half = len(VALUE) // 2
        command = (f'echo "1 $KEY"; printf "2 %.{half}s" "$KEY"; sleep 0.3; echo "${{KEY#??????????}}" >/dev/null; '
                   f'printf %s "$(printf %s "$KEY" | tail -c +{half + 1})"; echo; echo "3 $INLINE"; echo "4 $KEY" >&2; exit 1')
        id = s.submit(job(shell("t", command, secrets={"KEY": {"from": "key"}, "INLINE": "inline-value"})))
        followed = s.run("logs", "-f", f"{id}/t")
        self.assertEqual(s.wait_for(id)["state"], "failed")
        stars = "*" * len(VALUE)
        self.assertEqual(s.log(id, "t"), f"1 {stars}\n2 {stars}\n3 {'*' * 12}\n")
        self.assertEqual(s.log(id, "t", tail=2), f"2 {stars}\n3 {'*' * 12}\n")
        for offset in range(0, 2 * len(VALUE), 7):
            self.assertEqual(s.log(id, "t", offset=offset), s.log(id, "t")[offset:])
        self.assertEqual(s.log(id, "t", stream="stderr"), f"4 {stars}\n")
        for text in (followed.out + followed.err, s.run("logs", f"{id}/t").out,
                     s.ask("GET", f"/v1/jobs/{id}/tasks/t/files/content?path=stdout.txt").body.decode(),
                     s.ask("GET", f"/v1/jobs/{id}/tasks/t").body.decode(), s.ask("GET", f"/v1/jobs/{id}/why").body.decode(),
                     s.ask("GET", f"/v1/jobs/{id}/attempts").body.decode()):
            self.assertIn("****", text)
            self.assertNotIn(VALUE, text)
            self.assertNotIn("inline-value", text)
        part = s.ask("GET", f"/v1/jobs/{id}/tasks/t/files/content?path=stdout.txt", headers={"Range": "bytes=6-12"})
        self.assertEqual((part.status, part.body), (206, b"*" * 7))
        s.ok("secret", "set", "key", input="another value")
        self.assertNotIn(VALUE, s.log(id, "t"), "what was used then is still masked")

    def test_without_it_output_is_as_it_was_written(self):
        s = self.service()
        s.pool("lab", 1)
        id = s.submit(job(shell("t", 'echo "$KEY"', secrets={"KEY": VALUE})))
        s.wait_for(id)
        self.assertEqual(s.log(id, "t"), VALUE + "\n")


class Keys(SlipwayCase):
    def runs_with(self, s, value):
        """Whether the secret `key` is given to a process as this value."""
        id = s.submit(job(shell("t", 'printf %s "$KEY"', secrets={"KEY": {"from": "key"}})))
        s.wait_for(id)
        return s.log(id, "t") == value

    def sealed(self, s):
        """Ids of the keys that anything in the database is sealed with."""
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "copy.db")
            with sqlite3.connect(f"file:{s.data}/slipway.db?mode=ro", uri=True) as database, sqlite3.connect(copy) as to:
                database.backup(to)
            with sqlite3.connect(copy) as database:
                text = "\n".join(database.iterdump())
        return set(re.findall(r"sealed:([0-9a-f]{8}):", text))

    def test_all_that_is_stored_is_sealed_anew(self):
        s = self.service()
        s.pool("lab", 1)
        s.ok("secret", "set", "key", input="before")
        s.ok("secret", "set", "key", input=VALUE)
        inline = s.submit(job(shell("t", 'printf %s "$KEY"', secrets={"KEY": VALUE})))
        s.wait_for(inline)
        self.assertEqual(s.ask("PUT", "/v1/datastores/blobs", body={"url": "http://127.0.0.1:1/a/c", "key": "a2V5"}).status, 200)
        before = self.sealed(s)
        self.assertEqual(len(before), 1)
        s.down()
        s.up("--new-secret-key")
        after = self.sealed(s)
        self.assertEqual(len(after), 1)
        self.assertFalse(after & before, "something is sealed with the old key")
        self.assertTrue(self.runs_with(s, VALUE))
        again = s.ask("POST", f"/v1/jobs/{inline}/resubmit").json["id"]
        s.wait_for(again)
        self.assertEqual(s.log(again, "t"), VALUE)

    def test_a_key_from_the_environment_or_a_passphrase(self):
        first, second = "a" * 64, "b" * 64
        s = self.service(variables={"SLIPWAY_SECRET_KEY": first})
        s.pool("lab", 1)
        s.ok("secret", "set", "key", input=VALUE)
        self.assertTrue(self.runs_with(s, VALUE))
        self.assertFalse(os.path.exists(f"{s.data}/secret.key"))
        id = s.submit(job(shell("t", "env")))
        s.wait_for(id)
        self.assertNotIn(first, s.log(id, "t"), "a job has the key")
        with open(f"/proc/{s.pid}/environ", "rb") as environment:
            self.assertNotIn(first.encode(), environment.read())
        s.down()
        s.variables["SLIPWAY_SECRET_KEY"] = second
        refused = s.run("up", "--detach", "--listen", s.listen, "--data", s.data)
        self.assertEqual(refused.code, 1, refused)
        self.assertIn("sealed with another key", refused.err)
        s.variables["SLIPWAY_SECRET_KEY"] = f"{first},{second}"
        s.up("--new-secret-key")
        s.down()
        s.variables["SLIPWAY_SECRET_KEY"] = second
        s.up()
        self.assertTrue(self.runs_with(s, VALUE))
        s.down()
        phrase = s.write("phrase", "correct horse battery staple\n")
        s.up("--secret-passphrase-file", phrase, "--new-secret-key")
        s.down()
        del s.variables["SLIPWAY_SECRET_KEY"]
        s.up("--secret-passphrase-file", phrase)
        self.assertTrue(self.runs_with(s, VALUE))


if __name__ == "__main__":
    unittest.main()
