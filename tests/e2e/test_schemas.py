"""The JSON Schemas of Batch AI's files: the examples fit them, older spellings too, and what the service refuses does not."""

import copy
import glob
import json
import os
import unittest

import docs
from harness import ROOT

try:
    import jsonschema
except ImportError:
    raise unittest.SkipTest("python3-jsonschema is not installed; tools/setup installs it") from None

KINDS = ("job", "cluster", "file-server")
MISSING = object()


def load(*path):
    with open(os.path.join(ROOT, *path)) as file:
        return json.load(file)


def schema(kind):
    return load("docs", "schemas", f"batchai-{kind}.json")


def changed(document, changes):
    """A copy with values set by dotted paths below properties; MISSING takes one away."""
    document = copy.deepcopy(document)
    for path, value in changes.items():
        *above, last = path.split(".")
        place = document["properties"]
        for key in above:
            place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
        if value is MISSING:
            del place[last]
        elif isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    return document


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.checks = {kind: jsonschema.Draft202012Validator(schema(kind)) for kind in KINDS}

    def problems(self, kind, document):
        return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in self.checks[kind].iter_errors(document)]

    def table(self, kind, start, rows, good):
        self.assertEqual(self.problems(kind, start), [])
        for changes in rows:
            with self.subTest(changes=changes):
                self.assertEqual(self.problems(kind, changed(start, changes)) == [], good)

    def test_they_are_schemas_and_every_field_is_described(self):
        def undescribed(node, path=""):
            for name, field in node.get("properties", {}).items():
                if "description" not in field and "$ref" not in field:
                    yield f"{path}/{name}"
                yield from undescribed(field, f"{path}/{name}")
            if isinstance(node.get("items"), dict):
                yield from undescribed(node["items"], path + "[]")

        shared = {}
        for kind in KINDS:
            document = schema(kind)
            jsonschema.Draft202012Validator.check_schema(document)
            self.assertEqual(list(undescribed(document)), [])
            for name, definition in document["$defs"].items():
                self.assertEqual(list(undescribed(definition, name)), [])
                self.assertEqual(shared.setdefault(name, definition), definition, f"{name} differs between the schemas")

    def test_the_examples_fit(self):
        folder = os.path.join(ROOT, "examples", "batchai")
        names = sorted(os.path.basename(path) for path in glob.glob(folder + "/*.json"))
        self.assertEqual([name[:3] for name in names[:10]], [f"{number:02}-" for number in range(1, 11)])
        self.assertEqual(names[10:], ["cluster.json", "job.json", "nfs.json"])
        for name in names:
            kind = {"cluster.json": "cluster", "nfs.json": "file-server"}.get(name, "job")
            document = load("examples", "batchai", name)
            self.assertEqual(self.problems(kind, document), [], name)
            self.assertEqual(os.path.normpath(os.path.join(folder, document["$schema"])),
                             os.path.join(ROOT, "docs", "schemas", f"batchai-{kind}.json"))
            for other in KINDS:  # a cluster file is no job
                if other == "job" and kind != "job":
                    self.assertNotEqual(self.problems(other, document), [], name)

    def test_jobs_that_fit(self):
        reference = {"sourceVault": {"id": "/vaults/v"}, "secretUrl": "https://v/secrets/s"}
        share = {"azureFileUrl": "https://lab.file.core.windows.net/x", "relativeMountPath": "x"}
        self.table("job", load("examples", "batchai", "10-mpirun.json"), [
            {"schedulingPriority": "High"}, {"schedulingPriority": "NORMAL"}, {"schedulingPriority": MISSING},
            {"priority": -1000, "schedulingPriority": MISSING}, {"cluster": {"id": "/subscriptions/lab"}},
            {"constraints.maxWallClockTime": "P7D"}, {"constraints.maxWallClockTime": "P1DT2H3M4.5S"}, {"constraints": {}},
            {"toolType": "custom"}, {"experimentName": "old", "location": "eastus"}, {"unknown": {"a": 1}}, {"comment": "x"},
            {"outputDirectories.0.type": "model", "outputDirectories.0.createNew": True}, {"stdOutErrPathPrefix": "/tmp"},
            {"secrets": [{"name": "A", "valueSecretReference": reference}]},
            {"mountVolumes": {"azureFileShares": [{**share, "credentialsInfo": {"accountKey": "k"}}]}},
            {"mountVolumes": {"azureFileShares": [{**share, "credentials": {}, "fileMode": "0644"}]}},
            {"customToolkitSettings": MISSING, "pyTorchSettings": {"pythonScriptFilePath": "x", "communicationBackend": "GLOO"}},
            {"customToolkitSettings": MISSING, "cntkSettings": {"pythonScriptFilePath": "x", "languageType": "python"}},
            {"customToolkitSettings": MISSING, "caffeSettings": {"configFilePath": "x"}},
        ], True)

    def test_jobs_that_do_not(self):
        share = {"azureFileUrl": "https://lab.file.core.windows.net/x", "relativeMountPath": "x"}
        self.table("job", load("examples", "batchai", "10-mpirun.json"), [
            {"nodeCount": MISSING}, {"nodeCount": 0}, {"nodeCount": "2"}, {"nodeCount": 1.5}, {"stdOutErrPathPrefix": MISSING},
            {"stdOutErrPathPrefix": "relative/path"}, {"customToolkitSettings": MISSING},
            {"horovodSettings": {"pythonScriptFilePath": "x"}}, {"schedulingPriority": "urgent"}, {"schedulingPriority": 1},
            {"priority": 1001}, {"constraints.maxWallClockTime": "6 hours"}, {"constraints.maxWallClockTime": "P"},
            {"constraints.maxWallClockTime": "PT"}, {"constraints.maxWallClockTime": "7.00:00:00"}, {"constraints.maxWallClockTime": 3600},
            {"environmentVariables": [{"name": "A"}]}, {"environmentVariables": [{"name": "A=B", "value": ""}]},
            {"environmentVariables": {"A": "1"}}, {"environmentVariables": [{"name": "A", "value": "1"}] * 2},
            {"secrets": [{"name": "A"}]}, {"inputDirectories.0.id": "MY-CODE"}, {"inputDirectories.0.path": MISSING},
            {"inputDirectories": [{"id": "A", "path": "/a"}] * 2}, {"outputDirectories.0.pathPrefix": "models"},
            {"cluster": "/subscriptions/lab"}, {"jobPreparation": {}}, {"containerSettings": {}},
            {"containerSettings": {"imageSourceRegistry": {"image": "x"}, "shmSize": "much"}},
            {"containerSettings": {"imageSourceRegistry": {"image": "x", "credentials": {"password": "p"}}}},
            {"mountVolumes": {"azureFileShares": [{**share, "relativeMountPath": "/x"}]}},
            {"mountVolumes": {"azureFileShares": [{**share, "relativeMountPath": "a/../../x"}]}},
            {"mountVolumes": {"azureFileShares": [{**share, "fileMode": "rw"}]}},
            {"mountVolumes": {"azureBlobFileSystems": [{"accountName": "lab", "relativeMountPath": "x"}]}},
            {"mountVolumes": {"fileServers": [{"fileServer": "nas", "relativeMountPath": "x"}]}},
            {"mountVolumes": {"unmanagedFileSystems": [{"relativeMountPath": "x"}]}},
            {"customToolkitSettings": MISSING, "tensorFlowSettings": {"workerCount": 2}},
            {"customToolkitSettings": MISSING, "customMpiSettings": {"commandLine": "x", "processCount": 0}},
            {"customToolkitSettings": MISSING, "pyTorchSettings": {"pythonScriptFilePath": "x", "communicationBackend": "pigeon"}},
            {"customToolkitSettings": MISSING, "cntkSettings": {"pythonScriptFilePath": "x", "configFilePath": "y"}},
            {"customToolkitSettings": MISSING, "caffeSettings": {}},
        ], False)
        for document in ({}, [], {"properties": []}, {"nodeCount": 1}):
            self.assertNotEqual(self.problems("job", document), [], document)

    def test_clusters(self):
        start = load("examples", "batchai", "cluster.json")
        manual = {"targetNodeCount": 2, "nodeDeallocationOption": "WaitForJobCompletion"}
        self.table("cluster", start, [
            {"scaleSettings": {"manual": manual}}, {"scaleSettings": {"manual": {}}}, {"scaleSettings": MISSING, "vmSize": MISSING},
            {"vmPriority": "Dedicated"}, {"vmPriority": "LowPriority"}, {"nodeSetup.setupTask.runElevated": True},
            {"userAccountSettings": {"adminUserName": "a", "adminUserSSHPublicKey": "ssh-rsa x"}},
            {"userAccountSettings": {"adminUserName": "a", "adminUserPassword": "p"}},
            {"virtualMachineConfiguration": {"imageReference": {"publisher": "a", "offer": "b", "sku": "c"}}},
        ], True)
        self.table("cluster", start, [
            {"scaleSettings.manual": manual}, {"scaleSettings": {}}, {"scaleSettings.autoScale.maximumNodeCount": MISSING},
            {"scaleSettings.autoScale.minimumNodeCount": -1}, {"scaleSettings": {"manual": {"targetNodeCount": "2"}}},
            {"scaleSettings": {"manual": {"nodeDeallocationOption": "wait"}}}, {"vmPriority": "cheap"}, {"vmSize": ""},
            {"userAccountSettings": {}}, {"nodeSetup.setupTask.commandLine": MISSING}, {"nodeSetup.setupTask.stdOutErrPathPrefix": MISSING},
            {"nodeSetup.mountVolumes.fileServers.0.relativeMountPath": "../nfs"}, {"subnet": "lan"},
            {"nodeSetup.mountVolumes.azureFileShares.0.credentials.accountKeySecretReference": {}},
        ], False)

    def test_file_servers(self):
        start = load("examples", "batchai", "nfs.json")
        self.table("file-server", start, [
            {"dataDisks.cachingType": "ReadWrite"}, {"dataDisks.cachingType": MISSING}, {"dataDisks.storageAccountType": "premium_lrs"},
            {"sshConfiguration.publicIPsToAllow": MISSING},
        ], True)
        self.table("file-server", start, [
            {"dataDisks.diskCount": 0}, {"dataDisks.diskSizeInGB": MISSING}, {"dataDisks.storageAccountType": "tape"},
            {"dataDisks.cachingType": "all"}, {"sshConfiguration.userAccountSettings": MISSING},
            {"sshConfiguration.publicIPsToAllow": [str(number) for number in range(401)]},
        ], False)


