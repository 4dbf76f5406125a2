"""An auth provider: says whose a token is."""

from talon_plugin import Plugin

plugin = Plugin("hello-py", "Says whose tokens are.")


def subject_of(token: str) -> str | None:
    """Whose token it is. Look it up here; nobody is let in before."""
    return None


@plugin.auth_provider(read_only=True)
def authenticate(scheme: str, credential: str, peer: dict) -> dict:
    """Says whose a bearer token is."""
    subject = subject_of(credential)
    if subject is None:
        return {"outcome": "rejected", "reason": "no such token"}
    return {"outcome": "accepted", "subject": subject, "scopes": ["user"]}


if __name__ == "__main__":
    plugin.serve()
