"""Tests of the package as a whole: its names and version, its docs, its types, its examples."""

import ast
import doctest
import importlib.metadata
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
import unittest

import millstream
from millstream import csm, history, slab

HERE = pathlib.Path(__file__).parent
MODULES = [csm, history, slab]


class Package(unittest.TestCase):
    def test_it_tells_its_version_and_its_names(self):
        manifest = (HERE.parent / "Cargo.toml").read_text()
        self.assertIn(f'version = "{millstream.__version__}"', manifest)
        self.assertEqual(csm.__version__, millstream.__version__)
        self.assertEqual(millstream.__all__, ["csm", "history", "slab"])
        for module in MODULES:
            self.assertEqual(module.__all__, sorted(set(module.__all__)))
            self.assertIs(importlib.util.find_spec(module.__name__).loader, module.__loader__)
            for name in module.__all__:
                found = getattr(module, name)
                if isinstance(found, type):
                    self.assertEqual((found.__module__, found.__name__), (module.__name__, name))

    def test_the_wheel_suits_every_python_and_carries_licences_and_types(self):
        wheel = importlib.metadata.distribution("millstream")
        tags = [line.split(": ")[1] for line in wheel.read_text("WHEEL").splitlines() if line.startswith("Tag: ")]
        self.assertTrue(tags and all(re.fullmatch(r"cp311-abi3-(many)?linux_\w+", tag) for tag in tags), tags)
        files = {file.name for file in wheel.files}
        types = {f"{module.__name__.split('.')[1]}.pyi" for module in MODULES}
        self.assertLessEqual({"LICENSE-APACHE", "LICENSE-MIT", "py.typed", *types}, files)
        self.assertEqual(wheel.metadata["License-Expression"], "MIT OR Apache-2.0")
        self.assertEqual(wheel.metadata["Requires-Python"], ">=3.11")
        self.assertIn("# Millstream for Python", wheel.metadata.get_payload() or wheel.metadata["Description"])

    @unittest.skipIf(importlib.util.find_spec("hypothesis") is None, "pip install hypothesis brings what it needs")
    def test_the_example_with_hypothesis_runs(self):
        command = [sys.executable, "-m", "unittest", "-q", "hypothesis_queue"]
        run = subprocess.run(command, cwd=HERE.parent / "examples", capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("Ran 1 test", run.stderr)

    def test_the_example_with_numpy_runs(self):
        if importlib.util.find_spec("numpy") is None:
            self.skipTest("numpy is not installed")
        command = [sys.executable, str(HERE.parent / "examples" / "shared_arrays.py")]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, "4 workers filled 40 arrays, the sum is 780000\n")


class Docs(unittest.TestCase):
    def test_the_readme_runs_as_printed(self):
        failed, tried = doctest.testfile(str(HERE.parent / "README.md"), module_relative=False)
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 20)

    def test_the_docstrings_run_as_printed(self):
        finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
        for module in MODULES:
            before = runner.tries
            for test in finder.find(module, module.__name__, globs={}):
                test.globs.update(vars(module))
                runner.run(test)
            for name in module.__all__:
                for test in finder.find(getattr(module, name), name, module=False, globs=vars(module).copy()):
                    runner.run(test)
            self.assertGreater(runner.tries, before, module.__name__)
        self.assertEqual(runner.failures, 0)

    def test_everything_has_a_docstring_and_a_type_hint(self):
        for module in MODULES:
            path = HERE.parent / "python" / "millstream" / f"{module.__name__.split('.')[1]}.pyi"
            stub = ast.parse(path.read_text())
            hinted = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
            constants = {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
            constants = {name for name in constants if not name.startswith("_")}
            self.assertEqual(set(hinted) | constants, set(module.__all__))
            for name, node in hinted.items():
                self.check_hint(name, getattr(module, name), node)

    def check_hint(self, name, found, node):
        self.assertTrue(found.__doc__, name)
        # The stub's docstring is the beginning of the real one.
        self.assertTrue(found.__doc__.strip().startswith(ast.get_docstring(node)[:20].rstrip(".")), name)
        if isinstance(node, ast.FunctionDef):
            self.assertEqual(parameters(found), names(node), name)
            return
        if issubclass(found, Exception):
            return
        if issubclass(found, tuple):
            self.assertEqual(list(found._fields), [line.target.id for line in node.body if isinstance(line, ast.AnnAssign)])
            return
        members = {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}
        self.assertEqual({member for member in members if not member.startswith("_")}, public(found), name)
        for member in public(found):
            if callable(getattr(found, member)):
                self.assertTrue(getattr(found, member).__doc__, f"{name}.{member}")
                expected = [parameter for parameter in names(members[member]) if parameter != "self"]
                found_here = [parameter for parameter in parameters(getattr(found, member)) if parameter != "self"]
                self.assertEqual(found_here, expected, f"{name}.{member}")
        if "__new__" in members:
            self.assertEqual(parameters(found), names(members["__new__"])[1:], name)


def public(owner):
    return {name for name in vars(owner) if not name.startswith("_")}


def parameters(function):
    return list(inspect.signature(function).parameters)


def names(node):
    return [argument.arg for argument in node.args.posonlyargs + node.args.args + node.args.kwonlyargs]


if __name__ == "__main__":
    unittest.main()
