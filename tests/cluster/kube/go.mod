// Marks the module's root and nothing else: build with -modfile=1.37.2.mod or another version's file beside it.
// Those replace the staged modules (k8s.io/api, ...) by published ones of the same minor; some patch releases of them
// are not published, a neighbour's stands in. Made anew with: go mod tidy -modfile=VERSION.mod
module gpupool.dev/tests/cluster/kube
