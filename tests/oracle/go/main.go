// The scheduler's allocator and its CEL, asked over JSON lines: one case a line in, one answer a line out.
// Built once for each Kubernetes minor: with api_*.go for the API version and with allocate_*.go for the signatures
// that the minor's k8s.io/dynamic-resource-allocation has.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// Case is a question: for the allocator, or, where Expression is set, for CEL alone.
type Case struct {
	Features json.RawMessage // of the allocator and of CEL in one object; names unknown to the minor are ignored
	Node     *corev1.Node
	Slices   []*ResourceSlice
	Classes  Classes
	Holders  []*ResourceClaim
	Claims   []*ResourceClaim

	Expression string
	New        bool // compile as for an object being created, not as for a stored one
	Device     dracel.Device
}

// Answer of the allocator is Results or Error, both empty for "does not fit"; that of CEL is Matches, Error or Compile.
type Answer struct {
	Error   string             `json:"error,omitempty"`
	Results []AllocationResult `json:"results"`
	Compile string             `json:"compile,omitempty"`
	Matches *bool              `json:"matches,omitempty"`
	Cost    uint64             `json:"cost,omitempty"`
	Micros  int64              `json:"micros"`
}

// Classes is a lister over a fixed set.
type Classes []*DeviceClass

func (l Classes) List() ([]*DeviceClass, error) { return l, nil }
func (l Classes) Get(name string) (*DeviceClass, error) {
	for _, c := range l {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("class %s not found", name)
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		var c Case
		if err := json.Unmarshal(line, &c); err != nil {
			out.Encode(Answer{Error: "CASE " + err.Error()})
			continue
		}
		out.Encode(answer(&c))
	}
}

func answer(c *Case) (a Answer) {
	defer func() {
		if r := recover(); r != nil {
			a = Answer{Error: fmt.Sprint("PANIC ", r)}
		}
	}()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if c.Expression != "" {
		a = evaluate(ctx, c)
	} else if results, err := allocate(ctx, c); err != nil {
		a.Error = err.Error()
	} else {
		a.Results = results
	}
	a.Micros = time.Since(begin).Microseconds()
	return
}

func evaluate(ctx context.Context, c *Case) (a Answer) {
	kind := environment.StoredExpressions
	if c.New {
		kind = environment.NewExpressions
	}
	compiled := compile(c, dracel.Options{EnvType: &kind})
	if compiled.Error != nil {
		a.Compile = strings.TrimSpace(compiled.Error.Error())
		return
	}
	a.Cost = compiled.MaxCost
	matches, _, err := compiled.DeviceMatches(ctx, c.Device)
	if err != nil {
		a.Error = err.Error()
	} else {
		a.Matches = &matches
	}
	return
}
