// A program of go-plugin's that knows nothing of Talon: the KV example, which keeps values in files beside it, and a service
// with every kind of field. -health makes it say that it does not serve.
package main

import (
	"flag"
	"fmt"
	"io/ioutil"
	"os"
	"sync/atomic"

	goplugin "github.com/hashicorp/go-plugin"
	"golang.org/x/net/context"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"talon/example/kv"
)

var notServing = flag.Bool("not-serving", false, "its health service says that it does not serve")

type store struct {
	kv.UnimplementedKVServer
}

func (store) Put(_ context.Context, request *kv.PutRequest) (*kv.Empty, error) {
	value := fmt.Sprintf("%s\n\nWritten from plugin-go-grpc", request.Value)
	return &kv.Empty{}, ioutil.WriteFile("kv_"+request.Key, []byte(value), 0644)
}

func (store) Get(_ context.Context, request *kv.GetRequest) (*kv.GetResponse, error) {
	value, err := ioutil.ReadFile("kv_" + request.Key)
	return &kv.GetResponse{Value: value}, err
}

type samples struct {
	kv.UnimplementedSamplesServer
	givenUp int32
}

func (*samples) Echo(_ context.Context, sample *kv.Sample) (*kv.Sample, error) {
	return sample, nil
}

func (*samples) Refuse(_ context.Context, sample *kv.Sample) (*kv.Sample, error) {
	return nil, status.Error(codes.FailedPrecondition, sample.Text)
}

func (*samples) Crash(context.Context, *kv.Sample) (*kv.Sample, error) {
	os.Exit(3)
	return nil, nil
}

func (s *samples) Wait(ctx context.Context, _ *kv.Sample) (*kv.Sample, error) {
	<-ctx.Done()
	atomic.AddInt32(&s.givenUp, 1)
	return nil, ctx.Err()
}

func (s *samples) GivenUp(context.Context, *kv.Empty) (*kv.Sample, error) {
	return &kv.Sample{Small: atomic.LoadInt32(&s.givenUp)}, nil
}

type services struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (*services) GRPCServer(_ *goplugin.GRPCBroker, server *grpc.Server) error {
	kv.RegisterKVServer(server, store{})
	kv.RegisterSamplesServer(server, &samples{})
	return nil
}

func (*services) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (interface{}, error) {
	return nil, fmt.Errorf("this is a plugin")
}

// unhealthy intercepts health checks of the server that go-plugin makes.
func unhealthy(options []grpc.ServerOption) *grpc.Server {
	checks := health.NewServer()
	checks.SetServingStatus("plugin", healthpb.HealthCheckResponse_NOT_SERVING)
	return grpc.NewServer(append(options, grpc.UnaryInterceptor(func(ctx context.Context, request interface{}, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (interface{}, error) {
		if check, is := request.(*healthpb.HealthCheckRequest); is {
			return checks.Check(ctx, check)
		}
		return next(ctx, request)
	}))...)
}

func main() {
	flag.Parse()
	// The library puts a pipe in its place once it serves.
	terminal := os.Stderr
	server := goplugin.DefaultGRPCServer
	if *notServing {
		server = unhealthy
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "BASIC_PLUGIN", MagicCookieValue: "hello"},
		Plugins:         map[string]goplugin.Plugin{"kv": &services{}},
		GRPCServer:      server,
	})
	fmt.Fprintln(terminal, "its server has ended")
}
