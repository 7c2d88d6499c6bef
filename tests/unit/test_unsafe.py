"""The sources do not run data as code, or text as a shell command."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "apps").rglob("*.py")])
MODULES = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "yaml"}
CALLS = {"eval", "exec", "compile", "__import__", "system", "popen"}


def unsafe(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in MODULES:
                yield module
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr=name)) if name in CALLS:
                yield f"os.{name}"
            case ast.keyword(arg="shell", value=ast.Constant(value=True)):
                yield "shell=True"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_unpickled_evaluated_or_run_by_a_shell(path: Path) -> None:
    assert list(unsafe(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "source",
    [
        *("import pickle", "from pickle import loads", "import yaml", "eval('1')", "exec('1')"),
        *("os.system('ls')", "subprocess.run('ls', shell=True)"),
    ],
)
def test_unsafe_code_is_detected(source: str) -> None:
    assert list(unsafe(ast.parse(source)))
