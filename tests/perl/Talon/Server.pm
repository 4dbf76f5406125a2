package Talon::Server;

# gRPC on a listening socket: one loop for all connections, calls and children. What a call does is somebody else's; this
# knows frames, statuses and streams.

use v5.32;
use warnings;
use Errno qw(EAGAIN EINTR EWOULDBLOCK);
use IO::Select;
use Protocol::HTTP2::Constants qw(:errors :states);
use Protocol::HTTP2::Server;

# A reset of a stream that has just ended is nothing special: both sides ended it at the same time. This library takes it for
# a broken connection, and would end all calls on it.
{
    no warnings 'redefine';
    my $error = \&Protocol::HTTP2::Connection::error;
    *Protocol::HTTP2::Connection::error = sub {
        my ($connection, @codes) = @_;
        return @codes && $codes[0] == STREAM_CLOSED ? 0 : $error->($connection, @codes);
    };
}

use constant { OK => 0, INVALID_ARGUMENT => 3, NOT_FOUND => 5, UNIMPLEMENTED => 12, INTERNAL => 13 };
use constant CHUNK_BYTES => 65_536;

# Seconds in each unit of a grpc-timeout.
my %SECONDS = (H => 3600, M => 60, S => 1, m => 1e-3, u => 1e-6, n => 1e-9);

# listener, and methods: from a path to a sub that gets (call, message).
sub new {
    my ($class, %given) = @_;
    return bless { %given, connections => {}, watched => {}, ending => 0 }, $class;
}

# Has `read` called when there is something to read from a handle, until it is forgotten.
sub watch  { my ($self, $handle, $read) = @_; $self->{watched}{ fileno $handle } = [ $handle, $read ]; return }
sub forget { my ($self, $handle) = @_; delete $self->{watched}{ fileno $handle }; return }

# No new work; the loop ends when all is said.
sub end { my ($self) = @_; $self->{ending} = 1; return }

