// Package plugintest starts a plugin's program under a real go-plugin host, without a jail.
package plugintest

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"talonplugin"
	"talonplugin/pluginpb"
)

// A bound on hanging, not an expectation of speed.
const patience = time.Minute

// Main lets a test's own program be the plugin when a host starts it: call it from TestMain with the plugin's main.
func Main(m *testing.M, main func()) {
	if os.Getenv(talonplugin.Handshake.MagicCookieKey) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A Host runs one plugin.
type Host struct {
	t      *testing.T
	Client pluginpb.PluginServiceClient
	client *goplugin.Client
}

type dispensed struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (*dispensed) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error { return nil }

func (*dispensed) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, to *grpc.ClientConn) (interface{}, error) {
	return pluginpb.NewPluginServiceClient(to), nil
}

// Start starts the test's own program as the plugin (see Main) and gives it its settings, a JSON object.
func Start(t *testing.T, config string) *Host {
	t.Helper()
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  talonplugin.Handshake,
		Plugins:          goplugin.PluginSet{"plugin": &dispensed{}},
		Cmd:              exec.Command(os.Args[0]),
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		StartTimeout:     patience,
		Logger:           hclog.NewNullLogger(),
	})
	t.Cleanup(client.Kill)
	protocol, err := client.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := protocol.Ping(); err != nil {
		t.Fatalf("its health: %v", err)
	}
	raw, err := protocol.Dispense("plugin")
	if err != nil {
		t.Fatal(err)
	}
	host := &Host{t: t, Client: raw.(pluginpb.PluginServiceClient), client: client}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := host.Client.Init(ctx, &pluginpb.PluginInitRequest{ConfigJson: config}); err != nil {
		t.Fatalf("Init: %v", err)
	}
	if _, err := host.Client.Capabilities(ctx, &emptypb.Empty{}); err != nil {
		t.Fatalf("Capabilities: %v", err)
	}
	return host
}

// Call calls a tool, its arguments as they travel: texts as they are, everything else as JSON.
func (h *Host) Call(action string, args map[string]string) *pluginpb.ToolResultResponse {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := h.Client.Execute(ctx, &pluginpb.ToolCallRequest{Id: "call", Plugin: "test", Action: action, Args: args})
	if err != nil {
		h.t.Fatalf("%s: %v", action, err)
	}
	return answer
}

// Stop asks the plugin to end, and fails the test unless it does.
func (h *Host) Stop() {
	h.t.Helper()
	h.client.Kill()
	if !h.client.Exited() {
		h.t.Fatal("the plugin is still there")
	}
}
