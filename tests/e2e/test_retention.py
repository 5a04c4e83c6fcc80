"""Jobs are deleted by rule, after their end; pinned ones are not. What nodes and jobs do is seen live."""

import os
import unittest

from harness import SlipwayCase, job, shell, wait_until


class Retention(SlipwayCase):
    def there(self, s):
        return {one["id"] for one in s.get("/v1/jobs?limit=1000")["items"]}

    def folder(self, s, made):
        return any(made in os.path.basename(at) or made in names for at, names, _ in os.walk(s.data))

    def test_jobs_go_by_rule_and_pinned_ones_stay(self):
        s = self.service()
        s.pool("lab", 2)
        write = shell("a", "echo text; echo x > $SLIPWAY_OUTPUTS/x")
        first, pinned, own = s.submit(job(write)), s.submit(job(write)), s.submit(job(write, retain="100d"))
        runs = s.submit(job(shell("a", f"until [ -e {s.base}/go ]; do sleep 0.05; done")))
        for made in (first, pinned, own):
            s.wait_for(made)
        self.assertTrue(self.folder(s, first))
        self.assertIn("it is pinned", s.ok("job", "pin", pinned).out)
        self.assertEqual((s.job(own)["retain"], s.job(first)["retain"], s.job(pinned)["pinned"]), (8640000, None, True))
        s.refused("job", "update", first, "--priority", "3", says="it is not changed any more")
        s.down()
        s.up("--retain", "1s", "--retain", "elsewhere=30d")
        wait_until(lambda: first not in self.there(s))
        wait_until(lambda: not self.folder(s, first))
        self.assertEqual(self.there(s), {pinned, own, runs})
        self.assertIn("is kept 1 s", s.ok("events", "--kind", "job.deleted").out)
        open(s.base + "/go", "w").close()
        wait_until(lambda: runs not in self.there(s))
        s.ok("job", "unpin", pinned)
        wait_until(lambda: pinned not in self.there(s))
        self.assertEqual(self.there(s), {own})

    def test_many_jobs_go_in_steps_that_a_kill_does_not_lose(self):
        s = self.service()
        s.pool("lab", 2)
        made = [s.submit(job(shell("a", "true"))) for _ in range(120)]
        for one in made:
            s.wait_for(one)
        s.down()
        s.up("--retain", "1s")
        wait_until(lambda: len(self.there(s)) < 120)
        s.kill_service()
        s.up("--retain", "1s")
        wait_until(lambda: not self.there(s))
        wait_until(lambda: not any(self.folder(s, one) for one in made))

    def test_what_takes_the_disk_and_what_a_rule_would_free(self):
        s = self.service()
        s.pool("lab", 2)
        made = s.submit(job(shell("a", "head -c 3000000 /dev/urandom > $SLIPWAY_OUTPUTS/x")))
        kept = s.submit(job(shell("a", "true"), retain="9d"))
        for one in (made, kept):
            s.wait_for(one)
        usage = s.ok("store", "usage", "-o", "json").json
        sizes = {one["what"]: one["bytes"] for one in usage["items"]}
        self.assertGreaterEqual(sizes["jobs of default"], 3000000)
        self.assertGreater(sizes["database"], 0)
        self.assertEqual(usage["bytes"], sum(sizes.values()))
        self.assertNotIn("would_free", usage)
        freed = s.ok("store", "usage", "--retain", "0s", "-o", "json").json["would_free"]
        self.assertEqual(freed["things"], 1)
        self.assertGreaterEqual(freed["bytes"], 3000000)
        self.assertEqual(s.ok("store", "usage", "--retain", "1h", "-o", "json").json["would_free"]["things"], 0)
        self.assertIn("--retain 1 h would delete 0 jobs", s.ok("store", "usage", "--retain", "1h").out)
        s.refused("store", "usage", "--data", s.base + "/nowhere", says="there is no data folder")

    def test_rules_that_cannot_be_read_are_refused(self):
        s = self.service(start=False)
        s.refused("up", "--retain", "soon", code=2, says="--retain soon")
        s.refused("up", "--retain", "200000d", code=2, says="100 years")

    def test_top_shows_nodes_and_jobs(self):
        s = self.service()
        s.pool("lab", 2)
        made = s.submit(job(shell("a", f"until [ -e {s.base}/go ]; do sleep 0.05; done"), name="long"))
        s.wait_for(made, "running")
        shown = s.ok("top").out
        self.assertIn("2 nodes, 1 job running, 0 queued", shown)
        self.assertIn("cores   #####.....  1/2", shown)
        self.assertRegex(shown, rf"lab-1 +lab +busy +1/1 .*{made}/a")
        self.assertRegex(shown, rf"{made} +long +admin +running +0/1 +1 ")
        self.assertEqual([one["id"] for one in s.ok("top", "-o", "json").json["jobs"]], [made])
        s.ok("pool", "create", "other", "--provisioner", "none")
        self.assertIn("0 nodes", s.ok("top", "--pool", "other").out)
        open(s.base + "/go", "w").close()
        s.wait_for(made)


if __name__ == "__main__":
    unittest.main()