sub run {
    my ($self) = @_;
    $self->{listener}->blocking(0);
    $self->watch($self->{listener}, sub { $self->accept });
    until ($self->{ending} && !grep { length $_->{out} } values %{ $self->{connections} }) {
        my $readers = IO::Select->new(map { $_->[0] } values %{ $self->{watched} });
        my $writers = IO::Select->new(map { $_->{socket} } grep { length $_->{out} } values %{ $self->{connections} });
        my ($read, $write) = IO::Select->select($readers, $writers, undef, $self->{tick} ? $self->{tick}->() : undef);
        for my $handle (@{ $read // [] }) {
            my $watched = $self->{watched}{ fileno($handle) // -1 } or next;
            $watched->[1]->($handle);
        }
        $self->write($_) for grep { length $_->{out} } values %{ $self->{connections} };
    }
    return;
}

sub accept {
    my ($self) = @_;
    my $socket = $self->{listener}->accept or return;
    $socket->blocking(0);
    my $connection = { socket => $socket, out => '', trailers => {}, calls => {} };
    $connection->{http} = Protocol::HTTP2::Server->new(on_request => sub { $self->request($connection, @_) });
    $self->{connections}{ fileno $socket } = $connection;
    $self->watch($socket, sub { $self->read($connection) });
    $self->flush($connection);
    return;
}

sub read {
    my ($self, $connection) = @_;
    my $got = sysread $connection->{socket}, my $bytes, CHUNK_BYTES;
    if (!$got) {
        return if !defined $got && ($! == EAGAIN || $! == EINTR || $! == EWOULDBLOCK);
        return $self->close($connection);
    }
    $connection->{http}->feed($bytes);
    $self->flush($connection);
    # What cannot be mended has been said; the host connects anew.
    return $connection->{http}->shutdown && !length $connection->{out} ? $self->close($connection) : 1;
}

sub close {
    my ($self, $connection) = @_;
    $_->{on_cancel}->() for grep { $_->{on_cancel} } values %{ $connection->{calls} };
    $self->forget($connection->{socket});
    delete $self->{connections}{ fileno $connection->{socket} };
    $connection->{out} = '';
    return close $connection->{socket};
}

# Trailers come after all data, which may have to wait until the host lets us send more.
sub flush {
    my ($self, $connection) = @_;
    my $http = $connection->{http}{con};
    for my $stream (keys %{ $connection->{trailers} }) {
        next if length($http->stream_blocked_data($stream) // '');
        my $trailers = delete $connection->{trailers}{$stream};
        $http->send_headers($stream, $trailers, 1) if $http->stream_state($stream) != CLOSED;
    }
    while (defined(my $frame = $connection->{http}->next_frame)) { $connection->{out} .= $frame }
    return;
}

sub write {
    my ($self, $connection) = @_;
    my $sent = syswrite $connection->{socket}, $connection->{out};
    return substr $connection->{out}, 0, $sent, '' if defined $sent;
    return if $! == EAGAIN || $! == EINTR || $! == EWOULDBLOCK;
    return $self->close($connection);
}

sub request {
    my ($self, $connection, $stream, $headers, $data) = @_;
    my %headers = @$headers;
    my $call = bless {
        server     => $self,
        connection => $connection,
        stream     => $stream,
        seconds    => timeout($headers{'grpc-timeout'}),
    }, 'Talon::Server::Call';
    $connection->{calls}{$stream} = $call;
    # The host gave it up, or we ended it.
    $connection->{http}{con}->stream_cb($stream, CLOSED, sub {
        delete $connection->{calls}{$stream};
        $call->{on_cancel}->() if !$call->{answered} && $call->{on_cancel};
    });
    my ($compressed, $length) = unpack 'CN', $data // '';
    return $call->fail(INTERNAL, 'a message has five bytes in front, and is not compressed')
      if !defined $length || $compressed || length($data) != 5 + $length;
    my $method = $self->{methods}{ $headers{':path'} } or return $call->fail(UNIMPLEMENTED, 'not here');
    return if eval { $method->($call, substr $data, 5); 1 };
    chomp(my $why = $@);
    return $call->fail(INTERNAL, $why);
}

sub timeout {
    my ($text) = @_;
    return ($text // '') =~ /\A([0-9]{1,8})([HMSmun])\z/ ? $1 * $SECONDS{$2} : undef;
}

package Talon::Server::Call;

use Encode qw(encode);
use Protocol::HTTP2::Constants qw(:states);

sub is_open {
    my ($self) = @_;
    my $state = $self->{connection}{http}{con}->stream_state($self->{stream});
    return !$self->{answered} && defined $state && $state != CLOSED;
}

# Says that there will be an answer. A client that waits for a stream waits for this first.
sub begin {
    my ($self) = @_;
    return if $self->{begun}++ || !$self->is_open;
    my @headers = (':status' => 200, 'content-type' => 'application/grpc');
    $self->{connection}{http}{con}->send_headers($self->{stream}, \@headers, 0);
    return $self->{server}->flush($self->{connection});
}

# One message of a stream, unless earlier ones were not taken yet.
sub news {
    my ($self, $message) = @_;
    return if !$self->is_open || length($self->{connection}{http}{con}->stream_blocked_data($self->{stream}) // '');
    return $self->message($message);
}

# One message of an answer.
sub message {
    my ($self, $message) = @_;
    return unless $self->is_open;
    $self->begin;
    my $http = $self->{connection}{http}{con};
    $http->send_data($self->{stream}, pack('CN', 0, length $message) . $message);
    return $self->{server}->flush($self->{connection});
}

# The whole answer.
sub answer {
    my ($self, $message) = @_;
    return unless $self->is_open;
    $self->message($message);
    $self->{answered} = 1;
    $self->{connection}{trailers}{ $self->{stream} } = [ 'grpc-status' => 0 ];
    return $self->{server}->flush($self->{connection});
}

sub fail {
    my ($self, $status, $why) = @_;
    return unless $self->is_open;
    $self->{answered} = 1;
    my $text = encode('UTF-8', $why) =~ s/([^ -~]|%)/sprintf '%%%02X', ord $1/ger;
    my @headers = (':status' => 200, 'content-type' => 'application/grpc', 'grpc-status' => $status, 'grpc-message' => $text);
    $self->{connection}{http}{con}->send_headers($self->{stream}, \@headers, 1);
    return $self->{server}->flush($self->{connection});
}

1;
