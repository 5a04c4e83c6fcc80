"""Datastores: files sent, fetched and listed, over REST and with the words of az."""

import os
import unittest

from harness import SharedServiceCase


class Datastores(SharedServiceCase):
    def put(self, name, body="{}"):
        answer = self.s.ask("PUT", f"/v1/datastores/{name}", body=body)
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def send(self, name, path, content):
        return self.s.ask("PUT", f"/v1/datastores/{name}/content?path={path}", body=content)

    def test_files_come_back_as_they_were_sent(self):
        self.put("faces")
        content = os.urandom(3 << 20)
        self.assertEqual(self.send("faces", "a/b/c.bin", content).status, 200)
        self.assertEqual(self.send("faces", "empty", b"").status, 200)
        self.assertEqual(self.s.ask("GET", "/v1/datastores/faces/content?path=a/b/c.bin").body, content)
        part = self.s.ask("GET", "/v1/datastores/faces/content?path=a/b/c.bin", headers={"Range": "bytes=5-9"})
        self.assertEqual((part.status, part.body), (206, content[5:10]))
        listed = self.s.ask("GET", "/v1/datastores/faces/files?limit=1").json
        self.assertEqual([file["name"] for file in listed["items"]], ["a"])
        rest = self.s.ask("GET", "/v1/datastores/faces/files?after=" + listed["next"]).json
        self.assertEqual([(file["name"], file["kind"], file["size"]) for file in rest["items"]], [("empty", "file", 0)])
        self.assertEqual(self.s.ask("DELETE", "/v1/datastores/faces/content?path=a").status, 204)
        self.assertEqual(self.s.ask("GET", "/v1/datastores/faces/content?path=a/b/c.bin").status, 404)

    def test_paths_outside_are_refused(self):
        self.put("walls")
        for path in ("../../x", "a/../../../token", "%2e%2e/token"):
            self.assertEqual(self.s.ask("GET", f"/v1/datastores/walls/content?path={path}").status, 403, path)
            self.assertEqual(self.send("walls", path, b"x").status, 403, path)

    def test_a_folder_of_ones_own_is_kept(self):
        folder = os.path.dirname(self.s.write("own/keep", ""))
        self.put("own", {"path": folder})
        self.assertEqual(self.send("own", "x", b"mine").status, 200)
        self.assertEqual(self.s.ask("DELETE", "/v1/datastores/own").status, 204)
        with open(folder + "/x", "rb") as file:
            self.assertEqual(file.read(), b"mine")

    def test_keys_are_never_shown(self):
        made = self.put("sealed", {"url": "https://lab.blob.core.windows.net/c", "key": "topsecret"})
        self.assertNotIn("key", made)
        for path in ("/v1/datastores/sealed", "/v1/datastores"):
            self.assertNotIn(b"topsecret", self.s.ask("GET", path).body)

    def test_az_storage_commands(self):
        file = self.s.write("train-images-idx3-ubyte.gz", "bytes")
        self.s.ok("storage", "share", "create", "--name", "sample")
        self.s.ok("storage", "directory", "create", "--share-name", "sample", "--name", "mnist")
        self.s.ok("storage", "file", "upload", "--share-name", "sample", "--source", file, "--path", "mnist")
        listed = self.s.ok("storage", "file", "list", "--share-name", "sample", "--path", "mnist", "--query", "[].name",
                           "-o", "tsv")
        self.assertEqual(listed.out, "train-images-idx3-ubyte.gz\n")


if __name__ == "__main__":
    unittest.main()
