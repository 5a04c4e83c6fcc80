"""web/dist, which is put into the program, is what web/src builds."""

import filecmp
import os
import shutil
import subprocess
import tempfile
import unittest

import packages


class Build(unittest.TestCase):
    def test_dist_is_built_from_src(self):
        modules = packages.modules()
        with tempfile.TemporaryDirectory() as folder:
            web = os.path.join(folder, "web")
            shutil.copytree(packages.WEB, web, ignore=shutil.ignore_patterns("node_modules", "dist"))
            os.symlink(os.path.join(modules, "node_modules"), os.path.join(web, "node_modules"))
            done = subprocess.run(["npm", "run", "--silent", "build"], cwd=web, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

            def files(root):
                return sorted(os.path.relpath(os.path.join(at, name), root) for at, _, names in os.walk(root) for name in names)

            committed, built = os.path.join(packages.WEB, "dist"), os.path.join(web, "dist")
            again = "build it anew: cd web && npm ci && npm run build"
            self.assertEqual(files(committed), files(built), again)
            _, other, wrong = filecmp.cmpfiles(committed, built, files(built), shallow=False)
            self.assertEqual(other + wrong, [], again)


if __name__ == "__main__":
    unittest.main()
