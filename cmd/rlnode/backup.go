package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/cluster"
)

func backupCommand() *cobra.Command {
	var (
		addrs nodes
		out   string
	)
	cmd := &cobra.Command{
		Use:   "backup -o FILE",
		Short: "Write a backup of the whole cluster",
		Long: "backup writes policies with their versions and audit, overrides, and every bucket, result and permit, to one file,\n" +
			"while the cluster serves. The file has all that was admitted before the command began; it appears only when it is whole.\n" +
			"It fails when policies change meanwhile: run it again.\n" +
			"Treat it as a secret: it holds the keys by which the cluster identifies buckets; only its owner may read it.\n\n" +
			"To restore it, start a new cluster: rlnode serve --restore FILE --bootstrap-expect N … on every first node, with an\n" +
			"empty --data-dir. The number of nodes, their names and --groups may differ. Time from the backup to the restore does\n" +
			"not count: no budget is fuller than it was. A cluster that exists is never restored into.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usageError{errors.New("-o names no file")}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			info, err := backup(ctx, addrs, out)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "backup %s: %s, %s in %s, cluster %s\n", out, amount(info.Policies, "policy", "policies"),
				amount(info.Buckets, "bucket", "buckets"), amount(info.Slots, "slot", "slots"), info.Cluster)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write, with mode 0600; one that exists is replaced at the end")
	addrFlag(cmd, &addrs)
	return cmd
}

// backup writes the file from the first node that can give all of it.
func backup(ctx context.Context, addrs nodes, path string) (cluster.BackupInfo, error) {
	var errs []string
	for _, addr := range addrs.addrs {
		info, err := backupFrom(ctx, addrs, addr, path)
		if err == nil {
			return info, nil
		}
		if ctx.Err() != nil || errors.As(err, new(*os.PathError)) || isFinal(err, reading) {
			return info, err
		}
		errs = append(errs, fmt.Sprintf("%s: %v", addr, err))
	}
	if len(addrs.addrs) == 0 {
		return cluster.BackupInfo{}, usageError{errors.New("--addr names no node: want HOST:PORT and more after commas")}
	}
	return cluster.BackupInfo{}, fmt.Errorf("no node gave a backup: %s", strings.Join(errs, "; "))
}

func backupFrom(ctx context.Context, addrs nodes, addr, path string) (info cluster.BackupInfo, err error) {
	conn, err := addrs.open(addr)
	if err != nil {
		return info, err
	}
	defer conn.Close()
	if err := conn.connect(ctx); err != nil {
		return info, err
	}
	stream, err := pb.NewClusterClient(conn).Backup(ctx, &pb.BackupRequest{})
	if err != nil {
		return info, fault.FromStatus(err)
	}
	file, err := cluster.CreateBackup(path)
	if err != nil {
		return info, err
	}
	defer file.Abort()
	for {
		piece, err := stream.Recv()
		switch {
		case err == io.EOF:
			return file.Commit()
		case err != nil:
			return info, fault.FromStatus(err)
		}
		if _, err := file.Write(piece.GetData()); err != nil {
			return info, err
		}
	}
}
