package Gate::Registry;

# The registry that the gate asks about: five applications with look-alikes among their tools, one upstream behind them all, a member who may
# have them, a restriction that takes one away. The same behind both conditions; only collapse.mode changes. With the member's operations of the
# control plane the flat list stays below 128 entries, which is as many as one provider takes in a request.

use strict;
use warnings;
use MCP::Json;
use MCP::Stack;
use MCP::Upstream;

my $yes = MCP::Json::true();

# application => [label, things]: a thing's name, its plural in words, what it is. Each gets list, get, create, update and cancel.
my @applications = (
    [ desk => 'Support desk',
        [ ticket => 'support tickets', 'A ticket is one problem that a customer has told the desk, with all messages about it.' ],
        [ queue => 'queues of the desk', 'A queue gathers tickets of one subject until an agent takes them.' ],
        [ macro => 'canned replies', 'A canned reply is text that agents send again and again.' ],
        [ agent => 'support agents', 'An agent answers customers and belongs to one or more queues.' ] ],
    [ sales => 'Sales register',
        [ lead => 'sales leads', 'A lead is somebody who may become a customer and has not yet been called.' ],
        [ deal => 'deals', 'A deal is a sale being talked about, with its sum and its stage.' ],
        [ quote => 'quotes for customers', 'A quote names a price that holds until a date.' ],
        [ forecast => 'forecasts of revenue', 'A forecast is what a team expects to sell in a quarter.' ] ],
    [ people => 'People directory',
        [ employee => 'employees', 'An employee has a manager, a place of work and a contract.' ],
        [ contract => 'employment contracts', 'A contract says what an employee is paid and from when to when.' ],
        [ absence => 'days of absence', 'An absence is leave or illness; a manager agrees to leave.' ],
        [ position => 'open positions', 'A position is a job that is offered and not yet filled.' ] ],
    [ ledger => 'General ledger',
        [ invoice => 'invoices', 'An invoice asks a customer for money by a date.' ],
        [ payment => 'payments', 'A payment settles one invoice or several, in whole or in part.' ],
        [ account => 'accounts of the ledger', 'An account holds entries and has a balance in one currency.' ],
        [ expense => 'expense reports', 'An expense report asks for money that an employee has spent, with receipts.' ] ],
    [ facilities => 'Facilities',
        [ room => 'meeting rooms', 'A meeting room has seats, a floor and a calendar.' ],
        [ parking_permit => 'parking permits', 'A permit lets one car stand in the garage until it ends.' ],
        [ repair => 'repairs of the building', 'A repair is a thing broken in the building and who mends it; not a ticket of a customer.' ],
        [ desk_booking => 'bookings of desks', 'A booking keeps one desk in the open office for a day.' ] ]
);
my @verbs = (
    [ list   => GET    => q(),     'List %s, newest first; narrow them by state or text.' ],
    [ get    => GET    => '/{id}', 'Show one of the %s with all its fields.' ],
    [ create => POST   => q(),     'Create one of the %s from a subject and a body.' ],
    [ update => PATCH  => '/{id}', 'Change fields of one of the %s.' ],
    [ cancel => POST   => '/{id}/cancel', 'Cancel one of the %s, with a reason.' ]
);

sub operations {
    my (@things) = @_;
    my @operations;
    for my $entry (@things) {
        my ($thing, $words, $about) = @$entry;
        for my $verb (@verbs) {
            my ($name, $method, $path, $text) = @$verb;
            my $plural = $name eq 'list' ? "${thing}s" : $thing;
            push @operations, {
                id          => "${name}_$plural",
                method      => $method,
                path        => "/$thing$path",
                description => sprintf($text, $words) . " $about",
                parameters  => [
                    $path ? { name => 'id', in => 'path', required => $yes, description => 'Its number', schema => { type => 'string' } } : (),
                    $name eq 'list' ? map { { name => $_, in => 'query', schema => { type => 'string' } } } qw(state text) : ()
                ],
                $method ne 'GET' && $name ne 'cancel'
                ? (body => { content_type => 'application/json', required => $yes, schema => { type => 'object', properties => { map { $_ => { type => 'string' } } qw(subject body) }, $name eq 'create' ? (required => ['subject']) : () } })
                : ()
            };
        }
    }
    push @operations, { id => 'about', method => 'GET', path => '/about', description => 'Show the version and the limits of this application.' };
    return \@operations;
}

sub start {
    my ($class) = @_;
    my $stack = MCP::Stack->new(webdav => 0, collapse => 1);
    my $upstream = MCP::Upstream->start(root => $stack->root,
        serve => sub { return MCP::Upstream::json(200, { done => "$_[0]{method} $_[0]{target}", items => [ { id => 'T-1', subject => 'A door sticks' } ] }) });
    $stack->reconfigure(allow => [ $upstream->origin ]);
    $stack->gateway->graceful;
    for my $application (@applications) {
        my ($slug, $label, @things) = @$application;
        $stack->connector({ slug => $slug, label => $label, base_url => $upstream->origin . "/$slug", operations => operations(@things) });
    }
    $stack->ctl(qw(restrictions create), { effect => 'block', target => { role => 'Member' }, items => [ { connector => 'people', operation => 'cancel_contract' } ], name => 'no contract is cancelled here' });
    $stack->ctl(qw(settings set), { key => 'collapse.threshold', value => 30 });
    my $grant = $stack->grant('member@example.org');
    return bless { stack => $stack, upstream => $upstream, token => $grant->{token} }, $class;
}

sub stack  { return $_[0]{stack} }
sub token  { return $_[0]{token} }
sub client { my ($self) = @_; return MCP::Client->new(url => $self->{stack}->url, token => $self->{token}) }
sub stop   { my ($self) = @_; $self->{upstream}->stop; return }

# What the upstream was asked: "METHOD /target" each.
sub requests { my ($self) = @_; return scalar(my @all = $self->{upstream}->requests) }

sub requests_after {
    my ($self, $count) = @_;
    my @all = map { "$_->{method} $_->{target}" } $self->{upstream}->requests;
    return @all[ $count .. $#all ];
}

sub condition {
    my ($self, $condition) = @_;
    $self->{stack}->ctl(qw(settings set), { key => 'collapse.mode', value => $condition eq 'flat' ? 'never' : 'always' });
    return;
}

# Of all definitions that the member can have, listed or not.
sub digest { my ($self) = @_; return $self->{stack}->ctl(qw(footprint get), { member => 'member@example.org' })->{digest} }

# searches: when the list is collapsed; none is needed when it is flat.
sub prompts {
    return (
        { name => 'common', text => 'List the support tickets of the desk, please.',
            expected => { tool => 'desk__list_tickets', searches => 1, upstream => 'GET /desk/ticket' } },
        { name => 'long_tail', text => 'Cancel the parking permit P-7712.',
            expected => { tool => 'facilities__cancel_parking_permit', searches => 1, upstream => 'POST /facilities/parking_permit/P-7712/cancel' } },
        { name => 'no_tool', text => 'What is 17 + 25? The number alone.',
            expected => { tool => undef, searches => 0, upstream => undef, answer => qr/\b42\b/ } }
    );
}

1;
