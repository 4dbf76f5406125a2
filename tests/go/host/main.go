// A host built with HashiCorp's go-plugin, for the test that plugins of talon-sdk run under others' hosts: it starts a plugin,
// calls it, ends it, and prints a line for each.
package main

import (
	"flag"
	"fmt"
	"net/rpc"
	"os"
	"os/exec"
	"strings"

	hclog "github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"golang.org/x/net/context"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	pb "talon/example/plugin"
)

var (
	action   = flag.String("action", "", "the action to call")
	argument = flag.String("argument", "", "its one argument, `NAME=VALUE`")
	config   = flag.String("config", "{}", "the settings for Init")
	mtls     = flag.Bool("mtls", false, "wants AutoMTLS")
)

// service makes the host's side of the plugin: a connection to call on.
type service struct{}

func (service) Server(*goplugin.MuxBroker) (interface{}, error) {
	return nil, fmt.Errorf("this is a host")
}

func (service) Client(*goplugin.MuxBroker, *rpc.Client) (interface{}, error) {
	return nil, fmt.Errorf("it speaks gRPC alone")
}

func (service) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return fmt.Errorf("this is a host")
}

func (service) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, connection *grpc.ClientConn) (interface{}, error) {
	return connection, nil
}

func call(client *goplugin.Client) error {
	protocol, err := client.Client()
	if err != nil {
		return fmt.Errorf("start: %v", err)
	}
	fmt.Println("version", client.NegotiatedVersion())
	if err := protocol.Ping(); err != nil {
		return fmt.Errorf("ping: %v", err)
	}
	fmt.Println("ping answered")
	dispensed, err := protocol.Dispense("tools")
	if err != nil {
		return err
	}
	connection := dispensed.(*grpc.ClientConn)
	ctx := context.Background()
	// As hosts of go-plugin 1.1 and later do at once; the one that Debian packages does not.
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/plugin.GRPCStdio/StreamStdio")
	if err == nil {
		if err = stream.SendMsg(&emptypb.Empty{}); err == nil {
			stream.CloseSend()
			err = stream.RecvMsg(&emptypb.Empty{})
		}
	}
	fmt.Println("its output stream:", status.Code(err))
	plugin := pb.NewPluginServiceClient(connection)
	if _, err := plugin.Init(ctx, &pb.PluginInitRequest{ConfigJson: *config}); err != nil {
		return fmt.Errorf("init: %v", err)
	}
	capabilities, err := plugin.Capabilities(ctx, &emptypb.Empty{})
	if err != nil {
		return fmt.Errorf("capabilities: %v", err)
	}
	fmt.Println("offers", len(capabilities.Actions), "actions as", capabilities.Name)
	name, value, _ := strings.Cut(*argument, "=")
	request := &pb.ToolCallRequest{Id: "call-1", Action: *action, Args: map[string]string{name: value}}
	result, err := plugin.Execute(ctx, request)
	if err != nil {
		return fmt.Errorf("execute: %v", err)
	}
	fmt.Println("answered", result.CallId, result.Content, result.Error)
	return nil
}

func main() {
	flag.Parse()
	command := exec.Command(flag.Arg(0), flag.Args()[1:]...)
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion:  1,
			MagicCookieKey:   "TALON_PLUGIN_MAGIC_COOKIE",
			MagicCookieValue: "d3a7c1f0-talon-plugin",
		},
		Plugins:          goplugin.PluginSet{"tools": service{}},
		Cmd:              command,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		AutoMTLS:         *mtls,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Debug}),
	})
	err := call(client)
	client.Kill()
	fmt.Println("ended with", command.ProcessState)
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}
