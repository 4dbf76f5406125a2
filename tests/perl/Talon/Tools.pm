package Talon::Tools;

# What the plugin offers. Each tool runs in a separate process, so that it may block, and be killed by its deadline.

use v5.32;
use warnings;
use Encode qw(encode);
use Exporter qw(import);
use JSON::PP;
use Talon::Protobuf qw(entry text flag fields one as_text);
use Talon::State qw(ask);
use Time::HiRes qw(sleep);

our @EXPORT_OK = qw(capabilities run);

# How often a change of the state is tried again, when somebody else was faster.
use constant MAX_TRIES => 64;
# What a host reads that does not say how much.
use constant DEFAULT_MAX_ANSWER_BYTES => 8 << 20;

my $json = JSON::PP->new->canonical->utf8(0)->allow_nonref->max_depth(16);

my %TOOLS = (
    match => {
        run         => \&match,
        description => 'Finds what a Perl regular expression matches in a text.',
        read_only   => 1,
        parameters  => [
            [ 'pattern', 'The regular expression, without slashes.', 'string', 1 ],
            [ 'text', 'Where to look.', 'string', 1 ],
            [ 'limit', 'How many matches to give, 100 unless said.', 'integer', 0, '{"minimum":1,"maximum":100}' ],
        ],
    },
    tick => {
        run         => \&tick,
        description => 'Counts up, ten steps a second, and tells how far it is.',
        read_only   => 1,
        parameters  => [ [ 'steps', 'How far to count.', 'integer', 1, '{"minimum":1,"maximum":600}' ] ],
    },
    visit => {
        run         => \&visit,
        description => 'Counts the visits of a name, for ever.',
        parameters  => [ [ 'name', 'Whose visit it is.', 'string', 1 ] ],
    },
);

sub capabilities {
    my $message = text(1, 'perl') . text(2, 'Regular expressions, and two things to see the protocol by.');
    for my $name (sort keys %TOOLS) {
        my $tool = $TOOLS{$name};
        my $action = text(1, $name) . text(2, $tool->{description});
        for my $parameter (@{ $tool->{parameters} }) {
            my ($called, $description, $type, $required, $schema) = @$parameter;
            $action .= entry(3, text(1, $called) . text(2, $description) . text(3, $type) . flag(4, $required) . text(5, $schema));
        }
        $action .= flag(7, $tool->{read_only});
        # Left out, nothing would be known.
        $action .= Talon::Protobuf::varint(1001 * 8) . Talon::Protobuf::varint(0);
        $message .= entry(3, $action);
    }
    return $message;
}

# The answer to a ToolCallRequest. `tell` takes how far it is, the whole and a line for people.
sub run {
    my ($request, $tell) = @_;
    my %call = map { $_ => as_text(one($request, $_)) } 1, 3;
    my %args = map { my $pair = fields($_); (as_text(one($pair, 1)) => as_text(one($pair, 2))) } @{ $request->{4} // [] };
    my ($content, $structured) = eval {
        my $tool = $TOOLS{ $call{3} } // die "there is no action $call{3}: there are " . join(', ', sort keys %TOOLS) . "\n";
        for my $parameter (@{ $tool->{parameters} }) {
            die "the argument $parameter->[0] is missing\n" if $parameter->[3] && !defined $args{ $parameter->[0] };
        }
        $tool->{run}->(\%args, $tell);
    };
    if ($@) {
        chomp(my $why = $@);
        return text(1, $call{1}) . text(3, $why);
    }
    my $answer = text(1, $call{1}) . text(2, $content) . text(4, defined $structured ? $json->encode($structured) : '');
    my $most = $ENV{OPENTALON_GRPC_MAX_MSG_BYTES} // DEFAULT_MAX_ANSWER_BYTES;
    return $answer if length $answer <= $most;
    return text(1, $call{1}) . text(3, "the answer would have more than $most bytes: ask for less");
}

sub whole {
    my ($name, $text, $most) = @_;
    die "$name has to be a number from 1 to $most\n" if $text !~ /\A[0-9]{1,4}\z/ || $text < 1 || $text > $most;
    return $text + 0;
}

sub match {
    my ($args) = @_;
    my $limit = whole('limit', $args->{limit} // 100, 100);
    # Without `use re 'eval'` a pattern holds no code.
    my $pattern = eval { qr/$args->{pattern}/ } // die 'this is no regular expression: ' . $@ =~ s/ at \S+ line .*//sr . "\n";
    my @found;
    while (@found < $limit && $args->{text} =~ /$pattern/g) {
        push @found, { match => $&, at => $-[0], groups => [ map { substr $args->{text}, $-[$_], $+[$_] - $-[$_] } grep { defined $-[$_] } 1 .. $#- ] };
    }
    return (@found . ' found: ' . join(', ', map { $_->{match} } @found), \@found);
}

sub tick {
    my ($args, $tell) = @_;
    my $steps = whole('steps', $args->{steps}, 600);
    for my $step (1 .. $steps) {
        sleep 0.1;
        $tell->($step, $steps, "step $step");
    }
    return "counted to $steps";
}

sub visit {
    my ($args) = @_;
    die "a name has 1 to 100 characters\n" if $args->{name} !~ /\A.{1,100}\z/s;
    my $key = entry(1, encode('UTF-8', "visits/$args->{name}"));
    my $seen = fields(ask('Get', $key))->{1};
    for (1 .. MAX_TRIES) {
        my $count = ($seen ? $seen->[-1] : 0) + 1;
        my $swap = fields(ask('CompareAndSet', $key . ($seen ? entry(2, $seen->[-1]) : '') . entry(3, $count)));
        return "visit $count of $args->{name}" if $swap->{1};
        # Another call was faster.
        $seen = $swap->{2};
    }
    die "too many visits at once: try again\n";
}

1;
