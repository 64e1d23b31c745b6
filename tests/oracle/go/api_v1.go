package main

import resourceapi "k8s.io/api/resource/v1"

type (
	AllocationResult = resourceapi.AllocationResult
	DeviceClass      = resourceapi.DeviceClass
	ResourceClaim    = resourceapi.ResourceClaim
	ResourceSlice    = resourceapi.ResourceSlice
)