class NativeJobs(unittest.TestCase):
    """The schema of job files, which is made from the table of keys."""

    @classmethod
    def setUpClass(cls):
        try:
            import yaml
        except ImportError:
            raise unittest.SkipTest("python3-yaml is not installed") from None
        cls.yaml = yaml
        cls.check = jsonschema.Draft202012Validator(load("docs", "schemas", "job.json"))

    def problems(self, text):
        return [error.message[:200] for error in self.check.iter_errors(self.yaml.safe_load(text))]

    def test_examples_and_guides_fit(self):
        jsonschema.Draft202012Validator.check_schema(self.check.schema)
        files = glob.glob(os.path.join(ROOT, "examples", "*.yaml")) + glob.glob(os.path.join(ROOT, "examples", "toolkits", "*.yaml"))
        self.assertGreater(len(files), 8)
        for path in files:
            with open(path) as file, self.subTest(path):
                self.assertEqual(self.problems(file.read()), [])
        for guide in ("jobs", "distributed-training", "task-environment"):
            for block in docs.blocks(os.path.join(ROOT, "docs/guide", guide + ".md")):
                if block.language == "yaml" and "tasks:" in block.text:
                    with self.subTest(guide=guide, line=block.line):
                        self.assertEqual(self.problems(block.text), [])

    def test_what_the_reader_refuses_does_not_fit(self):
        task = "tasks: [{name: a, command: x, %s}]"
        for text in ("nmae: x", "name: x", "tasks: [{command: x}]", "tasks: 3", "priority: 2000\n" + task % "nodes: 1", task % "gpus: 1",
                     task % "count: 0", task % "nodes: many", task % "nodes: {min: 1}", task % "toolkit: pytorch", task % "resources: {cores: 0}",
                     task % "resources: {memory: lots}", task % "max_wall_time: soon", task % "roles: {}", task % "mounts: [{at: x, what: y}]"):
            with self.subTest(text):
                self.assertNotEqual(self.problems(text), [])
        for text in (task % "nodes: {min: 1, max: 4}", task % "prepare: echo", task % "prepare: {command: echo}", task % "max_wall_time: 1h30m",
                     task % "resources: {memory: 512MiB, cores: 0.5}", task % "depends_on: b", task % "environment: {A: 1, B: x}"):
            with self.subTest(text):
                self.assertEqual(self.problems(text), [])


if __name__ == "__main__":
    unittest.main()
