"""Tests of tally.py: the lines at the end of a run."""

import contextlib
import io
import os
import tempfile
import unittest

import tally


class SecondTriesTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    @staticmethod
    def report(second, failed=()):
        """The exit code and the lines of a run with one test that passed, and those that were run a second time."""
        run = tally.Tally()
        run.passed = 1 + sum(second.values())
        run.failed = list(failed)
        run.second = second
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = run.report()
        return code, output.getvalue().splitlines()

    def test_a_second_try_is_named_with_the_runs_that_needed_it(self):
        self.assertEqual(self.report({"A: a": True})[1][0], "second try: A: a: passed; needed in 1 of 1 runs here")
        self.assertEqual(self.report({}), (0, ["1 passed, 0 failed, 0 skipped"]))
        code, lines = self.report({"B: b": False, "A: a": True}, failed=["B: b"])
        self.assertEqual(code, 1)
        self.assertEqual(lines, [
            "failed: B: b",
            "second try: A: a: passed; needed in 2 of 3 runs here",
            "second try: B: b: failed; needed in 1 of 3 runs here",
            "2 passed, 1 failed, 0 skipped",
        ])

    def test_a_damaged_history_begins_anew(self):
        os.mkdir(".build")
        for text in ("", "[]", "{}", '{"runs": 1, "tests": {"a": "x"}}'):
            with open(tally.HISTORY, "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(tally.count_second_tries(["a"]), (1, {"a": 1}))

    def test_a_test_that_fails_twice_has_failed_and_one_that_passes_has_passed(self):
        outcomes = [(0, ["A", "B"]), (1, ["B"])]
        names = {"A": "T.A/a()/F.swift:1:2", "B": "T.B/b()/F.swift:2:2"}

        def run(tests, _name, _flags, _select, minutes=tally.MINUTES):
            passed, failed = outcomes.pop(0)
            tests.passed += passed
            tests.failed += failed
            tests.identifiers.update(names)

        self.addCleanup(setattr, tally, "run", tally.run)
        tally.run = run
        tests = tally.Tally()
        tally.run_apart(tests, "debug", [], [])
        self.assertEqual((tests.passed, tests.failed, tests.second), (0, ["A", "B"], {"A": True, "B": False}))


if __name__ == "__main__":
    unittest.main()
