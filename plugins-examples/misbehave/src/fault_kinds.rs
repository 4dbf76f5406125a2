//! The kinds of faults, as the command line names them.

use clap::ValueEnum;

/// What goes wrong during the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StartFault {
    /// Nothing.
    None,
    /// Exits with code 3 and a word on stderr.
    ExitAtOnce,
    /// Exits with code 0 and says nothing, like a go-plugin that cannot bind.
    ExitZero,
    /// Is killed by a signal.
    Crash,
    /// Prints nothing, ever.
    Silent,
    /// Prints a line that is no handshake, and waits.
    Garbage,
    /// Prints bytes that are no text.
    Binary,
    /// Prints half a line, and waits.
    HalfLine,
    /// Prints one line of 1 GiB.
    EndlessLine,
    /// Prints banner lines for ever.
    EndlessBanner,
    /// Prints a short banner first, as scripts do, and then behaves.
    Banner,
    /// Speaks core protocol 2.
    WrongCore,
    /// Speaks application protocol 99.
    WrongVersion,
    /// Speaks netrpc.
    NetRpc,
    /// Offers a certificate, which no host requested.
    Tls,
    /// Announces multiplexing, which no host requested.
    Multiplexed,
    /// Names a TCP address.
    Tcp,
    /// Names the socket of `--path`, which lies outside its directory.
    ForeignSocket,
    /// Names a link inside its directory that leads to `--path`.
    LinkedSocket,
    /// Names a path that is no socket.
    NotASocket,
    /// Names a socket that does not exist.
    MissingSocket,
    /// Names an address of 10,000 characters.
    LongAddress,
    /// Names `/`.
    RootAddress,
    /// Names an abstract socket, which it listens on.
    AbstractAddress,
    /// Shakes hands twice; the second line names the socket of `--path`.
    Twice,
    /// Shakes hands after the host's timeout.
    Late,
    /// Shakes hands and never accepts a connection.
    HangAfter,
    /// Shakes hands and closes its socket.
    CloseSocket,
    /// Shakes hands and speaks no HTTP/2.
    NotGrpc,
    /// Shakes hands and exits with code 4.
    ExitAfter,
    /// Refuses Init.
    InitFails,
    /// Never answers Capabilities.
    CapabilitiesHang,
    /// Declares 5,000 actions.
    TooManyActions,
    /// Declares one action twice.
    DuplicateActions,
    /// Declares an action whose name holds a line break and a terminal escape.
    HostileNames,
    /// Is never healthy.
    NeverHealthy,
    /// Is never healthy after the first answer.
    Unhealthy,
    /// Leaves a child in its process group that holds its pipes, and exits when asked to.
    Grandchild,
    /// Shakes hands without the magic cookie, too.
    NoCookie,
    /// Speaks whatever version it is offered.
    AnyVersion,
    /// Opens its socket to everybody.
    OpenSocket,
    /// Prints 20,000 lines once it listens.
    Floods,
    /// Needs to sync whole file systems, which only some profiles allow.
    Syncs,
}

/// Where a hostile text appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hostile {
    /// In lines on both streams before the handshake, as text and as hclog's JSON. Otherwise it behaves well.
    Lines,
    /// In a line that begins like a handshake.
    Handshake,
    /// In the address that its handshake names.
    Address,
    /// In its last output: it exits with code 3.
    LastWords,
    /// In the name that it declares.
    Name,
    /// In everything else that it declares, and in the name of one action's parameter.
    Declaration,
    /// In the error with which it refuses Init.
    Init,
    /// In the error with which it answers health checks.
    Health,
    /// In the gRPC error with which it answers every call.
    Calls,
}

/// What goes wrong in every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// Reports SERVING for every service name.
    HealthForAnybody,
    /// Dies of Init without settings.
    EmptyConfigDies,
    /// Dies of a setting that it does not know.
    UnknownKeyDies,
    /// Declares a schema that is no JSON.
    BrokenSchema,
    /// Declares an unknown type.
    OddType,
    /// Declares a role whose arguments it does not take.
    RoleMismatch,
    /// Declares a role, and answers with something else.
    RoleAnswer,
    /// Declares a request hook, and after a refresh the same action without the role.
    RoleFlips,
    /// Declares a description that is longer than hosts take.
    LongDescription,
    /// Declares different capabilities each time.
    Fickle,
    /// Answers good calls under another id.
    AnotherId,
    /// Answers good calls with bytes that are no message.
    Garbage,
    /// Answers good calls with structured content that is no JSON.
    BrokenStructure,
    /// Answers an unknown action with success.
    UnknownActionWorks,
    /// Answers an unknown action with a gRPC error.
    UnknownActionFaults,
    /// Dies where a required argument is missing.
    MissingArgumentDies,
    /// Answers an argument that it did not declare with a gRPC error.
    UnknownArgumentFaults,
    /// Dies of a NUL.
    HostileArgumentDies,
    /// Answers concurrent calls under the id of the last one.
    MixedIds,
    /// Dies when a call is cancelled.
    CancelledDies,
    /// Stops answering once a short deadline has passed.
    DeadlineBlocks,
    /// Continues a call whose short deadline has passed.
    DeadlineIgnored,
    /// Answers good calls with 100 KiB, whatever limit was announced.
    LargeAnswers,
    /// Stores plugins' state, and forgets it when it ends.
    StorageForgets,
    /// Stores plugins' state, whatever revision was expected.
    StorageLastWins,
    /// Stores plugins' state, and leaves a key out of each page but the first.
    StorageSkips,
    /// Stores plugins' state as text.
    StorageTexts,
    /// Stores whatever it is asked to.
    StorageObeys,
    /// Puts out lines that hold line ends while a call runs.
    OutputLines,
    /// Accepts the shutdown, but does not end.
    ShutdownIgnored,
}
