// One binary of all that a cluster runs, each under its own name as first argument or by the name it is called by.
//
// The same source for every version of Kubernetes; which one is decided by -modfile (see go.mod).
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && name != "etcd" && commands[name] == nil {
		name = os.Args[1]
		os.Args = append([]string{name}, os.Args[2:]...)
	}
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command := commands[name]
	if command == nil {
		fmt.Fprintf(os.Stderr, "%s is none of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": func() *cobra.Command { return controllers.NewControllerManagerCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 newKubelet,
}

// The constructor takes no context up to 1.32.
func newKubelet() *cobra.Command {
	switch construct := any(kubelet.NewKubeletCommand).(type) {
	case func() *cobra.Command:
		return construct()
	case func(context.Context) *cobra.Command:
		return construct(context.Background())
	}
	panic("unknown signature of NewKubeletCommand")
}
