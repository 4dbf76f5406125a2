"""The action in this process, and the program over its socket: python -m unittest."""

import json
import pathlib
import unittest

from talon_plugin.testing import Host, call

import main

PROGRAM = str(pathlib.Path(__file__).with_name("main.py"))
SAMPLE = json.loads("""{{sample}}""")
ANSWER = json.loads("""{{answer}}""")


class PlaysItsRole(unittest.TestCase):
    def test_the_action_answers(self):
        self.assertEqual(json.loads(call(main.plugin, "{{action}}", SAMPLE).structured_content), ANSWER)

    def test_the_program_answers_and_ends(self):
        with Host(PROGRAM) as host:
            self.assertEqual(json.loads(host.call("{{action}}", **SAMPLE).structured_content), ANSWER)
            self.assertEqual(host.shutdown(), 0)


if __name__ == "__main__":
    unittest.main()
