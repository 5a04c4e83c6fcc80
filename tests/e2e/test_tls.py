"""The wire: what goes between machines is encrypted, and each side knows who the other is. (H7)"""

import http.client
import os
import shutil
import signal
import ssl
import subprocess
import threading
import unittest

from agent_socket import AgentSocket, Refused
from harness import SLIPWAY, Service, SlipwayCase, job, shell, wait_until


def openssl(*words, stdin="", check=True):
    done = subprocess.run(["openssl", *map(str, words)], input=stdin, capture_output=True, text=True, timeout=60, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"openssl {words}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def certificate_of(port):
    return ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port))))


class MadeByItself(SlipwayCase):
    """A service on all addresses that was given no certificate."""

    @classmethod
    def setUpClass(cls):
        cls.s = Service(listen="0.0.0.0:0", start=False)
        cls.addClassCleanup(cls.s.close)
        cls.said = cls.s.up()
        cls.s.pool("lab", 1)
        cls.s.ok("pool", "create", "far", "--provisioner", "none")

    @property
    def fingerprint(self):
        return self.s.get("/v1/service")["fingerprint"]

    def test_it_says_its_fingerprint_and_everything_works(self):
        s = self.s
        self.assertTrue(s.url.startswith("https://127.0.0.1:"), s.url)
        self.assertIn("Fingerprint: sha256:" + self.fingerprint, self.said.out)
        shown = openssl("x509", "-in", s.data + "/tls/ca.crt", "-noout", "-fingerprint", "-sha256")
        self.assertEqual(shown.split("=")[1].strip().replace(":", "").lower(), self.fingerprint)
        for secret in ("ca.key", "server.key"):
            self.assertEqual(os.stat(f"{s.data}/tls/{secret}").st_mode & 0o777, 0o600)
        ran = s.ok("run", "--pool", "lab", "--", "echo", "over TLS")
        self.assertIn("over TLS", ran.out)
        submitted = s.submit(job(shell("a", "for i in 1 2 3; do echo line $i; done")))
        followed = s.ok("logs", "-f", f"{submitted}/a")
        self.assertEqual(followed.out, "line 1\nline 2\nline 3\n")

    def test_s_client(self):
        address = f"127.0.0.1:{self.s.port}"
        authority = self.s.data + "/tls/ca.crt"
        new = openssl("s_client", "-connect", address, "-CAfile", authority, "-verify_return_error", "-verify_ip", "127.0.0.1")
        self.assertRegex(new, "Verification: OK|Verify return code: 0")
        self.assertIn("TLSv1.3", new)
        for old in ("-tls1_2", "-tls1_1"):
            refused = openssl("s_client", "-connect", address, old, check=False)
            self.assertRegex(refused, "alert protocol version|no protocols available|unsupported protocol|internal error", old)
        session = os.path.join(self.s.base, "session")
        question = f"GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        first = openssl("s_client", "-connect", address, "-sess_out", session, "-ign_eof", stdin=question)
        self.assertIn("New, TLSv1.3", first)
        self.assertIn("HTTP/1.1 200", first)
        again = openssl("s_client", "-connect", address, "-sess_in", session, "-ign_eof", stdin=question)
        self.assertIn("Reused, TLSv1.3", again)
        # Only what TLS 1.3 has, whatever a client's own level of security would allow.
        for weak in ("NULL", "aNULL", "EXPORT", "RC4", "3DES", "AES128-SHA", "ALL"):
            refused = openssl("s_client", "-connect", address, "-tls1_2", "-cipher", weak + ":@SECLEVEL=0", check=False)
            self.assertNotRegex(refused, r"New, TLSv1\.[0-2], Cipher is [A-Z]", weak)
            self.assertRegex(refused, "alert protocol version|no cipher match|no ciphers available|no protocols available|"
                             "unsupported protocol|internal error", weak)
        for strong in ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"):
            taken = openssl("s_client", "-connect", address, "-tls1_3", "-ciphersuites", strong)
            self.assertIn(f"New, TLSv1.3, Cipher is {strong}", taken)
        for short in ("TLS_AES_128_CCM_8_SHA256",):
            self.assertIn("alert handshake failure", openssl("s_client", "-connect", address, "-ciphersuites", short, check=False))
        self.assertNotIn("BEGIN PRIVATE", new)

    def test_plain_is_told_so(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.s.port, timeout=20)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/jobs", headers={"Authorization": "Bearer " + self.s.token})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 400)
        self.assertIn(b"speaks TLS", answer.read())

    def test_a_wrong_fingerprint_is_refused_before_the_token_is_sent(self):
        wrong = f"{self.s.address}#sha256:{'0' * 64}"
        self.s.refused("job", "list", "--service", wrong, "--token-file", self.s.data + "/token", code=3,
                       says="does not have the fingerprint")
        self.s.refused("job", "list", "--service", self.s.address, "--token-file", self.s.data + "/token", code=3,
                       env={"SLIPWAY_HOME": self.s.base + "/elsewhere"}, says="not trusted")
        self.s.ok("job", "list", "--service", f"{self.s.address}#sha256:{self.fingerprint}", "--token-file", self.s.data + "/token",
                  env={"SLIPWAY_HOME": self.s.base + "/elsewhere"})

    def join(self, name, *more):
        line = self.s.ok("node", "join-command", "--pool", "far", "-o", "quiet").out.strip()
        self.assertNotIn("\n", line)
        folder = os.path.join(self.s.base, name)
        self.s.also.append(folder)
        programs = os.path.dirname(SLIPWAY)
        child = subprocess.Popen(["sh", "-c", f"{line} --name {name} --folder {folder} {' '.join(more)}"],
                                 env={**self.s.environment(), "PATH": programs + ":" + os.environ["PATH"]},
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.s.children.append(child)
        return folder

    def test_one_line_joins_a_machine_which_gets_a_certificate(self):
        s = self.s
        folder = self.join("far-1")
        s.wait_for_nodes(1, "far")
        certificate = wait_until(lambda: os.path.exists(folder + "/node.crt") and folder + "/node.crt")
        self.assertIn("OK", openssl("verify", "-CAfile", s.data + "/tls/ca.crt", "-purpose", "sslclient", certificate))
        self.assertEqual(os.stat(folder + "/node.key").st_mode & 0o777, 0o600)
        submitted = s.submit(job(shell("a", "echo far"), pool="far"))
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")
        self.assertEqual(s.log(submitted, "a"), "far\n")
        # Its key alone is not enough any more.
        with open(folder + "/node-key") as file:
            key = file.read().strip()
        trusted = ssl.create_default_context(cafile=s.data + "/tls/ca.crt")
        with self.assertRaises(Refused) as refused:
            AgentSocket(s.port, "", key, lambda raw: trusted.wrap_socket(raw, server_hostname="127.0.0.1"))
        self.assertEqual(refused.exception.status, 403)
        trusted.load_cert_chain(folder + "/node.crt", folder + "/node.key")
        AgentSocket(s.port, "", key, lambda raw: trusted.wrap_socket(raw, server_hostname="127.0.0.1")).close()
        # After a restart it is the same service to it.
        s.kill_service()
        s.listen = f"0.0.0.0:{s.port}"
        s.up()
        wait_until(lambda: s.get("/v1/nodes/far-1")["state"] == "idle")
        agent = s.pid_in(folder + "/agent.lock")
        os.kill(agent, signal.SIGTERM)  # it has nothing to run, so its keeper goes with it
        wait_until(lambda: not s.pid_in(folder + "/agent.lock") and not s.pid_in(folder + "/keeper.lock"))


class Renewed(SlipwayCase):
    def test_certificates_are_renewed_by_themselves(self):
        s = self.service(listen="0.0.0.0:0", variables={"SLIPWAY_TEST_CERTIFICATE_SECONDS": "6"})
        s.pool("lab", 1)
        folder = s.data + "/nodes/default.lab-1"

        def serial(file):
            return openssl("x509", "-in", file, "-noout", "-serial") if os.path.exists(file) else None

        node = wait_until(lambda: serial(folder + "/node.crt"))
        served = certificate_of(s.port)
        wait_until(lambda: serial(folder + "/node.crt") != node, what="the node's certificate is renewed")
        wait_until(lambda: certificate_of(s.port) != served, what="the server's certificate is renewed")
        s.kill(s.agent("lab-1"))  # the next one shows the new one
        submitted = s.submit(job(shell("a", "true")))
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")


class OnesOwn(SlipwayCase):
    """Certificates that the user brings."""

    def make(self, name, days=30):
        base = os.path.join(self.folder, name)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", days, "-subj", "/CN=" + name,
                "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", base + ".key", "-out", base + ".crt")
        return base

    def setUp(self):
        self.s = self.service(start=False)
        self.folder = os.path.join(self.s.base, "own")
        os.makedirs(self.folder)

    def install(self, base):
        for end in ("key", "crt"):
            shutil.copyfile(f"{base}.{end}", f"{self.folder}/live.{end}.new")
            os.replace(f"{self.folder}/live.{end}.new", f"{self.folder}/live.{end}")

    def test_they_are_replaced_under_load_without_a_restart(self):
        s = self.s
        self.install(self.make("first"))
        s.arguments = ["--tls-cert", f"{self.folder}/live.crt", "--tls-key", f"{self.folder}/live.key"]
        s.up()
        port, token = s.port, s.token
        stop, problems, asked = threading.Event(), [], [0]

        def ask():
            unverified = ssl._create_unverified_context()
            kept = http.client.HTTPSConnection("127.0.0.1", port, context=unverified, timeout=20)
            while not stop.is_set():
                for connection in (kept, http.client.HTTPSConnection("127.0.0.1", port, context=unverified, timeout=20)):
                    try:
                        connection.request("GET", "/v1/jobs", headers={"Authorization": "Bearer " + token})
                        answer = connection.getresponse()
                        answer.read()
                        if answer.status != 200:
                            problems.append(answer.status)
                    except OSError as error:
                        problems.append(error)
                    if connection is not kept:
                        connection.close()
                asked[0] += 1
            kept.close()

        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        try:
            for name, by_signal in (("second", False), ("third", True), ("fourth", False)):
                before, done = certificate_of(port), asked[0]
                self.install(self.make(name))
                if by_signal:
                    os.kill(s.pid, signal.SIGHUP)
                wait_until(lambda: certificate_of(port) != before, what=f"{name} is served")
                # The command line of this machine, and its agents, get the new fingerprint.
                wait_until(lambda: s.run("job", "list").code == 0, what=f"{name} is pinned")
                wait_until(lambda: asked[0] > done + 4)
            # What is broken takes nothing away.
            before = certificate_of(port)
            with open(f"{self.folder}/live.key", "w") as file:
                file.write("nothing")
            os.kill(s.pid, signal.SIGHUP)
            done = asked[0]
            wait_until(lambda: asked[0] > done + 4)
            self.assertEqual(certificate_of(port), before)
        finally:
            stop.set()
            for asker in askers:
                asker.join()
        self.assertEqual(problems, [])

    def test_a_key_of_another_certificate_is_refused(self):
        first, second = self.make("first"), self.make("second")
        ran = self.s.run("up", "--listen", "127.0.0.1:0", "--detach", "--tls-cert", first + ".crt", "--tls-key", second + ".key")
        self.assertEqual(ran.code, 1, ran)
        self.assertIn("key values mismatch", ran.err)
        self.s.refused("up", "--tls-cert", first + ".crt", code=2, says="go together")
        self.s.refused("up", "--tls", "--insecure", code=2, says="--insecure is without TLS")

    def test_loopback_stays_plain_and_no_other_machine_joins_it(self):
        self.s.up()
        self.assertTrue(self.s.url.startswith("http://127.0.0.1:"))
        self.assertIsNone(self.s.get("/v1/service")["fingerprint"])
        self.s.refused("node", "join-command", says=["listens on http://127.0.0.1", "--listen 0.0.0.0:8470"])


if __name__ == "__main__":
    unittest.main()
