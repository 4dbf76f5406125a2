// A plugin that HashiCorp's go-plugin serves, for the tests of what such programs do. By its flags it has a cookie, versions
// and its own service name, and falls into the traps that real ones fall into.
package main

import (
	"flag"
	"fmt"
	"net/rpc"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	goplugin "github.com/hashicorp/go-plugin"
	"golang.org/x/net/context"
	"google.golang.org/grpc"
)

var (
	cookie     = flag.String("cookie", "TALON_PLUGIN_MAGIC_COOKIE=d3a7c1f0-talon-plugin", "its `KEY=VALUE`")
	versions   = flag.String("versions", "1", "the application protocol versions that it serves")
	service    = flag.String("service", "opentalon.plugin.v1.PluginService", "the full `name` of its service")
	netRPC     = flag.Bool("netrpc", false, "serves go-plugin's older wire protocol")
	streams    = flag.Bool("stdio", false, "streams its output, as go-plugin does from version 1.1 on")
	say        = flag.String("say", "", "a `line` for standard error before it serves")
	longSocket = flag.Int("long-socket", 0, "makes its socket in a directory whose path has so many bytes")
)

// libraryStreams is whether the library streams its output.
var libraryStreams bool

// set is one of the versions that it serves.
type set struct {
	goplugin.NetRPCUnsupportedPlugin
	version int
}

func (s *set) GRPCServer(broker *goplugin.GRPCBroker, server *grpc.Server) error {
	server.RegisterService(description(*service), &tools{version: s.version, broker: broker})
	_, libraryStreams = server.GetServiceInfo()[stdioDescription.ServiceName]
	if *streams && !libraryStreams {
		server.RegisterService(&stdioDescription, &output)
	}
	return nil
}

func (*set) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (interface{}, error) {
	return nil, fmt.Errorf("this is a plugin")
}

// oldSet is the same with the older wire protocol.
type oldSet struct{}

func (oldSet) Server(*goplugin.MuxBroker) (interface{}, error) { return &struct{}{}, nil }

func (oldSet) Client(*goplugin.MuxBroker, *rpc.Client) (interface{}, error) {
	return nil, fmt.Errorf("this is a plugin")
}

func main() {
	flag.Parse()
	if *say != "" {
		fmt.Fprintln(os.Stderr, *say)
	}
	if *longSocket > 0 {
		directory := os.TempDir()
		directory = filepath.Join(directory, strings.Repeat("x", *longSocket-len(directory)-1))
		if err := os.MkdirAll(directory, 0o700); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Setenv("TMPDIR", directory)
	}
	// The library puts pipes in their places once it serves.
	terminal := os.Stderr
	key, value, _ := strings.Cut(*cookie, "=")
	config := &goplugin.ServeConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: key, MagicCookieValue: value},
		VersionedPlugins: map[int]goplugin.PluginSet{},
		GRPCServer:       goplugin.DefaultGRPCServer,
	}
	for _, text := range strings.Split(*versions, ",") {
		version, err := strconv.Atoi(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		config.VersionedPlugins[version] = goplugin.PluginSet{"tools": &set{version: version}}
		if *netRPC {
			config.VersionedPlugins[version] = goplugin.PluginSet{"tools": oldSet{}}
		}
	}
	if *netRPC {
		config.GRPCServer = nil
	}
	goplugin.Serve(config)
	fmt.Fprintln(terminal, "its server has ended")
}
