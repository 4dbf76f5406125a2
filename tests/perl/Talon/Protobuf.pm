package Talon::Protobuf;

# Protobuf by hand: a message is a row of fields, each a tag (number * 8 + wire type) and a value.

use v5.32;
use warnings;
use Encode qw(decode encode FB_CROAK);
use Exporter qw(import);

our @EXPORT_OK = qw(varint text flag number fields one entry as_text);

use constant { VARINT => 0, I64 => 1, LEN => 2, I32 => 5 };

# The most bytes of a varint: 64 bits in groups of seven.
use constant MAX_VARINT_BYTES => 10;

sub varint {
    my ($value) = @_;
    my $bytes = '';
    while ($value >= 0x80) {
        $bytes .= chr($value & 0x7f | 0x80);
        $value >>= 7;
    }
    return $bytes . chr($value);
}

sub tag { my ($number, $type) = @_; return varint($number * 8 + $type) }

# A message or bytes: sent even if empty, since it may be one of a list.
sub entry { my ($number, $bytes) = @_; return tag($number, LEN) . varint(length $bytes) . $bytes }

# A text; empty ones are left out.
sub text {
    my ($number, $text) = @_;
    return defined $text && length $text ? entry($number, encode('UTF-8', $text)) : '';
}

# A bool; false is left out.
sub flag { my ($number, $value) = @_; return $value ? tag($number, VARINT) . varint(1) : '' }

# A double, little-endian on every machine.
sub number { my ($number, $value) = @_; return tag($number, I64) . pack('d<', $value) }

sub as_text { my ($bytes) = @_; return decode('UTF-8', $bytes, FB_CROAK) }

# The value of a field that is not repeated: of several the last one counts, and what is empty may be left out.
sub one {
    my ($fields, $number) = @_;
    my $values = $fields->{$number} // return '';
    return $values->[-1];
}

# The fields of a message, by number: a list of values each, as numbers or bytes. Dies of what is no message.
sub fields {
    my ($message) = @_;
    my ($at, %fields) = (0);
    my $read = sub {
        my ($length) = @_;
        die "the message ends too early\n" if $length > length($message) - $at;
        my $bytes = substr $message, $at, $length;
        $at += $length;
        return $bytes;
    };
    my $read_varint = sub {
        my $value = 0;
        for my $group (0 .. MAX_VARINT_BYTES - 1) {
            my $byte = ord $read->(1);
            $value |= ($byte & 0x7f) << 7 * $group;
            return $value if $byte < 0x80;
        }
        die "a number is too long\n";
    };
    while ($at < length $message) {
        my $tag = $read_varint->();
        my ($number, $type) = ($tag >> 3, $tag & 7);
        my $value =
            $type == VARINT ? $read_varint->()
          : $type == I64    ? $read->(8)
          : $type == LEN    ? $read->($read_varint->())
          : $type == I32    ? $read->(4)
          :                   die "a field has the unknown wire type $type\n";
        push @{ $fields{$number} }, $value;
    }
    return \%fields;
}

1;
