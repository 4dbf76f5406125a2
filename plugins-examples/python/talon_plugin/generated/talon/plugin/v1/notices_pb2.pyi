from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListenRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Notice(_message.Message):
    __slots__ = ("progress", "capabilities_changed", "lists_changed", "resources_updated", "output", "script")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_CHANGED_FIELD_NUMBER: _ClassVar[int]
    LISTS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_UPDATED_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_FIELD_NUMBER: _ClassVar[int]
    progress: Progress
    capabilities_changed: CapabilitiesChanged
    lists_changed: ListsChanged
    resources_updated: ResourcesUpdated
    output: CallOutput
    script: ScriptStatus
    def __init__(self, progress: _Optional[_Union[Progress, _Mapping]] = ..., capabilities_changed: _Optional[_Union[CapabilitiesChanged, _Mapping]] = ..., lists_changed: _Optional[_Union[ListsChanged, _Mapping]] = ..., resources_updated: _Optional[_Union[ResourcesUpdated, _Mapping]] = ..., output: _Optional[_Union[CallOutput, _Mapping]] = ..., script: _Optional[_Union[ScriptStatus, _Mapping]] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("call_id", "progress", "total", "message")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    progress: float
    total: float
    message: str
    def __init__(self, call_id: _Optional[str] = ..., progress: _Optional[float] = ..., total: _Optional[float] = ..., message: _Optional[str] = ...) -> None: ...

class CallOutput(_message.Message):
    __slots__ = ("call_id", "lines", "left_out_lines")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_LINES_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    lines: _containers.RepeatedScalarFieldContainer[str]
    left_out_lines: int
    def __init__(self, call_id: _Optional[str] = ..., lines: _Optional[_Iterable[str]] = ..., left_out_lines: _Optional[int] = ...) -> None: ...

class CapabilitiesChanged(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListsChanged(_message.Message):
    __slots__ = ("resources", "prompts")
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    PROMPTS_FIELD_NUMBER: _ClassVar[int]
    resources: bool
    prompts: bool
    def __init__(self, resources: _Optional[bool] = ..., prompts: _Optional[bool] = ...) -> None: ...

class ResourcesUpdated(_message.Message):
    __slots__ = ("uris",)
    URIS_FIELD_NUMBER: _ClassVar[int]
    uris: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, uris: _Optional[_Iterable[str]] = ...) -> None: ...

class ScriptStatus(_message.Message):
    __slots__ = ("name", "functions", "sha256", "loads", "problem", "ended_by_interrupt", "ended_with_process", "removed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    ENDED_BY_INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    ENDED_WITH_PROCESS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    name: str
    functions: _containers.RepeatedScalarFieldContainer[str]
    sha256: str
    loads: int
    problem: str
    ended_by_interrupt: int
    ended_with_process: int
    removed: bool
    def __init__(self, name: _Optional[str] = ..., functions: _Optional[_Iterable[str]] = ..., sha256: _Optional[str] = ..., loads: _Optional[int] = ..., problem: _Optional[str] = ..., ended_by_interrupt: _Optional[int] = ..., ended_with_process: _Optional[int] = ..., removed: _Optional[bool] = ...) -> None: ...

class SubscribeEventsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PluginEvent(_message.Message):
    __slots__ = ("id", "topic", "severity", "summary", "details", "fields", "time_unix_ms")
    class FieldsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    id: str
    topic: str
    severity: str
    summary: str
    details: str
    fields: _containers.ScalarMap[str, str]
    time_unix_ms: int
    def __init__(self, id: _Optional[str] = ..., topic: _Optional[str] = ..., severity: _Optional[str] = ..., summary: _Optional[str] = ..., details: _Optional[str] = ..., fields: _Optional[_Mapping[str, str]] = ..., time_unix_ms: _Optional[int] = ...) -> None: ...

class AcknowledgeEventsRequest(_message.Message):
    __slots__ = ("ids", "refused")
    IDS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    refused: _containers.RepeatedCompositeFieldContainer[RefusedEvent]
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., refused: _Optional[_Iterable[_Union[RefusedEvent, _Mapping]]] = ...) -> None: ...

class RefusedEvent(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class AcknowledgeEventsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
