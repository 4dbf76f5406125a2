"""What hints become, and what texts become by them."""

import enum
import json
import logging
import unittest
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

from talon_plugin import Context, Output, Plugin, ProposedJob, ToolError, storage
from talon_plugin.logs import HclogFormatter
from talon_plugin.testing import call


class Colour(enum.Enum):
    red = 1
    green = 2


class Point(TypedDict):
    x: int
    label: NotRequired[str]


plugin = Plugin("tests", "Of the tests.")


@plugin.tool
def everything(
    text: str,
    count: Annotated[int, "How many.", {"minimum": 1, "maximum": 9}],
    ratio: float = 0.5,
    loud: bool = False,
    tags: list[str] = [],
    marks: dict[str, int] | None = None,
    mode: Literal["fast", "slow"] = "fast",
    colour: Colour = Colour.red,
    point: Optional[Point] = None,
    anything: list = [],
) -> dict[str, Any]:
    """Takes everything.

    And more of it.

    Args:
        text: The text, which
            goes on here.
        ratio: A part.
    """
    colour = colour.name
    return {name: value for name, value in locals().items()}


typed = Plugin("typed", "Of the tests of types.")


@typed.tool
def mixed(
    either: int | str = 0, whatever: Any = "left out", listed: list[int | str] = [], maybe: int | None = 5
) -> dict[str, Any]:
    """Takes what has several types."""
    return {name: value for name, value in locals().items()}


@plugin.tool(name="in-context", user_only=True, destructive=True, inject=["session_id"])
def in_context(ctx: Context) -> Output:
    """Looks at its call."""
    return Output(ctx.injected.get("session_id", "nobody"), {"left": ctx.remaining()})


class Typed(unittest.TestCase):
    def values(self, texts: dict[str, str], arguments_json: str) -> dict[str, Any]:
        return typed.find("mixed").call(Context(), texts, arguments_json)

    def test_seven_is_no_text_where_the_host_sends_types(self):
        for value in (7, "7", "true", "null", "1.10", 12345678901234567890123):
            got = self.values({"either": str(value)}, json.dumps({"either": value}))["either"]
            self.assertEqual((got, type(got)), (value, type(value)))
        for value in (7, "7", None, True, "null", [1, "1"], {"a": None}):
            got = self.values({}, json.dumps({"whatever": value}))["whatever"]
            self.assertEqual((got, type(got)), (value, type(value)))
        self.assertEqual(self.values({}, '{"listed": [7, "7"]}')["listed"], [7, "7"])

    def test_null_is_a_value_only_where_it_is_one(self):
        self.assertIsNone(self.values({}, '{"maybe": null}')["maybe"])
        self.assertEqual(self.values({}, "{}")["maybe"], 5)
        self.assertEqual(self.values({}, '{"either": null}')["either"], 0)

    def test_texts_alone_are_what_they_look_like(self):
        got = self.values({"either": "7", "whatever": "[1]"}, "")
        self.assertEqual((got["either"], got["whatever"]), (7, [1]))
        got = self.values({"either": "seven", "whatever": "{"}, "")
        self.assertEqual((got["either"], got["whatever"]), ("seven", "{"))

    def test_a_text_for_a_number_is_read_as_one(self):
        got = plugin.find("everything").call(Context(), {}, '{"text": "x", "count": "7", "loud": "true"}')
        self.assertEqual((got["count"], got["loud"]), (7, True))

    def test_what_does_not_fit_is_told(self):
        for sent, says in [
            ('{"either": 1.5}', "argument 'either': expected integer or string, got \"1.5\""),
            ('{"listed": [true]}', "argument 'listed': expected an array"),
            ('{"other": 1}', "unknown argument"),
            ("[]", "no JSON object"),
            ("{", "no JSON"),
            ('{"whatever": NaN}', "no JSON"),
            ('{"whatever": ' + "[" * 100_000, "nested too deeply"),
        ]:
            with self.subTest(sent[:40]), self.assertRaises(ToolError) as caught:
                self.values({}, sent)
            self.assertIn(says, str(caught.exception))

    def test_several_types_are_declared(self):
        declared = {parameter.name: parameter for parameter in typed.find("mixed").declared().parameters}
        self.assertEqual((declared["either"].type, declared["whatever"].type), ("any", "any"))
        self.assertEqual(json.loads(declared["either"].schema), {"anyOf": [{"type": "integer"}, {"type": "string"}]})
        self.assertEqual(declared["whatever"].schema, "")


