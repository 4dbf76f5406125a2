package main

import (
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"talon/example/stdio"
)

// pieceBytes is how much go-plugin streams at once.
const pieceBytes = 1 << 10

// streamed is GRPCStdio as go-plugin serves it from version 1.1 on: what is printed goes into pipes that are read through
// the stream alone, so that it blocks the program when no client reads it.
type streamed struct {
	once   sync.Once
	pieces chan *stdio.Piece
}

var output = streamed{pieces: make(chan *stdio.Piece)}

var stdioDescription = grpc.ServiceDesc{ServiceName: "plugin.GRPCStdio", HandlerType: (*interface{})(nil), Streams: []grpc.StreamDesc{{
	StreamName:    "StreamStdio",
	ServerStreams: true,
	Handler:       func(served interface{}, stream grpc.ServerStream) error { return served.(*streamed).stream(stream) },
}}}

// start puts its pipes in the places of the library's, whose other ends lead nowhere.
func (s *streamed) start() {
	s.once.Do(func() {
		for channel, file := range map[stdio.Piece_Channel]**os.File{stdio.Piece_STDOUT: &os.Stdout, stdio.Piece_STDERR: &os.Stderr} {
			reader, writer, err := os.Pipe()
			if err != nil {
				panic(err)
			}
			*file = writer
			go s.read(channel, reader)
		}
	})
}

func (s *streamed) read(channel stdio.Piece_Channel, reader *os.File) {
	for {
		piece := make([]byte, pieceBytes)
		read, err := reader.Read(piece)
		if err != nil {
			return
		}
		s.pieces <- &stdio.Piece{Channel: channel, Data: piece[:read]}
	}
}

func (s *streamed) stream(stream grpc.ServerStream) error {
	if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	for {
		select {
		case piece := <-s.pieces:
			if err := stream.SendMsg(piece); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return status.Error(codes.Canceled, "nobody reads any more")
		}
	}
}
