from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PluginInitRequest(_message.Message):
    __slots__ = ("config_json",)
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    config_json: str
    def __init__(self, config_json: _Optional[str] = ...) -> None: ...

class ToolCallRequest(_message.Message):
    __slots__ = ("id", "plugin", "action", "args", "credential_headers", "arguments_json", "takes_input_requests", "input_response")
    class ArgsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class CredentialHeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: CredentialHeader
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[CredentialHeader, _Mapping]] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_HEADERS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    TAKES_INPUT_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    INPUT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    id: str
    plugin: str
    action: str
    args: _containers.ScalarMap[str, str]
    credential_headers: _containers.MessageMap[str, CredentialHeader]
    arguments_json: str
    takes_input_requests: bool
    input_response: InputResponse
    def __init__(self, id: _Optional[str] = ..., plugin: _Optional[str] = ..., action: _Optional[str] = ..., args: _Optional[_Mapping[str, str]] = ..., credential_headers: _Optional[_Mapping[str, CredentialHeader]] = ..., arguments_json: _Optional[str] = ..., takes_input_requests: _Optional[bool] = ..., input_response: _Optional[_Union[InputResponse, _Mapping]] = ...) -> None: ...

class InputRequest(_message.Message):
    __slots__ = ("id", "schema")
    ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    id: str
    schema: str
    def __init__(self, id: _Optional[str] = ..., schema: _Optional[str] = ...) -> None: ...

class InputResponse(_message.Message):
    __slots__ = ("id", "action", "content_json")
    ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    action: str
    content_json: str
    def __init__(self, id: _Optional[str] = ..., action: _Optional[str] = ..., content_json: _Optional[str] = ...) -> None: ...

class CredentialHeader(_message.Message):
    __slots__ = ("header", "value")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    header: str
    value: str
    def __init__(self, header: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class ToolResultResponse(_message.Message):
    __slots__ = ("call_id", "content", "error", "structured_content", "media", "input_request")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    STRUCTURED_CONTENT_FIELD_NUMBER: _ClassVar[int]
    MEDIA_FIELD_NUMBER: _ClassVar[int]
    INPUT_REQUEST_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    content: str
    error: str
    structured_content: str
    media: _containers.RepeatedCompositeFieldContainer[Media]
    input_request: InputRequest
    def __init__(self, call_id: _Optional[str] = ..., content: _Optional[str] = ..., error: _Optional[str] = ..., structured_content: _Optional[str] = ..., media: _Optional[_Iterable[_Union[Media, _Mapping]]] = ..., input_request: _Optional[_Union[InputRequest, _Mapping]] = ...) -> None: ...

class Media(_message.Message):
    __slots__ = ("kind", "mime_type", "data", "text", "uri", "name", "title", "description", "size")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    mime_type: str
    data: bytes
    text: str
    uri: str
    name: str
    title: str
    description: str
    size: int
    def __init__(self, kind: _Optional[str] = ..., mime_type: _Optional[str] = ..., data: _Optional[bytes] = ..., text: _Optional[str] = ..., uri: _Optional[str] = ..., name: _Optional[str] = ..., title: _Optional[str] = ..., description: _Optional[str] = ..., size: _Optional[int] = ...) -> None: ...

class PluginCapabilities(_message.Message):
    __slots__ = ("name", "description", "actions", "system_prompt_addition", "glossary", "knowledge_articles", "supports_callbacks")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_ADDITION_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    KNOWLEDGE_ARTICLES_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_CALLBACKS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    actions: _containers.RepeatedCompositeFieldContainer[Action]
    system_prompt_addition: str
    glossary: _containers.RepeatedCompositeFieldContainer[GlossaryEntry]
    knowledge_articles: _containers.RepeatedCompositeFieldContainer[KnowledgeArticle]
    supports_callbacks: bool
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ..., system_prompt_addition: _Optional[str] = ..., glossary: _Optional[_Iterable[_Union[GlossaryEntry, _Mapping]]] = ..., knowledge_articles: _Optional[_Iterable[_Union[KnowledgeArticle, _Mapping]]] = ..., supports_callbacks: _Optional[bool] = ...) -> None: ...

