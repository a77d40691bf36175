"""Lay out the fixtures before anything is collected, and hand them out."""

import os
import subprocess

import pytest
import support


def pytest_configure(config):
    if not support.FERRY.exists():
        pytest.exit(f"{support.FERRY} is missing: run `make test`", returncode=2)
    worker = hasattr(config, "workerinput")
    if support.ARCHIVES.is_dir() and not worker:
        command = [support.ARCHIVES / "unpack", support.FIXTURES]
        subprocess.run(command, check=True)
        support.complete_fixtures()


def require_fixtures():
    if support.ARCHIVES.is_dir():
        return
    reason = f"no fixtures in {support.ARCHIVES} (FERRY_FIXTURES names another folder)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def fixture():
    """The folder of a model type's fixture."""

    def find(model_type):
        require_fixtures()
        return support.FIXTURES / model_type

    return find


@pytest.fixture(scope="session")
def export(fixture, tmp_path_factory):
    """The folder of an export of a model type's fixture, made once."""
    made = {}

    def find(model_type):
        if model_type not in made:
            source = fixture(model_type)
            target = tmp_path_factory.mktemp("export") / model_type
            inputs = source / "inputs.safetensors"
            support.ferry("export", source, "-o", target, "--inputs", inputs, "--dynamic")
            made[model_type] = target
        return made[model_type]

    return find
