// older is what a test cluster needs of an older Kubernetes, chosen by the first argument. The files beside this one
// name the versions: `go build -modfile=older/1.33.mod ./older`. etcd is that of the newest control plane.
//
// With CONTROL_PLANE_EXIT_WITH_STDIN=1 the process ends as soon as its standard input is closed, as the newest does.
package main

import (
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
)

const (
	exitWithStdinVariable = "CONTROL_PLANE_EXIT_WITH_STDIN"
	usage                 = "usage: older kube-apiserver|kube-controller-manager|version [flags]"
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
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
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
