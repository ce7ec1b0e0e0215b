package MCP::JsonServer;

# A small REST upstream that nobody here wrote: npm's json-server, with collections of the test's own. JSON
# bodies, query strings and error statuses come from it.

use strict;
use warnings;
use MCP::Build;
use MCP::Client;
use MCP::Json;
use MCP::Net;
use MCP::Node;
use MCP::Process;
use MCP::Root;

# root => MCP::Root, data => {collection => [{id => 1, ...}, ...]}
sub start {
    my ($class, %given) = @_;
    my $root = $given{root};
    my $file = $root->write('json-server.json', MCP::Json::encode($given{data}));
    my $self = bless { port => MCP::Net::free_port(), file => $file, log => $root->path('json-server.log') }, $class;
    $self->{process} = MCP::Process->start(
        command => [
            MCP::Build::node(), MCP::Build::node_modules() . '/.bin/json-server',
            '--host', '127.0.0.1', '--port', $self->{port}, $file
        ],
        dir => $root->path,
        log => $self->{log},
        env => { MCP::Node::env() }
    );
    MCP::Net::wait_for(sub { !$self->{process}->is_running || MCP::Net::connects($self->{port}) });
    die 'json-server does not start: ' . (MCP::Root::slurp($self->{log}) || q()) . "\n"
        if !$self->{process}->is_running;
    return $self;
}

sub port   { return $_[0]{port} }
sub origin { return "http://127.0.0.1:$_[0]{port}" }
sub log    { return $_[0]{log} }
sub stop   { my ($self, @how) = @_; return $self->{process}->stop(@how) }

# What it holds now, by its own word: the file is written a moment later.
sub data {
    my ($self) = @_;
    return MCP::Json::decode(MCP::Client->new(url => $self->origin . '/')->get('/db')->{body});
}

1;