class GlossaryEntry(_message.Message):
    __slots__ = ("term", "definition", "category", "tags", "synonyms")
    TERM_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    SYNONYMS_FIELD_NUMBER: _ClassVar[int]
    term: str
    definition: str
    category: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    synonyms: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, term: _Optional[str] = ..., definition: _Optional[str] = ..., category: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., synonyms: _Optional[_Iterable[str]] = ...) -> None: ...

class KnowledgeArticle(_message.Message):
    __slots__ = ("id", "title", "content", "tags")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    content: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., content: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("name", "description", "parameters", "user_only", "inject_context_args", "always_include", "read_only", "destructive", "output_schema", "takes_further_arguments", "media", "roles", "proposed_jobs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    USER_ONLY_FIELD_NUMBER: _ClassVar[int]
    INJECT_CONTEXT_ARGS_FIELD_NUMBER: _ClassVar[int]
    ALWAYS_INCLUDE_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    DESTRUCTIVE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    TAKES_FURTHER_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    MEDIA_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_JOBS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    parameters: _containers.RepeatedCompositeFieldContainer[Parameter]
    user_only: bool
    inject_context_args: _containers.RepeatedScalarFieldContainer[str]
    always_include: bool
    read_only: bool
    destructive: bool
    output_schema: str
    takes_further_arguments: bool
    media: _containers.RepeatedScalarFieldContainer[str]
    roles: _containers.RepeatedScalarFieldContainer[str]
    proposed_jobs: _containers.RepeatedCompositeFieldContainer[JobProposal]
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., parameters: _Optional[_Iterable[_Union[Parameter, _Mapping]]] = ..., user_only: _Optional[bool] = ..., inject_context_args: _Optional[_Iterable[str]] = ..., always_include: _Optional[bool] = ..., read_only: _Optional[bool] = ..., destructive: _Optional[bool] = ..., output_schema: _Optional[str] = ..., takes_further_arguments: _Optional[bool] = ..., media: _Optional[_Iterable[str]] = ..., roles: _Optional[_Iterable[str]] = ..., proposed_jobs: _Optional[_Iterable[_Union[JobProposal, _Mapping]]] = ...) -> None: ...

class JobProposal(_message.Message):
    __slots__ = ("name", "cron", "every", "timezone", "arguments_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    EVERY_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    cron: str
    every: str
    timezone: str
    arguments_json: str
    def __init__(self, name: _Optional[str] = ..., cron: _Optional[str] = ..., every: _Optional[str] = ..., timezone: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class Parameter(_message.Message):
    __slots__ = ("name", "description", "type", "required", "schema")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    type: str
    required: bool
    schema: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., type: _Optional[str] = ..., required: _Optional[bool] = ..., schema: _Optional[str] = ...) -> None: ...

class HostMessage(_message.Message):
    __slots__ = ("call", "callback_response")
    CALL_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    call: ToolCallRequest
    callback_response: CallbackResponse
    def __init__(self, call: _Optional[_Union[ToolCallRequest, _Mapping]] = ..., callback_response: _Optional[_Union[CallbackResponse, _Mapping]] = ...) -> None: ...

class PluginMessage(_message.Message):
    __slots__ = ("callback_request", "result")
    CALLBACK_REQUEST_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    callback_request: CallbackRequest
    result: ToolResultResponse
    def __init__(self, callback_request: _Optional[_Union[CallbackRequest, _Mapping]] = ..., result: _Optional[_Union[ToolResultResponse, _Mapping]] = ...) -> None: ...

class CallbackRequest(_message.Message):
    __slots__ = ("id", "plugin", "action", "args")
    class ArgsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    id: str
    plugin: str
    action: str
    args: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., plugin: _Optional[str] = ..., action: _Optional[str] = ..., args: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CallbackResponse(_message.Message):
    __slots__ = ("id", "content", "error", "structured_content")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    STRUCTURED_CONTENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    content: str
    error: str
    structured_content: str
    def __init__(self, id: _Optional[str] = ..., content: _Optional[str] = ..., error: _Optional[str] = ..., structured_content: _Optional[str] = ...) -> None: ...
