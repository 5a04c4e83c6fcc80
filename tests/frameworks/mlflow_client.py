"""What a data scientist's day asks of MLflow, by its own Python client: run by test_mlflow_clients.py against a service."""

import math
import os
import tempfile

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient


class Doubles(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return [2 * value for value in model_input]


def log_everything():
    with mlflow.start_run(run_name="first") as run:
        mlflow.log_param("lr", 0.1)
        mlflow.log_params({f"p{i}": i for i in range(150)})  # two batches
        for name, value in (("nan", math.nan), ("up", math.inf), ("down", -math.inf)):
            mlflow.log_metric(name, value)
        for step in range(100):
            mlflow.log_metric("loss", 1 / (step + 1), step=step)
        mlflow.log_metrics({"a": 1, "b": 2}, step=3)
        mlflow.set_tag("team", "red")
        mlflow.set_tags({"one": 1, "two": "x" * 5000})
        with tempfile.TemporaryDirectory() as folder:
            for name in ("x.txt", "y.json", "z"):
                with open(os.path.join(folder, name), "w") as file:
                    file.write("" if name == "z" else "{}")
            mlflow.log_artifact(os.path.join(folder, "x.txt"))
            mlflow.log_artifacts(folder, "all")
        mlflow.log_dict({"a": 1}, "d.json")
        mlflow.log_text("hello", "deep/er/t.txt")
        named = {"artifact_path": "model"} if mlflow.__version__.startswith("2.") else {"name": "model"}
        model = mlflow.pyfunc.log_model(python_model=Doubles(), pip_requirements=[], **named)
    return run.info.run_id, model


def check_run(client, run):
    data = client.get_run(run).data
    assert math.isnan(data.metrics["nan"]) and data.metrics["up"] == math.inf and data.metrics["down"] == -math.inf, data.metrics
    assert len(data.params) == 151 and data.params["lr"] == "0.1", data.params
    assert data.tags["team"] == "red" and len(data.tags["two"]) == 5000, data.tags
    assert client.get_run(run).info.status == "FINISHED"
    assert [point.step for point in client.get_metric_history(run, "loss")] == list(range(100))
    assert {item.path for item in client.list_artifacts(run)} >= {"all", "d.json", "deep", "x.txt"}
    assert [item.path for item in client.list_artifacts(run, "deep/er")] == ["deep/er/t.txt"]
    assert mlflow.artifacts.load_text(f"runs:/{run}/deep/er/t.txt") == "hello"
    assert mlflow.artifacts.load_text(f"runs:/{run}/all/z") == ""


def check_registry(client, model):
    version = mlflow.register_model(model.model_uri, "twice")
    assert version.version in (1, "1") and version.status == "READY", version
    client.set_registered_model_alias("twice", "champion", version.version)
    for uri in (model.model_uri, "models:/twice/1", "models:/twice@champion", "models:/twice/latest"):
        assert mlflow.pyfunc.load_model(uri).predict([1, 2]) == [2, 4], uri
    assert mlflow.register_model(model.model_uri, "twice").version in (2, "2")
    client.transition_model_version_stage("twice", "2", "Production")
    assert [v.version for v in client.get_latest_versions("twice", ["Production"])] in ([2], ["2"])
    assert len(client.search_model_versions("name='twice'")) == 2
    assert [m.name for m in client.search_registered_models("name LIKE 'tw%'")] == ["twice"]
    client.delete_model_version("twice", "2")
    client.delete_registered_model("twice")


def check_search():
    for filter, count in (
        ("metrics.loss < 1 and params.lr = '0.1'", 1),
        ("tags.team = 'red' and attributes.status = 'FINISHED'", 1),
        ("metrics.`loss` > 1", 0),
        ("params.p149 LIKE '14_'", 1),
        ("start_time > 0", 1),
    ):
        found = mlflow.search_runs(experiment_names=["day"], filter_string=filter, order_by=["metrics.loss DESC"])
        assert len(found) == count, (filter, found)


def check_later(client, run):
    try:
        client.log_param(run, "lr", 5)
        raise AssertionError("a parameter was changed")
    except MlflowException as error:
        assert error.error_code == "INVALID_PARAMETER_VALUE", error
    with mlflow.start_run(run_id=run):
        mlflow.log_metric("again", 1)
    with mlflow.start_run() as parent:
        with mlflow.start_run(nested=True) as child:
            mlflow.log_metrics({"x": 1.0}, synchronous=False)
        mlflow.flush_async_logging()
    assert client.get_run(child.info.run_id).data.metrics == {"x": 1.0}
    assert client.get_run(child.info.run_id).data.tags["mlflow.parentRunId"] == parent.info.run_id
    client.delete_run(child.info.run_id)
    assert client.get_run(child.info.run_id).info.lifecycle_stage == "deleted"
    client.restore_run(child.info.run_id)
    data = mlflow.data.from_numpy(__import__("numpy").zeros((3, 2)), name="zeros")
    with mlflow.start_run() as run_with_data:
        mlflow.log_input(data, context="train")
    assert client.get_run(run_with_data.info.run_id).inputs.dataset_inputs[0].dataset.name == "zeros"
    assert client.get_experiment_by_name("none") is None


def main():
    mlflow.set_experiment("day")
    client = MlflowClient()
    run, model = log_everything()
    check_run(client, run)
    check_search()
    check_registry(client, model)
    check_later(client, run)
    print("all is well with MLflow", mlflow.__version__)


if __name__ == "__main__":
    main()
