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
	a, err := structured.NewAllocator(ctx, features, held(c), c.Classes, c.Slices, dracel.NewCache(100, celFeatures(c)))
	if err != nil {
		return nil, err
	}
	return a.Allocate(ctx, c.Node, c.Claims)
}

// held counts as the scheduler's allocateddevices.go does.
func held(c *Case) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	consumable := celFeatures(c).EnableConsumableCapacity
	for _, claim := range c.Holders {
		for _, r := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
			switch {
			case ptr.Deref(r.AdminAccess, false):
			case r.ShareID != nil && consumable:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
				if r.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
				}
			default:
				state.AllocatedDevices.Insert(id)
			}
		}
	}
	return state
}

func celFeatures(c *Case) (features dracel.Features) {
	_ = json.Unmarshal(c.Features, &features)
	return
}

func compile(c *Case, options dracel.Options) dracel.CompilationResult {
	return dracel.GetCompiler(celFeatures(c)).CompileCELExpression(c.Expression, options)
}
