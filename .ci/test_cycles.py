"""Tests of cycles.py: the compiler indexes a small program, and the check reads it."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

# Shapes uses Colors. Colors has Shapes in a comment and a string only. The root's file uses both.
PROGRAM = {
    "Shapes/Circle.swift": "struct Circle { var color = Color.red\n func paint() -> Color { color.mixed } }",
    "Colors/Color.swift": "enum Color { case red }",
    "Colors/Mixing.swift": 'let note = "Circle()" // Circle\nextension Color { var mixed: Color { self } }',
    "Draw.swift": "func draw(_ circle: Circle) -> Color { circle.paint() }",
}


class CyclesTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def check(self, changes=None, build=True):
        """Exit code and output of the check on the program with some files changed."""
        root = os.path.join(self.folder, "Sources", "Drawing")
        paths = []
        for name, text in {**PROGRAM, **(changes or {})}.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            paths.append(path)
        store = os.path.join(self.folder, "store")
        if build:
            subprocess.run(
                ["swiftc", "-parse-as-library", "-Onone", "-module-name", "Drawing", "-index-store-path", store, "-c",
                 *paths], cwd=self.folder, check=True)
        run = subprocess.run(
            [sys.executable, os.path.join(HERE, "cycles.py"), "--store", store,
             "--sources", os.path.join(self.folder, "Sources")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return run.returncode, run.stdout

    def test_one_direction_is_no_cycle(self):
        code, output = self.check()
        self.assertEqual(code, 0, output)
        self.assertIn("Drawing: . Colors Shapes\n", output)
        self.assertIn("cycles: 0 pairs of folders depend on each other\n", output)

    def test_both_directions_fail_and_name_their_causes(self):
        back = {"Colors/Mixing.swift": "extension Color { var mixed: Color { Circle().color } }"}
        code, output = self.check(back)
        self.assertEqual(code, 1, output)
        self.assertIn(
            " Drawing: Colors and Shapes depend on each other, 1 to move\n"
            "  Colors uses 3 of Shapes's declarations (1 to move):\n"
            "    Mixing.swift: Circle, Circle.color, Circle.init()\n"
            "  Shapes uses 3 of Colors's declarations (2 to move):\n"
            "    Circle.swift: Color, Color.mixed, Color.red\n", output)

    def test_a_member_without_its_type_is_a_use(self):
        # Neither file writes the name of the other folder's type.
        code, output = self.check({
            "Shapes/Square.swift": "extension Int { var square: Int { mixed } }",
            "Colors/Mixing.swift": "extension Int { var mixed: Int { square } }\nextension Color { var mixed: Color { self } }",
        })
        self.assertEqual(code, 1, output)
        self.assertIn("    Mixing.swift: Int.square\n", output)
        self.assertIn("    Square.swift: Int.mixed\n", output)

    def test_a_nested_folder_counts_for_itself(self):
        code, output = self.check({
            "Shapes/Round/Ellipse.swift": "struct Ellipse { var color = Color.red }",
            "Colors/Mixing.swift": "extension Color { var mixed: Color { Ellipse().color } }",
        })
        self.assertEqual(code, 1, output)
        self.assertIn("Drawing: . Colors Shapes Shapes/Round\n", output)
        self.assertIn(" Drawing: Shapes/Round and Colors depend on each other", output)
        self.assertIn("cycles: 1 pairs", output)

    def test_an_enum_case_of_another_folder_is_a_use(self):
        code, output = self.check({"Colors/Color.swift": "indirect enum Color { case red, filled(Circle) }"})
        self.assertEqual(code, 1, output)
        self.assertIn("    Color.swift: Circle\n", output)

    def test_a_file_newer_than_the_index_is_refused(self):
        self.check()
        code, output = self.check({"Colors/Mixing.swift": "extension Color { var mixed: Color { .red } }"}, build=False)
        self.assertEqual(code, 2, output)
        self.assertIn("Mixing.swift", output)


if __name__ == "__main__":
    unittest.main()
