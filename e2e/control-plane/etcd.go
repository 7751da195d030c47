package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdReadyWait bounds how long a single-member etcd may take to elect itself.
const etcdReadyWait = 60 * time.Second

// runEtcd serves one etcd member. The flags are those of etcd's own program, as far as the harness uses
// them, so that the harness starts either one with the same command line.
func runEtcd(args []string) int {
	config, err := etcdConfig(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server, err := embed.StartEtcd(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	case <-time.After(etcdReadyWait):
		fmt.Fprintln(os.Stderr, "etcd: not ready within", etcdReadyWait)
		return 1
	case <-ctx.Done():
		return 0
	}
	select {
	case err := <-server.Err():
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	case <-ctx.Done():
		return 0
	}
}

func etcdConfig(args []string) (*embed.Config, error) {
	config := embed.NewConfig()
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	flags.StringVar(&config.Name, "name", config.Name, "name of this member")
	flags.StringVar(&config.Dir, "data-dir", "", "directory of the data")
	flags.StringVar(&config.LogLevel, "log-level", "warn", "debug, info, warn or error")
	flags.BoolVar(&config.UnsafeNoFsync, "unsafe-no-fsync", false, "do not wait for the disk")
	flags.BoolVar(&config.SocketOpts.ReusePort, "socket-reuse-port", false, "share ports that the caller has reserved")
	listenClient := flags.String("listen-client-urls", "http://127.0.0.1:2379", "where clients connect")
	advertiseClient := flags.String("advertise-client-urls", "http://127.0.0.1:2379", "where clients are sent")
	listenPeer := flags.String("listen-peer-urls", "http://127.0.0.1:2380", "where peers connect")
	advertisePeer := flags.String("initial-advertise-peer-urls", "http://127.0.0.1:2380", "where peers are sent")
	cluster := flags.String("initial-cluster", "", "members as name=URL; this member alone when empty")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	for text, list := range map[*string]*[]url.URL{
		listenClient:    &config.ListenClientUrls,
		advertiseClient: &config.AdvertiseClientUrls,
		listenPeer:      &config.ListenPeerUrls,
		advertisePeer:   &config.AdvertisePeerUrls,
	} {
		parsed, err := url.Parse(*text)
		if err != nil {
			return nil, err
		}
		*list = []url.URL{*parsed}
	}
	config.InitialCluster = *cluster
	if config.InitialCluster == "" {
		config.InitialCluster = config.InitialClusterFromName(config.Name)
	}
	return config, nil
}
