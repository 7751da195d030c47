// control-plane is Kubernetes in one binary, chosen by the first argument: what a test cluster needs (etcd,
// kube-apiserver and kube-controller-manager), and what nodes need besides (kube-scheduler, kubelet, kube-proxy).
// One component runs per process, because Kubernetes keeps its feature gates in process-wide state.
//
// With CONTROL_PLANE_EXIT_WITH_STDIN=1 the process ends as soon as its standard input is closed.
// The harness holds the other end of that pipe, so nothing outlives it, even when it is killed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/component-base/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

const (
	exitWithStdinVariable = "CONTROL_PLANE_EXIT_WITH_STDIN"
	usage                 = "usage: control-plane etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubelet|kube-proxy|version [flags]"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if os.Getenv(exitWithStdinVariable) == "1" {
		go exitWithStdin()
	}
	// The components read os.Args themselves: the component's name takes the program's place.
	component := os.Args[1]
	os.Args = os.Args[1:]
	switch component {
	case "etcd":
		os.Exit(runEtcd(os.Args[1:]))
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	case "version":
		fmt.Println(version.Get().GitVersion)
	default:
		fmt.Fprintf(os.Stderr, "unknown component %q\n%s\n", component, usage)
		os.Exit(2)
	}
}

// exitWithStdin ends the process at once, without draining: what it stored is thrown away with the test.
func exitWithStdin() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
