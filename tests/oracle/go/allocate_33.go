package main

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

func allocate(ctx context.Context, c *Case) ([]AllocationResult, error) {
	var features structured.Features
	if err := json.Unmarshal(c.Features, &features); err != nil {
		return nil, err
	}
	a, err := structured.NewAllocator(ctx, features, c.Claims, held(c), c.Classes, c.Slices, dracel.NewCache(100))
	if err != nil {
		return nil, err
	}
	return a.Allocate(ctx, c.Node)
}

func held(c *Case) sets.Set[structured.DeviceID] {
	ids := sets.New[structured.DeviceID]()
	for _, claim := range c.Holders {
		for _, r := range claim.Status.Allocation.Devices.Results {
			if !ptr.Deref(r.AdminAccess, false) {
				ids.Insert(structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
			}
		}
	}
	return ids
}

func compile(c *Case, options dracel.Options) dracel.CompilationResult {
	return dracel.GetCompiler().CompileCELExpression(c.Expression, options)
}
