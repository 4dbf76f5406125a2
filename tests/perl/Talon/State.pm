package Talon::State;

# The plugin's own key-values, over HTTP/2 frames written by hand: one call a connection, waited for.

use v5.32;
use warnings;
use Exporter qw(import);
use IO::Socket::UNIX;
use Protocol::HTTP2::Connection;
use Protocol::HTTP2::Constants qw(:endpoints);
use Protocol::HTTP2::HeaderCompression qw(headers_decode);

our @EXPORT_OK = qw(ask);

use constant {
    DATA => 0, HEADERS => 1, RST_STREAM => 3, SETTINGS => 4, PING => 6, GOAWAY => 7, WINDOW_UPDATE => 8, CONTINUATION => 9,
};
use constant { END_STREAM => 1, ACK => 1, END_HEADERS => 4, PADDED => 8, PRIORITY => 0x20 };
use constant { STREAM => 1, PATIENCE_SECONDS => 5 };

sub frame {
    my ($type, $flags, $stream, $bytes) = @_;
    return substr(pack('N', length $bytes), 1) . pack('CCN', $type, $flags, $stream) . $bytes;
}

# A header as a literal: 00, length, name, length, value. None of ours is longer than a byte can say.
sub literal { my ($name, $value) = @_; return "\0" . join '', map { chr(length) . $_ } $name, $value }

# The answer to one question. Dies with the status, when it is not OK.
sub ask {
    my ($method, $question) = @_;
    my $path = $ENV{TALON_STATE_SOCKET} // die "this host keeps no state\n";
    my $socket = IO::Socket::UNIX->new(Peer => $path, Timeout => PATIENCE_SECONDS) // die "no state: $!\n";
    local $SIG{ALRM} = sub { die "the state does not answer\n" };
    alarm PATIENCE_SECONDS;
    my $headers = join '', map { literal(@$_) }
      [ ':method', 'POST' ], [ ':scheme', 'http' ], [ ':path', "/talon.state.v1.State/$method" ],
      [ ':authority', 'localhost' ], [ 'te', 'trailers' ], [ 'content-type', 'application/grpc' ];
    print {$socket} "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(SETTINGS, 0, 0, ''),
      frame(HEADERS, END_HEADERS, STREAM, $headers),
      frame(DATA, END_STREAM, STREAM, pack('CN', 0, length $question) . $question);
    $socket->flush;

    my ($data, $block, %headers) = ('', '');
    # For HPACK alone, which takes tables and Huffman's code.
    my $tables = Protocol::HTTP2::Connection->new(CLIENT);
    my $ended = 0;
    until ($ended) {
        my ($high, $low, $type, $flags, $stream) = unpack 'CnCCN', exactly($socket, 9);
        my $bytes = exactly($socket, $high << 16 | $low);
        $bytes = unpadded($bytes) if $flags & PADDED && ($type == DATA || $type == HEADERS);
        print {$socket} frame(SETTINGS, ACK, 0, '') if $type == SETTINGS && !($flags & ACK);
        print {$socket} frame(PING, ACK, 0, $bytes) if $type == PING && !($flags & ACK);
        if ($type == DATA) {
            $data .= $bytes;
            print {$socket} map { frame(WINDOW_UPDATE, 0, $_, pack 'N', length $bytes) } 0, STREAM if length $bytes;
        }
        if ($type == HEADERS || $type == CONTINUATION) {
            substr $bytes, 0, 5, '' if $type == HEADERS && $flags & PRIORITY;
            $block .= $bytes;
            if ($flags & END_HEADERS) {
                my $context = $tables->decode_context;
                $context->{emitted_headers} = [];
                headers_decode($tables, \$block, 0, length $block, STREAM) // die "its headers cannot be read\n";
                %headers = (%headers, @{ $context->{emitted_headers} });
                $block = '';
            }
        }
        die "the state has ended the call\n" if $type == RST_STREAM || $type == GOAWAY;
        $socket->flush;
        $ended = $flags & END_STREAM && ($type == DATA || $type == HEADERS);
    }
    alarm 0;
    my $status = $headers{'grpc-status'} // 'missing';
    die "the state answers $status: " . ($headers{'grpc-message'} // '') . "\n" if $status ne '0';
    my ($compressed, $length) = unpack 'CN', $data;
    die "the state sent no message\n" if !defined $length || $compressed || length($data) != 5 + $length;
    return substr $data, 5;
}

sub exactly {
    my ($socket, $length) = @_;
    my $bytes = '';
    while (length($bytes) < $length) {
        my $got = read $socket, $bytes, $length - length $bytes, length $bytes;
        die "the state has closed the connection\n" if !$got;
    }
    return $bytes;
}

sub unpadded {
    my ($bytes) = @_;
    my $padding = ord substr $bytes, 0, 1, '';
    return substr $bytes, 0, length($bytes) - $padding;
}

1;
