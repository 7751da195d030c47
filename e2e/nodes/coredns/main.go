// coredns is a CoreDNS with the plugins of kubeadm's Corefile, besides those that ask a name server beyond the cluster.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() {
	// Their order is that of CoreDNS itself: who comes first sees a question first.
	dnsserver.Directives = []string{
		"reload", "health", "ready", "prometheus", "errors", "loadbalance", "cache", "kubernetes",
	}
	coremain.Run()
}
