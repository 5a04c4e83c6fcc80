"""The lifecycle of a job by azure-mgmt-batchai, of the version that is installed: python lifecycle.py URL TOKEN [WAIT]. Prints
what went well, one word a line. WAIT is how many seconds pass between two questions for a long-running operation."""

import sys
import time
import urllib.request

url, token = sys.argv[1:3]
wait = float(sys.argv[3]) if len(sys.argv) > 3 else 1

try:  # 7.0.0
    from azure.core.credentials import AccessToken
    from azure.core.exceptions import HttpResponseError as Refused
    from azure.core.exceptions import ResourceNotFoundError
    from azure.mgmt.batchai import BatchAI, models

    class Credential:
        def get_token(self, *_, **__):
            return AccessToken(token, int(time.time()) + 3600)

    client = BatchAI(Credential(), "lab", base_url=url, polling_interval=wait)
    plain = {"enforce_https": False}

    def done(operations, verb, *given):
        return getattr(operations, "begin_" + verb)(*given, **plain).result()

    def make_workspace(group, name):
        return done(client.workspaces, "create", group, name, models.WorkspaceCreateParameters(location="local"))

    def code_of(error):
        return error.error.code

except ImportError:  # 2.0.0
    from azure.mgmt.batchai import BatchAIManagementClient, models
    from msrest.authentication import BasicTokenAuthentication
    from msrestazure.azure_exceptions import CloudError as Refused

    client = BatchAIManagementClient(BasicTokenAuthentication({"access_token": token}), "lab", base_url=url)
    client.config.long_running_operation_timeout = wait
    plain = {}

    def done(operations, verb, *given):
        return getattr(operations, verb)(*given).result()

    def make_workspace(group, name):
        return done(client.workspaces, "create", group, name, "local")

    def code_of(error):
        return error.error.error


def printed(word, fact=True):
    assert fact, word
    print(word, flush=True)


def until(look, seconds=60):
    end = time.monotonic() + seconds
    while not (value := look()):
        assert time.monotonic() < end, "never happened"
        time.sleep(0.05)
    return value


def refused(code, work):
    try:
        work()
    except Refused as error:
        assert code in (code_of(error), str(error)) or code in str(error), error
        return
    raise AssertionError(f"should have been refused with {code}")


G, W, E = "ml", "main", "digits"
refused("WorkspaceNotFound", lambda: client.workspaces.get(G, W, **plain))
workspace = make_workspace(G, W)
printed("workspace", workspace.provisioning_state == "succeeded" and workspace.creation_time)

server = done(client.file_servers, "create", G, W, "nas", models.FileServerCreateParameters(
    vm_size="STANDARD_D2",
    ssh_configuration=models.SshConfiguration(user_account_settings=models.UserAccountSettings(admin_user_name="ops")),
    data_disks=models.DataDisks(disk_size_in_gb=10, disk_count=1, storage_account_type="Standard_LRS")))
printed("fileserver", server.mount_settings.mount_point)

cluster = done(client.clusters, "create", G, W, "c1", models.ClusterCreateParameters(
    vm_size="STANDARD_NC6",
    user_account_settings=models.UserAccountSettings(admin_user_name="ops", admin_user_password="s3cret!"),
    scale_settings=models.ScaleSettings(manual=models.ManualScaleSettings(target_node_count=1)),
    node_setup=models.NodeSetup(mount_volumes=models.MountVolumes(file_servers=[
        models.FileServerReference(file_server=models.ResourceId(id=server.id), relative_mount_path="nfs")]))))
printed("cluster", cluster.vm_priority == "dedicated" and cluster.user_account_settings.admin_user_password is None)
printed("nodes", until(lambda: client.clusters.get(G, W, "c1", **plain).node_state_counts.idle_node_count == 1))
printed("login", len(list(client.clusters.list_remote_login_information(G, W, "c1", **plain))) == 1)
printed("experiment", done(client.experiments, "create", G, W, E).provisioning_state == "succeeded")

prefix = "$AZ_BATCHAI_MOUNT_ROOT/nfs"
job = done(client.jobs, "create", G, W, E, "hello", models.JobCreateParameters(
    cluster=models.ResourceId(id=cluster.id), node_count=1, std_out_err_path_prefix=prefix,
    custom_toolkit_settings=models.CustomToolkitSettings(command_line="echo hi | tee $AZ_BATCHAI_OUTPUT_OUT/r.txt"),
    output_directories=[models.OutputDirectory(id="OUT", path_prefix=prefix, path_suffix="o")],
    secrets=[models.EnvironmentVariableWithSecretValue(name="S", value="2")]))
printed("job", job.tool_type == "custom" and job.secrets[0].value is None)
job = until(lambda: (seen := client.jobs.get(G, W, E, "hello", **plain)).execution_state in ("succeeded", "failed") and seen)
printed("ended", job.execution_info.end_time >= job.execution_info.start_time)
if job.execution_state == "succeeded":
    printed("succeeded", job.execution_info.exit_code == 0)
    files = list(client.jobs.list_output_files(G, W, E, "hello", models.JobsListOutputFilesOptions(
        outputdirectoryid="OUT", directory=".", linkexpiryinminutes=60, max_results=1000), **plain))
    printed("listed", [file.name for file in files] == ["r.txt"])
    printed("read", urllib.request.urlopen(files[0].download_url).read() == b"hi\n")
else:
    print("failed", job.execution_info.errors[0].code, [d.value for d in job.execution_info.errors[0].details or []])
printed("jobs", [one.name for one in client.jobs.list_by_experiment(G, W, E, **plain)] == ["hello"])
refused("ClusterNotFound", lambda: done(client.jobs, "create", G, W, E, "lost", models.JobCreateParameters(
    cluster=models.ResourceId(id=cluster.id + "x"), node_count=1, std_out_err_path_prefix=prefix,
    custom_toolkit_settings=models.CustomToolkitSettings(command_line="true"))))
printed("refused")
done(client.jobs, "delete", G, W, E, "hello")
refused("JobNotFound", lambda: client.jobs.get(G, W, E, "hello", **plain))
done(client.workspaces, "delete", G, W)
refused("WorkspaceNotFound", lambda: client.workspaces.get(G, W, **plain))
printed("deleted")
