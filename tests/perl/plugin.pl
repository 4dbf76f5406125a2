#!/usr/bin/perl

# A plugin in a language that Talon has no helper for. Written from docs/protocol.md alone; HTTP/2 comes from Debian's
# libprotocol-http2-perl, everything above it is here.

use v5.32;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IO::Handle;
use IO::Socket::UNIX;
use JSON::PP;
use POSIX ();
use Socket qw(unpack_sockaddr_un);
use Talon::Protobuf qw(varint entry text number fields one as_text);
use Talon::Server;
use Talon::Tools qw(capabilities run);
use Time::HiRes qw(time);

use constant { INVALID_ARGUMENT => 3, DEADLINE_EXCEEDED => 4, NOT_FOUND => 5, INTERNAL => 13 };
# Calls at once. More than a host sends by default.
use constant MAX_CALLS => 64;
use constant APP_VERSION => 1;

my (%running, $notices, $server);

STDOUT->autoflush(1);
STDERR->autoflush(1);
$SIG{PIPE} = 'IGNORE';
$SIG{TERM} = sub { exit 0 if !$server; $server->end };

if (($ENV{TALON_PLUGIN_MAGIC_COOKIE} // '') ne 'd3a7c1f0-talon-plugin') {
    print STDERR "This is a plugin. Try it with: talon exec $FindBin::RealBin match pattern='[0-9]+' text='a1 b22'\n";
    exit 1;
}
if (!grep { $_ eq APP_VERSION } split /,/, $ENV{PLUGIN_PROTOCOL_VERSIONS} // '') {
    print STDERR "this plugin serves version @{[APP_VERSION]}, and the host speaks $ENV{PLUGIN_PROTOCOL_VERSIONS}\n";
    exit 1;
}

my ($listener, $path, $own);
if (defined $ENV{TALON_LISTEN_FD}) {
    $listener = IO::Socket::UNIX->new_from_fd($ENV{TALON_LISTEN_FD}, 'r+') // die "the host's socket: $!\n";
    $path = unpack_sockaddr_un(getsockname $listener);
}
else {
    $path = $own = "$ENV{PLUGIN_UNIX_SOCKET_DIR}/perl";
    umask 0077;
    $listener = IO::Socket::UNIX->new(Local => $path, Listen => 16) // die "$path: $!\n";
}

$server = Talon::Server->new(
    listener => $listener,
    tick     => \&overdue,
    methods  => {
        '/opentalon.plugin.v1.PluginService/Init'         => \&init,
        '/opentalon.plugin.v1.PluginService/Capabilities' => sub { $_[0]->answer(capabilities()) },
        '/opentalon.plugin.v1.PluginService/Execute'      => \&execute,
        '/grpc.health.v1.Health/Check'                    => \&health,
        '/talon.plugin.v1.Notices/Listen'                 => sub { $notices = $_[0]; $notices->begin },
        '/plugin.GRPCController/Shutdown'                 => \&shutdown_server,
    },
);

print "1|@{[APP_VERSION]}|unix|$path|grpc\n";
print STDERR "[INFO] serving in Perl $^V\n";
$server->run;
# Children whose callers get no answer any more.
kill KILL => map { $_->{pid} } values %running;
waitpid $_->{pid}, 0 for values %running;
unlink $own if defined $own;

sub shutdown_server {
    my ($call) = @_;
    $call->answer('');
    return $server->end;
}

sub init {
    my ($call, $message) = @_;
    my $config = eval { decode_json(one(fields($message), 1) || '{}') };
    return $call->fail(INVALID_ARGUMENT, 'the settings are no JSON object') if ref $config ne 'HASH';
    my @unknown = sort keys %$config;
    return $call->fail(INVALID_ARGUMENT, "there are no settings, and it was given @unknown") if @unknown;
    return $call->answer('');
}

sub health {
    my ($call, $message) = @_;
    my $service = as_text(one(fields($message), 1));
    return $call->fail(NOT_FOUND, 'no such service') if $service ne '' && $service ne 'plugin';
    return $call->answer(varint(1 * 8) . varint(1));
}

# Runs the tool in a child, which sends what it has to say through a pipe: N and a notice, or A and the answer, each after
# its length.
sub execute {
    my ($call, $message) = @_;
    my $request = fields($message);
    my $id = as_text(one($request, 1));
    return $call->answer(text(1, $id) . text(3, 'too many calls at once: try again')) if keys(%running) >= MAX_CALLS;
    pipe my $from, my $to or die "no pipe: $!\n";
    my $pid = fork // die "no process: $!\n";
    if ($pid == 0) {
        $SIG{TERM} = 'DEFAULT';
        my $say = sub { my ($kind, $bytes) = @_; print {$to} pack('aN', $kind, length $bytes), $bytes; $to->flush };
        my $tell = sub {
            my ($progress, $total, $line) = @_;
            $say->('N', entry(1, text(1, $id) . number(2, $progress) . number(3, $total) . text(4, $line)));
        };
        my $answer = eval { run($request, $tell) };
        $say->('A', $answer) if defined $answer;
        print STDERR "[ERROR] $@" if !defined $answer;
        POSIX::_exit(0);
    }
    close $to;
    my $child = { pid => $pid, from => $from, call => $call, bytes => '' };
    $child->{deadline} = time + $call->{seconds} if defined $call->{seconds};
    $running{$pid} = $child;
    $call->{on_cancel} = sub { finish($child) };
    $server->watch($from, sub { hear($child) });
    return;
}

sub hear {
    my ($child) = @_;
    my $got = sysread $child->{from}, $child->{bytes}, Talon::Server::CHUNK_BYTES, length $child->{bytes};
    while (length $child->{bytes} >= 5) {
        my ($kind, $length) = unpack 'aN', $child->{bytes};
        last if length $child->{bytes} < 5 + $length;
        my $message = substr substr($child->{bytes}, 0, 5 + $length, ''), 5;
        # Notices, not results: those that are not taken in time are dropped.
        $notices->news($message) if $kind eq 'N' && $notices;
        $child->{call}->answer($message) if $kind eq 'A';
    }
    return if $got;
    $child->{call}->fail(INTERNAL, 'the tool died');
    return finish($child);
}

sub finish {
    my ($child) = @_;
    delete $running{ $child->{pid} } or return;
    $server->forget($child->{from});
    close $child->{from};
    kill KILL => $child->{pid};
    return waitpid $child->{pid}, 0;
}

# Ends what is over its time, and says how long until the next one is.
sub overdue {
    my $now = time;
    for my $child (grep { defined $_->{deadline} && $_->{deadline} <= $now } values %running) {
        $child->{call}->fail(DEADLINE_EXCEEDED, 'the time is over');
        finish($child);
    }
    my ($next) = sort { $a <=> $b } map { $_->{deadline} // () } values %running;
    return defined $next ? $next - $now : undef;
}