class Declared(unittest.TestCase):
    def test_hints_become_parameters(self):
        action = plugin.capabilities().actions[0]
        self.assertEqual(action.description, "Takes everything.\n\nAnd more of it.")
        seen = {p.name: (p.type, p.required, p.description, p.schema) for p in action.parameters}
        self.assertEqual(seen["text"], ("string", True, "The text, which goes on here.", ""))
        schema = '{"type": "integer", "minimum": 1, "maximum": 9}'
        self.assertEqual(seen["count"], ("integer", True, "How many.", schema))
        self.assertEqual(seen["ratio"], ("number", False, "A part.", ""))
        self.assertEqual(seen["loud"][:2], ("boolean", False))
        self.assertEqual(json.loads(seen["tags"][3]), {"type": "array", "items": {"type": "string"}})
        self.assertEqual(seen["marks"][:2], ("object", False))
        self.assertEqual(json.loads(seen["mode"][3])["enum"], ["fast", "slow"])
        self.assertEqual(json.loads(seen["colour"][3])["enum"], ["red", "green"])
        self.assertEqual(json.loads(seen["point"][3])["required"], ["x"])
        self.assertEqual(seen["anything"][3], "")

    def test_flags_are_told_and_a_context_is_no_parameter(self):
        action = plugin.capabilities().actions[1]
        self.assertEqual(action.name, "in-context")
        self.assertTrue(action.user_only and action.destructive and not action.read_only)
        self.assertFalse(plugin.capabilities().actions[0].HasField("destructive"))
        self.assertEqual((list(action.parameters), list(action.inject_context_args)), ([], ["session_id"]))

    def test_roles_are_declared(self):
        hooks = Plugin("hooks")

        @hooks.request_hook
        def look(message: str, session: dict, metadata: dict) -> dict:
            """Looks."""
            return {"verdict": "pass"}

        @hooks.tool(roles=["filter", "tool"], read_only=True)
        def both(message: str) -> dict:
            """Both."""
            return {"verdict": "pass"}

        look_, both_ = hooks.capabilities().actions
        self.assertEqual((list(look_.roles), list(both_.roles)), (["request_hook"], ["filter", "tool"]))
        self.assertTrue(both_.read_only)
        self.assertEqual([p.type for p in look_.parameters], ["string", "object", "object"])

    def test_each_role_has_a_decorator(self):
        one = Plugin("one")

        @one.notification_sink
        def send(event: dict, attempt: int, events: list = ()) -> dict:
            """Sends."""
            return {"status": "retry", "reason": event["summary"]}

        @one.scheduled_task(read_only=True)
        def tidy(run: dict, days: int) -> dict:
            """Tidies."""
            return {"run": run["id"], "days": days}

        @one.auth_provider
        def login(scheme: str, credential: str, peer: dict) -> dict:
            """Logs in."""
            return {"outcome": "rejected"}

        @one.api_route
        def reply(
            method: str, path: str, query: dict, headers: dict, body: str, subject: str, body_encoding: str = "text"
        ) -> dict:
            """Replies."""
            return {"status": 200}

        @one.channel
        def talk(op: str, id: str = "", conversation: str = "", text: str = "", buttons: list = (), attempt: int = 0) -> dict:
            """Talks."""
            return {"status": "delivered", "sent_bytes": len(text)}

        roles = [list(action.roles) for action in one.capabilities().actions]
        self.assertEqual(roles, [["notification_sink"], ["scheduled_task"], ["auth_provider"], ["api_route"], ["channel"]])
        talked = call(one, "talk", {"op": "send", "id": "m1", "conversation": "ada", "text": "Hello", "attempt": 1})
        self.assertEqual(json.loads(talked.structured_content), {"status": "delivered", "sent_bytes": 5})
        sent = call(one, "send", {"event": {"summary": "busy"}, "attempt": 1})
        self.assertEqual(json.loads(sent.structured_content), {"status": "retry", "reason": "busy"})
        run = json.loads(call(one, "tidy", {"run": {"id": "r"}, "days": 3}).structured_content)
        self.assertEqual(run, {"run": "r", "days": 3})

    def test_a_job_is_proposed(self):
        one = Plugin("one")

        @one.tool(jobs=[ProposedJob(cron="@daily", timezone="Europe/Berlin", arguments={"days": 30})])
        def tidy(run: dict, days: int) -> str:
            """Tidies."""
            return "tidied"

        @one.scheduled_task(jobs=[ProposedJob(every="6h", name="often")])
        def look(run: dict) -> str:
            """Looks."""
            return "looked"

        tidy_, look_ = one.capabilities().actions
        self.assertEqual((list(tidy_.roles), list(look_.roles)), (["scheduled_task"], ["scheduled_task"]))
        job, often = tidy_.proposed_jobs[0], look_.proposed_jobs[0]
        self.assertEqual((job.name, job.cron, job.timezone), ("", "@daily", "Europe/Berlin"))
        self.assertEqual(json.loads(job.arguments_json), {"days": 30})
        self.assertEqual((often.name, often.every, often.arguments_json), ("often", "6h", ""))

    def test_bytes_are_sealed_and_only_whole_ones_are_opened(self):
        sealed = storage.seal(b"\x00\xff\xfe\n")
        self.assertEqual(sealed["data"], "AP_-Cg")
        self.assertEqual(storage.unseal(sealed), b"\x00\xff\xfe\n")
        for wrong in [{**sealed, "data": "AA"}, {**sealed, "data": "?"}, {}]:
            with self.assertRaises(ToolError):
                storage.unseal(wrong)

    def test_what_cannot_be_declared_is_refused_where_it_is_written(self):
        def no_hint(a): ...
        def odd(a: set): ...
        def rest(*args: str): ...
        def mixed(a: Literal[1, "a"]): ...
        for function in (no_hint, odd, rest, mixed):
            with self.assertRaises(TypeError, msg=function.__name__):
                plugin.tool(function)
        with self.assertRaises(ValueError):
            plugin.tool(name="no name")(lambda: "")
        with self.assertRaises(ValueError):
            plugin.tool(name="everything")(lambda: "")


