package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	goplugin "github.com/hashicorp/go-plugin"
	"golang.org/x/net/context"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	pb "talon/example/plugin"
)

// tools is what the plugin offers.
type tools struct {
	version int
	broker  *goplugin.GRPCBroker
	config  string
}

// description is PluginService under any name. The generated one knows its own name alone.
func description(name string) *grpc.ServiceDesc {
	unary := func(method string, request func() interface{}, answer func(context.Context, *tools, interface{}) (interface{}, error)) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: method, Handler: func(served interface{}, ctx context.Context, decode func(interface{}) error, _ grpc.UnaryServerInterceptor) (interface{}, error) {
			message := request()
			if err := decode(message); err != nil {
				return nil, err
			}
			return answer(ctx, served.(*tools), message)
		}}
	}
	empty := func() interface{} { return &emptypb.Empty{} }
	return &grpc.ServiceDesc{ServiceName: name, HandlerType: (*interface{})(nil), Methods: []grpc.MethodDesc{
		unary("Init", func() interface{} { return &pb.PluginInitRequest{} }, func(_ context.Context, t *tools, message interface{}) (interface{}, error) {
			t.config = message.(*pb.PluginInitRequest).ConfigJson
			return &emptypb.Empty{}, nil
		}),
		unary("Capabilities", empty, func(_ context.Context, t *tools, _ interface{}) (interface{}, error) {
			return t.capabilities(), nil
		}),
		unary("Execute", func() interface{} { return &pb.ToolCallRequest{} }, func(_ context.Context, t *tools, message interface{}) (interface{}, error) {
			return t.execute(message.(*pb.ToolCallRequest))
		}),
	}}
}

func (t *tools) capabilities() *pb.PluginCapabilities {
	action := func(name, description string, parameters ...string) *pb.Action {
		action := &pb.Action{Name: name, Description: description}
		for _, parameter := range parameters {
			action.Parameters = append(action.Parameters, &pb.Parameter{Name: parameter, Description: "What it is done with", Type: "string", Required: true})
		}
		return action
	}
	return &pb.PluginCapabilities{
		Name:        "go-plugin",
		Description: "What a program of go-plugin can do",
		Actions: []*pb.Action{
			action("echo", "Gives back a text", "text"),
			action("version", "Tells the version that was agreed on"),
			action("settings", "Tells its settings"),
			action("environment", "Tells a variable of its environment", "name"),
			action("print", "Prints so many bytes on standard output and on standard error", "bytes"),
			action("streams", "Tells whether its library streams what it prints"),
			action("offer", "Offers a further service by go-plugin's broker"),
			action("end", "Ends the process"),
		},
	}
}

func (t *tools) execute(call *pb.ToolCallRequest) (*pb.ToolResultResponse, error) {
	answer := func(content string) (*pb.ToolResultResponse, error) {
		return &pb.ToolResultResponse{CallId: call.Id, Content: content}, nil
	}
	switch call.Action {
	case "echo":
		return answer(call.Args["text"])
	case "version":
		return answer(fmt.Sprint(t.version))
	case "settings":
		return answer(t.config)
	case "environment":
		return answer(os.Getenv(call.Args["name"]))
	case "print":
		count, err := strconv.Atoi(call.Args["bytes"])
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		if *streams && !libraryStreams {
			output.start()
		}
		line := strings.Repeat("x", 3999) + "\n"
		for printed := 0; printed < count; printed += len(line) {
			fmt.Fprint(os.Stdout, line)
			fmt.Fprint(os.Stderr, line)
		}
		fmt.Fprintln(os.Stdout, "the last of its output")
		return answer("printed")
	case "streams":
		return answer(fmt.Sprint(libraryStreams))
	case "offer":
		// Waits until a host takes the news of it.
		listener, err := t.broker.Accept(t.broker.NextId())
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		defer listener.Close()
		return answer("offered")
	case "end":
		os.Exit(7)
	}
	return &pb.ToolResultResponse{CallId: call.Id, Error: "no such action"}, nil
}
