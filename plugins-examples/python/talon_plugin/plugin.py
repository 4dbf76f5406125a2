"""What a plugin's author uses: tools, and the program that serves them."""

from .serve import serve
from .tools import ToolSet


class Plugin(ToolSet):
    """A name, a description, and tools. `serve()` at the end of the program does the rest."""

    def serve(self) -> None:
        """Serves until the host is done, and ends the process."""
        serve(self)
