"""Signing in by a real provider of OpenID Connect, npm's oidc-provider: by browser, by device, with either signature."""

import html.parser
import http.cookiejar
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest
import urllib.parse
import urllib.request

import training  # noqa: F401  (puts tests/e2e on the path)
from batchai_clients import CACHE, _install
from harness import SLIPWAY, Service, SlipwayCase, read_line

PACKAGE = "oidc-provider@9.13.3"


class Form(html.parser.HTMLParser):
    """The first form of a page: where it goes, and the fields it already has."""

    def __init__(self, page):
        super().__init__()
        self.action, self.fields = None, {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag == "form" and self.action is None:
            self.action = named.get("action", "")
        elif tag == "input" and named.get("name"):
            self.fields[named["name"]] = named.get("value") or ""


class Browser:
    """Goes through the pages of a sign-in as one who fills in what is asked."""

    def __init__(self, user):
        self.user = user
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def visit(self, url, **known):
        """The last page, once no form is left."""
        page = self.opener.open(url, timeout=30)
        for _ in range(10):
            text = page.read().decode()
            form = Form(text)
            if form.action is None:
                return text
            fields = {**form.fields, **{name: value for name, value in known.items() if name in form.fields}}
            if "login" in fields:
                fields.update(login=self.user, password="x")
            page = self.opener.open(urllib.parse.urljoin(page.url, form.action or page.url), urllib.parse.urlencode(fields).encode(), timeout=30)
        raise AssertionError("the sign-in does not end: " + text)


def provider_folder():
    if not shutil.which("node") or not shutil.which("npm"):
        raise unittest.SkipTest("there is no node and npm here to run a provider with")
    folder = _install(os.path.join(CACHE, PACKAGE.replace("@", "-")), [["npm", "install", "--no-audit", "--no-fund", "--silent", PACKAGE]])
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "oidc_provider.mjs"), folder)
    return folder


class Oidc(SlipwayCase):
    @classmethod
    def setUpClass(cls):
        folder = provider_folder()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        cls.issuer = f"http://127.0.0.1:{port}"
        cls.provider = subprocess.Popen(["node", "oidc_provider.mjs", str(port)], cwd=folder, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, bufsize=0)
        assert read_line(cls.provider, timeout=60) == b"ready\n"

    @classmethod
    def tearDownClass(cls):
        cls.provider.send_signal(signal.SIGTERM)
        cls.provider.wait()
        cls.provider.stdout.close()

    def start(self, client="slipway", secret=None):
        s = Service(start=False)
        self.addCleanup(s.close)
        groups = s.write("groups", "research=ml:member\nops=default:admin\n")
        more = ["--oidc-client-secret-file", s.write("secret", secret + "\n")] if secret else []
        s.up("--oidc-issuer", self.issuer, "--oidc-client", client, "--oidc-groups", groups, *more)
        self.outside = os.path.join(s.base, "elsewhere")
        os.makedirs(self.outside)
        return s

    def elsewhere(self, s):
        return s.environment(SLIPWAY_HOME=self.outside, SLIPWAY_SERVICE=s.url)

    def begin(self, s, *more):
        child = subprocess.Popen([SLIPWAY, "login", *more], env=self.elsewhere(s), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, bufsize=0)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def url_of(self, child):
        seen = b""
        while not (found := re.search(rb"(http://\S+)\n", seen)):
            line = read_line(child, stream=child.stderr)
            self.assertTrue(line, f"no address was shown: {seen}")
            seen += line
        return found[1].decode(), seen.decode()

    def sign_in(self, s, user, *more):
        child = self.begin(s, "--oidc", *more)
        url, _ = self.url_of(child)
        page = Browser(user).visit(url)
        said = child.stderr.read().decode()
        return child.wait(timeout=30), said, page

    def ran(self, s, *words):
        return s.run(*words, env={"SLIPWAY_HOME": self.outside, "SLIPWAY_SERVICE": s.url})

    def test_a_user_comes_into_being_with_the_groups(self):
        for client in ("slipway", "slipway-es"):
            with self.subTest(client=client):
                s = self.start(client)
                code, said, page = self.sign_in(s, "ana")
                self.assertEqual(code, 0, said)
                self.assertIn("Signed in", page)
                self.assertIn("as ana, member of workspace ml", said)
                self.assertEqual(s.ok("user", "list", "-o", "quiet").out, "ana\n")
                self.assertEqual(self.ran(s, "job", "list").code, 0)
                # Once more: the same user.
                self.assertEqual(self.sign_in(s, "ana")[0], 0)
                self.assertEqual(s.ok("user", "list", "-o", "quiet").out, "ana\n")
                s.ok("user", "disable", "ana")
                self.assertNotEqual(self.ran(s, "job", "list").code, 0)
                code, said, _ = self.sign_in(s, "ana")
                self.assertEqual(code, 1)
                self.assertIn("disabled", said)

    def test_the_service_shows_its_secret(self):
        s = self.start("slipway-secret", "kept+by/the service")
        self.assertEqual(self.sign_in(s, "ana")[0], 0)
        wrong = self.start("slipway-secret", "another")
        code, said, _ = self.sign_in(wrong, "ana")
        self.assertEqual(code, 1)
        self.assertIn("the provider refused", said)

    def test_who_is_in_no_group_waits_for_an_admin(self):
        s = self.start()
        code, said, _ = self.sign_in(s, "ben")
        self.assertEqual(code, 1)
        self.assertIn("member of no workspace", said)
        s.ok("workspace", "member", "add", "other", "ben", "--role", "viewer")
        self.assertEqual(self.sign_in(s, "ben")[0], 0)

    def test_a_name_that_somebody_has_is_not_taken_over(self):
        s = self.start()
        s.ok("token", "create", "ana", "--role", "viewer", "--to", s.base + "/token")
        code, said, _ = self.sign_in(s, "ana")
        self.assertEqual(code, 1)
        self.assertIn("belongs to somebody else", said)

    def test_a_device_without_a_browser(self):
        s = self.start()
        child = self.begin(s, "--device")
        url, _ = self.device_url(child)
        Browser("ana").visit(url)
        rest = child.stderr.read().decode()
        self.assertEqual(child.wait(timeout=60), 0, rest)
        self.assertIn("as ana, member of workspace ml", rest)

    def device_url(self, child):
        line = read_line(child, stream=child.stderr).decode()
        found = re.search(r"open (\S+) in any browser; the code is (\S+)", line)
        self.assertTrue(found, line)
        return found.groups()

    def test_codes_that_nobody_gave_are_refused(self):
        s = self.start()
        begun = s.ask("POST", "/v1/login/oidc", body={"redirect_uri": "http://127.0.0.1:1/callback", "code_challenge": "x" * 43}, token=None)
        self.assertEqual(begun.status, 201, begun)
        path = "/v1/login/oidc/" + begun.json["id"]
        self.assertEqual(s.ask("POST", path, body={"code": "made up", "code_verifier": "y" * 43}, token=None).status, 403)
        self.assertEqual(s.ask("POST", path, body={"code": "again", "code_verifier": "y" * 43}, token=None).status, 404)
        away = s.ask("POST", "/v1/login/oidc", body={"redirect_uri": "https://evil.example/callback", "code_challenge": "x" * 43}, token=None)
        self.assertEqual(away.status, 400)


if __name__ == "__main__":
    unittest.main()
