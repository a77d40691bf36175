"""Install, and use what was installed: the command, and the example through CMake and pkg-config."""

import os
import shutil
import subprocess

import pytest
from support import ENVIRONMENT, FERRY, ROOT, ferry


def run(*command, **variables) -> str:
    done = subprocess.run(
        command, env={**ENVIRONMENT, **variables}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    directory = tmp_path_factory.mktemp("install") / "prefix"
    run("cmake", "--install", FERRY.parent, "--prefix", directory)
    return directory


def check_example(program, checkpoint, directory, **variables):
    printed = run(program, checkpoint, directory, **variables)
    assert "LlamaForCausalLM: " in printed
    assert "logits float32, 512 elements" in printed
    assert sorted(path.name for path in directory.iterdir()) == [
        "config.json",
        "export.json",
        "generation_config.json",
        "model.onnx",
        "model.onnx.data",
    ]


def test_command(prefix):
    assert run(prefix / "bin/ferry", "--version") == ferry("--version").stdout


def test_headers_stand_alone(prefix, tmp_path):
    for header in sorted((prefix / "include/ferry").glob("*.h")):
        for language, standard in (("c", "-std=c17"), ("c++", "-std=c++17")):
            source = tmp_path / "one"
            source.write_text(f"#include <ferry/{header.name}>\n")
            if language == "c++" and not shutil.which("g++"):
                continue
            compiler = "cc" if language == "c" else "g++"
            run(
                *(compiler, "-x", language, standard, "-Wall", "-Wextra", "-Werror", "-pedantic"),
                *("-fsyntax-only", "-I", prefix / "include", source),
            )


def test_only_the_public_names_are_exported(prefix):
    library = next(prefix.rglob("libferry.so"))
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    names = {line.split()[-1] for line in lines}
    assert "ferry_export" in names
    assert [name for name in names if not name.startswith("ferry_")] == []


def test_example_with_cmake(prefix, fixture, tmp_path):
    build = tmp_path / "build"
    run("cmake", "-S", ROOT / "examples", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    check_example(build / "export_and_run", fixture("llama"), tmp_path / "out")


def test_example_with_pkg_config(prefix, fixture, tmp_path):
    for name in ("Makefile", "export_and_run.c"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    library = next(prefix.rglob("libferry.so")).parent
    moved = {"PKG_CONFIG_PATH": str(library / "pkgconfig"), "CFLAGS": "-std=c17 -Wall -Werror"}
    run("make", "-C", tmp_path, **moved)
    path = os.pathsep.join(filter(None, [str(library), os.environ.get("LD_LIBRARY_PATH")]))
    program = tmp_path / "export_and_run"
    check_example(program, fixture("llama"), tmp_path / "out", LD_LIBRARY_PATH=path)


def test_example_explains_a_failure(prefix, tmp_path):
    for name in ("Makefile", "export_and_run.c"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    library = next(prefix.rglob("libferry.so")).parent
    run("make", "-C", tmp_path, PKG_CONFIG_PATH=str(library / "pkgconfig"))
    done = subprocess.run(
        [tmp_path / "export_and_run", tmp_path, tmp_path / "out"],
        env={**ENVIRONMENT, "LD_LIBRARY_PATH": str(library)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr.startswith("NOT_FOUND: ")
