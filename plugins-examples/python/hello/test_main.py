"""The tool in this process, and the program over its socket: python -m unittest."""

import pathlib
import unittest

from talon_plugin import ToolError
from talon_plugin.testing import Host, call

import main

PROGRAM = str(pathlib.Path(__file__).with_name("main.py"))


class Greet(unittest.TestCase):
    def test_it_greets(self):
        self.assertEqual(call(main.plugin, "greet", {"name": "Ada"}).content, "Hello, Ada!")

    def test_it_asks_for_a_name(self):
        with self.assertRaisesRegex(ToolError, "give a name"):
            call(main.plugin, "greet", {"name": " "})

    def test_the_program_answers_and_ends(self):
        with Host(PROGRAM) as host:
            self.assertEqual(host.call("greet", name="Ada").content, "Hello, Ada!")
            self.assertEqual(host.call("greet").error, "argument 'name' is missing")
            self.assertEqual(host.shutdown(), 0)


if __name__ == "__main__":
    unittest.main()
