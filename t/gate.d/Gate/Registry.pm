package Gate::Registry;

# The registry that the gate asks about: six applications with look-alikes among their tools, one upstream behind them all, a member who may
# have them, a restriction that takes one away. The same behind both conditions; only collapse.mode changes.

use strict;
use warnings;
use MCP::Json;
use MCP::Stack;
use MCP::Upstream;

my $yes = MCP::Json::true();

# application => [label, things]; each thing gets list, get, create, update and close or cancel.
my @applications = (
    [ desk       => 'Support desk',     [ ticket => 'support tickets', queue => 'queues of tickets', macro => 'canned replies', agent => 'support agents', survey => 'satisfaction surveys' ] ],
    [ sales      => 'Sales register',   [ lead => 'sales leads', deal => 'deals', quote => 'quotes for customers', territory => 'sales territories', forecast => 'forecasts of revenue' ] ],
    [ people     => 'People directory', [ employee => 'employees', contract => 'employment contracts', absence => 'days of absence', review => 'yearly reviews', position => 'open positions' ] ],
    [ ledger     => 'General ledger',   [ invoice => 'invoices', payment => 'payments', account => 'accounts of the ledger', budget => 'budgets', expense => 'expense reports' ] ],
    [ facilities => 'Facilities',       [ room => 'meeting rooms', parking_permit => 'parking permits', badge => 'door badges', repair => 'repairs of the building', desk_booking => 'bookings of desks' ] ],
    [ library    => 'Document library', [ document => 'documents', folder => 'folders', template => 'document templates', share => 'links to share documents', archive => 'archived documents' ] ]
);
my @verbs = (
    [ list   => GET    => q(),     'List %s, newest first; narrow them by state or text.' ],
    [ get    => GET    => '/{id}', 'Show one of the %s with all its fields.' ],
    [ create => POST   => q(),     'Create one of the %s from a subject and a body.' ],
    [ update => PATCH  => '/{id}', 'Change fields of one of the %s.' ],
    [ cancel => POST   => '/{id}/cancel', 'Cancel one of the %s, with a reason.' ]
);

sub operations {
    my ($things) = @_;
    my @operations;
    my @pairs = @$things;
    while (my ($thing, $words) = splice @pairs, 0, 2) {
        for my $verb (@verbs) {
            my ($name, $method, $path, $text) = @$verb;
            my $plural = $name eq 'list' ? "${thing}s" : $thing;
            push @operations, {
                id          => "${name}_$plural",
                method      => $method,
                path        => "/$thing$path",
                description => sprintf($text, $words),
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
        my ($slug, $label, $things) = @$application;
        $stack->connector({ slug => $slug, label => $label, base_url => $upstream->origin . "/$slug", operations => operations($things) });
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
