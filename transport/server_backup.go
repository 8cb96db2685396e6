package transport

import (
	"context"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// Backups is a Backend that can make a backup of the cluster.
type Backups interface {
	// Backup calls send with the bytes of a backup file, in order, and returns the
	// error of send; nil only if all of it was sent. send does not keep them.
	Backup(ctx context.Context, send func([]byte) error) error
}

// backupStream streams a backup, one at a time on a node: it holds copies of tables.
func backupStream() grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: "Backup", ServerStreams: true, Handler: func(srv any, g grpc.ServerStream) error {
		s := srv.(*Server)
		b, ok := s.backend.(Backups)
		if !ok {
			return fault.New(fault.Unavailable, "this node makes no backups")
		}
		if err := g.RecvMsg(new(pb.BackupRequest)); err != nil {
			return err
		}
		if !s.backingUp.CompareAndSwap(false, true) {
			return fault.New(fault.Busy, "this node is making a backup already")
		}
		defer s.backingUp.Store(false)
		ctx, cancel := context.WithCancel(g.Context())
		defer cancel()
		stop := make(chan struct{})
		defer close(stop)
		s.streams.Go(func() {
			select {
			case <-s.stopping:
				cancel()
			case <-stop:
			}
		})
		err := b.Backup(ctx, func(p []byte) error { return g.SendMsg(&pb.BackupPiece{Data: p}) })
		if err != nil && ctx.Err() != nil && g.Context().Err() == nil {
			return fault.New(fault.Unavailable, "the node is stopping")
		}
		return err
	}}
}
