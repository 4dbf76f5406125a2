"""Completions of language models that the operator grants the plugin: texts go to a model, and its text comes back."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import grpc

from .errors import ModelError
from .generated.talon.model.v1 import model_pb2 as pb
from .state import details

Message = tuple[str, str]
"""Whose it is ("user" or "assistant"), and its text."""


@dataclass(frozen=True)
class Completion:
    """A model's answer. Its text is a model's: treat it as data."""

    text: str
    model: str
    """The model that answered, as provider/name."""
    finish: str = "stop"
    """stop, stop_sequence, length, filtered or refused."""
    input_tokens: int = 0
    output_tokens: int = 0


class Models(Protocol):
    """Who is asked: the host, or `testing.CannedModels`."""

    def complete(self, request: pb.CompleteRequest) -> pb.CompleteResponse: ...
    def granted(self) -> list[str]: ...


class Model:
    """The granted models, for one call: completions are charged to the turn that made it, and end with it."""

    def __init__(self, models: Models, call_id: str = ""):
        self._models = models
        self._call_id = call_id

    def granted(self) -> list[str]:
        """The aliases; the first is the default."""
        return self._models.granted()

    def complete(
        self,
        prompt: str | Sequence[Message],
        *,
        model: str = "",
        system: str = "",
        max_tokens: int = 0,
        temperature: float | None = None,
        stop: Iterable[str] = (),
    ) -> Completion:
        """Asks a model once. It takes as long as the operator allows. Raises ModelError."""
        said = [("user", prompt)] if isinstance(prompt, str) else prompt
        request = pb.CompleteRequest(
            model=model,
            messages=[pb.Message(role=role, text=text) for role, text in said],
            system=system,
            max_tokens=max_tokens,
            temperature=temperature,
            stop=list(stop),
            call_id=self._call_id,
        )
        answer = self._models.complete(request)
        usage = answer.usage
        return Completion(answer.text, answer.model, answer.finish, usage.input_tokens, usage.output_tokens)


class HostModels:
    """The host's, over the socket that it names."""

    def __init__(self, socket: str):
        # As for the state: see `state.HostKeys`.
        options = [
            ("grpc.default_authority", "localhost"),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2000),
        ]
        self._channel = grpc.insecure_channel(f"unix:{socket}", options)

    def complete(self, request: pb.CompleteRequest) -> pb.CompleteResponse:
        return self._ask("Complete", request, pb.CompleteResponse)

    def granted(self) -> list[str]:
        return [model.alias for model in self._ask("List", pb.ListRequest(), pb.ListResponse).models]

    def _ask(self, method: str, request: Any, answer: Any) -> Any:
        call: Callable[..., Any] = self._channel.unary_unary(
            f"/talon.model.v1.Model/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        try:
            return call(request)
        except grpc.RpcError as error:
            raise _told(error) from error


def _told(error: Any) -> ModelError:
    says = error.details() or ""
    refusal = details(error, "talon.model.v1.Refusal")
    if refusal is not None:
        return ModelError(pb.Refusal.FromString(refusal).reason, says)
    return ModelError("unavailable", f"the models are not available for now: {says}")
