// Counters kept by the host: a Talon plugin's state without an SDK, in plain Go and grpc-go.
//
// The state is in state.go. This file is what every plugin owes its host: the magic cookie, one handshake line, the
// PluginService, a health service and Shutdown. HashiCorp's go-plugin does the same for whom it is at hand.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	pb "talon/example/plugin"
)

type counter struct {
	pb.UnimplementedPluginServiceServer
	counters *counters
}

func (*counter) Init(_ context.Context, request *pb.PluginInitRequest) (*emptypb.Empty, error) {
	if request.ConfigJson != "" && request.ConfigJson != "{}" {
		return nil, status.Error(codes.InvalidArgument, "this plugin takes no config")
	}
	return &emptypb.Empty{}, nil
}

func (*counter) Capabilities(context.Context, *emptypb.Empty) (*pb.PluginCapabilities, error) {
	name := []*pb.Parameter{{Name: "name", Description: "Which counter", Type: "string", Required: true}}
	return &pb.PluginCapabilities{
		Name:        "counter-go",
		Description: "Counts, and goes on counting after a restart",
		Actions: []*pb.Action{
			{Name: "increment", Description: "Adds one and gives the count", Parameters: name},
			{Name: "reset", Description: "Begins again at zero", Parameters: name},
		},
	}, nil
}

func (c *counter) Execute(ctx context.Context, request *pb.ToolCallRequest) (*pb.ToolResultResponse, error) {
	result := &pb.ToolResultResponse{CallId: request.Id}
	name := request.Args["name"]
	var err error
	switch request.Action {
	case "increment":
		var count int64
		count, err = c.counters.increment(ctx, name)
		result.Content = fmt.Sprint(count)
	case "reset":
		err = c.counters.reset(ctx, name)
		result.Content = "0"
	default:
		err = fmt.Errorf("no action %q", request.Action)
	}
	if err != nil {
		// A tool that says no answers with OK; a gRPC error would be a fault of the plugin.
		return &pb.ToolResultResponse{CallId: request.Id, Error: err.Error()}, nil
	}
	return result, nil
}

// go-plugin's GRPCController, as far as a host uses it: an empty message in, an empty one out.
func controller(stop func()) *grpc.ServiceDesc {
	shutdown := func(_ interface{}, _ context.Context, decode func(interface{}) error, _ grpc.UnaryServerInterceptor) (interface{}, error) {
		stop()
		return &emptypb.Empty{}, decode(&emptypb.Empty{})
	}
	methods := []grpc.MethodDesc{{MethodName: "Shutdown", Handler: shutdown}}
	return &grpc.ServiceDesc{ServiceName: "plugin.GRPCController", HandlerType: (*interface{})(nil), Methods: methods}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	counters, err := openCounters(os.Getenv("TALON_STATE_SOCKET"))
	if err != nil {
		return err
	}
	directory := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	if directory == "" {
		directory = os.TempDir()
	}
	address := filepath.Join(directory, "counter.sock")
	listener, err := net.Listen("unix", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pb.RegisterPluginServiceServer(server, &counter{counters: counters})
	checker := health.NewServer()
	checker.SetServingStatus("plugin", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, checker)
	server.RegisterService(controller(stop), nil)
	go func() {
		<-ctx.Done()
		server.GracefulStop()
	}()
	fmt.Printf("1|1|unix|%s|grpc\n", address)
	return server.Serve(listener)
}

func main() {
	if os.Getenv("TALON_PLUGIN_MAGIC_COOKIE") != "d3a7c1f0-talon-plugin" {
		fmt.Fprintln(os.Stderr, "This is a Talon plugin; a host starts it. Try: talon serve, with its directory in the plugin directory")
		os.Exit(1)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "[ERROR]", err)
		os.Exit(1)
	}
}
