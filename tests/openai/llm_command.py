"""Simon Willison's `llm`, as a command."""

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

from clients import BASE_URL, MODEL, TOKEN

with tempfile.TemporaryDirectory() as home:
    models = [
        {
            "model_id": "here",
            "model_name": MODEL,
            "api_base": BASE_URL,
            "api_key_name": "here",
            "supports_tools": True,
            "supports_schema": True,
        }
    ]
    with open(f"{home}/extra-openai-models.yaml", "w") as file:
        # JSON is YAML.
        json.dump(models, file)
    with open(f"{home}/keys.json", "w") as file:
        json.dump({"here": TOKEN}, file)
    program = os.path.join(os.path.dirname(sys.executable), "llm")

    def run(*args: str) -> str:
        """The command's output."""
        command = [program, *args]
        made = subprocess.run(
            command, env={**os.environ, "LLM_USER_PATH": home}, capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made
        return made.stdout.strip()

    assert run("-m", "here", "-s", "Be brief.", "Count") == "One two three."
    assert run("-m", "here", "--no-stream", "Count") == "One two three."
    schema = json.dumps({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
    assert json.loads(run("-m", "here", "--schema", schema, "Which city?")) == {"city": "Paris"}
    functions = 'def look(at: str) -> str:\n    "Looks how it is somewhere."\n    return f"It is warm at {at}."'
    assert "It is warm at home." in run("-m", "here", "--functions", functions, "Look")
print("llm", version("llm"))