class Called(unittest.TestCase):
    def everything(self, **args):
        return json.loads(call(plugin, "everything", args).structured_content)

    def test_texts_become_values(self):
        made = self.everything(text="5", count=2, tags=["a"], marks={"a": 1}, mode="slow", colour="green", point={"x": 1})
        self.assertEqual((made["text"], made["count"], made["ratio"], made["loud"]), ("5", 2, 0.5, False))
        self.assertEqual((made["tags"], made["marks"], made["mode"]), (["a"], {"a": 1}, "slow"))
        self.assertEqual((made["colour"], made["point"]), ("green", {"x": 1}))
        self.assertEqual(self.everything(text="", count="3.0", loud="true")["count"], 3)

    def test_what_does_not_fit_is_told(self):
        good = {"text": "a", "count": 1}
        for args, says in [
            ({"count": 1}, "argument 'text' is missing"),
            ({**good, "shout": "x"}, 'unknown argument "shout"; everything takes anything, colour'),
            ({**good, "count": "many"}, "argument 'count': expected an integer from 1 to 9, got \"many\""),
            ({**good, "count": 10}, "argument 'count': expected an integer from 1 to 9"),
            ({**good, "count": True}, "argument 'count': expected an integer"),
            ({**good, "count": "1e999"}, "argument 'count': expected an integer"),
            ({**good, "ratio": "NaN"}, "argument 'ratio': expected a number"),
            ({**good, "loud": "yes"}, "argument 'loud': expected true or false"),
            ({**good, "tags": [1]}, "argument 'tags': expected an array"),
            ({**good, "tags": "[" * 100_000}, "argument 'tags'"),
            ({**good, "marks": {"a": "b"}}, "argument 'marks': expected an object"),
            ({**good, "mode": "odd"}, "argument 'mode': expected one of fast, slow, got \"odd\""),
            ({**good, "colour": "blue"}, "argument 'colour': expected one of red, green"),
            ({**good, "point": {}}, "argument 'point': expected an object"),
            ({**good, "point": {"x": 1, "z": 1}}, "argument 'point': expected an object"),
        ]:
            with self.assertRaises(ToolError, msg=str(args)[:80]) as caught:
                call(plugin, "everything", args)
            self.assertIn(says, str(caught.exception))
            self.assertLess(len(str(caught.exception)), 300)

    def test_a_call_knows_of_itself(self):
        made = call(plugin, "in-context", {"session_id": "s1"}, seconds=100)
        self.assertEqual(made.content, "s1")
        self.assertGreater(json.loads(made.structured_content)["left"], 90)

    def test_an_unknown_action_is_told(self):
        with self.assertRaisesRegex(ToolError, "there are everything, in-context"):
            call(plugin, "nothing")

    def test_a_call_that_is_over_is_seen(self):
        cx = Context(seconds=0)
        self.assertTrue(cx.is_cancelled())
        self.assertFalse(cx.wait(60))
        with self.assertRaises(ToolError):
            cx.check()
        cx = Context()
        self.assertFalse(cx.is_cancelled())
        cx._cancel()
        self.assertTrue(cx.is_cancelled())


class Settings(unittest.TestCase):
    def test_without_a_reader_there_are_none(self):
        Plugin("p").configure({})
        with self.assertRaisesRegex(ValueError, "remove loud"):
            Plugin("p").configure({"loud": True})

    def test_a_reader_refuses(self):
        own = Plugin("p")

        @own.init
        def init(config):
            if config["root"] != "/":
                raise ValueError("root must be /")

        own.configure({"root": "/"})
        self.assertEqual(own.config, {"root": "/"})
        with self.assertRaisesRegex(ValueError, "must be /"):
            own.configure({"root": "x"})


class Logs(unittest.TestCase):
    def test_a_record_is_one_line_of_hclog(self):
        try:
            raise OSError("no\nfile")
        except OSError as error:
            caught = (type(error), error, error.__traceback__)
        record = logging.LogRecord("mine", logging.WARNING, "f", 1, "a\n%s", ("b",), caught)
        line = HclogFormatter().format(record)
        self.assertNotIn("\n", line)
        said = json.loads(line)
        self.assertEqual((said["@level"], said["@message"], said["@module"]), ("warn", "a\nb", "mine"))
        self.assertIn("OSError", said["error"])


if __name__ == "__main__":
    unittest.main()
