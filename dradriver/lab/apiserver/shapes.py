"""The fields of every kind the lab serves, written once: pruning, strictness, explain, apply and patches read this.

One line is one field: `name: Type [gate] -- description`. A field with a gate exists in the Kubernetes versions that
have the gate. Types are `string`, `int`, `bool`, `quantity`, `time`, `any` or the name of another block; `[T]` is an
atomic list, `[T|a,b]` a list keyed by those fields, `[T|]` a set, `{T}` a map. `+ Block` takes over the fields of an
earlier block, `*` keeps fields that the block does not name. `Name@version` replaces `Name` in that version. Source:
kubernetes/api `resource/*/types.go` and `core/v1/types.go`.
"""

SHAPES = """
ResourceClaim -- A request for devices, and what was allocated for it.
  metadata: ObjectMeta -- Standard object metadata.
  spec: ResourceClaimSpec -- What is asked for; immutable.
  status: ResourceClaimStatus -- What was allocated, and for whom it is reserved.
ResourceClaimSpec
  devices: DeviceClaim -- Which devices are asked for.
ResourceClaimTemplate -- A pattern from which each pod gets a claim of its own.
  metadata: ObjectMeta -- Standard object metadata.
  spec: ResourceClaimTemplateSpec -- The claim that is made; immutable.
ResourceClaimTemplateSpec
  metadata: ObjectMeta -- Labels and annotations of the claim.
  spec: ResourceClaimSpec -- Spec of the claim.
DeviceClaim
  requests: [DeviceRequest] -- Devices asked for, all of which must be allocated.
  constraints: [DeviceConstraint] -- Conditions over the devices of several requests.
  config: [DeviceClaimConfiguration] -- Parameters for drivers.
DeviceRequest -- One need; exactly one of exactly and firstAvailable is set.
  name: string -- How constraints, config and containers refer to this request.
  exactly: ExactDeviceRequest -- The only way to meet this request.
  firstAvailable: [DeviceSubRequest] DRAPrioritizedList -- Ways to meet this request, best first.
DeviceNeed
  deviceClassName: string -- The DeviceClass devices must belong to.
  selectors: [DeviceSelector] -- Tests that a device must pass.
  allocationMode: string -- ExactCount (default) or All.
  count: int -- How many devices, with ExactCount; 1 by default.
  tolerations: [DeviceToleration] DRADeviceTaints -- Device taints that are accepted.
  capacity: CapacityRequirements DRAConsumableCapacity -- How much of each capacity of a shared device.
ExactDeviceRequest
  + DeviceNeed
  adminAccess: bool DRAAdminAccess -- Access for monitoring, beside what others were allocated.
DeviceRequest@v1beta1
  name: string -- How constraints, config and containers refer to this request.
  firstAvailable: [DeviceSubRequest] DRAPrioritizedList -- Ways to meet this request, best first.
  + ExactDeviceRequest
DeviceSubRequest
  name: string -- Its full name is the request's, a slash, and this.
  + DeviceNeed
DeviceSelector
  cel: CELDeviceSelector -- A test in CEL.
CELDeviceSelector
  expression: string -- True for devices that fit; reads device.driver, device.attributes and device.capacity.
CapacityRequirements
  requests: {quantity} -- Amount asked for, by name of the capacity.
DeviceToleration
  key: string -- Key of the taint; empty with Exists accepts every taint.
  operator: string -- Exists or Equal (default).
  value: string -- Value of the taint, with Equal.
  effect: string -- Effect that is accepted; empty accepts every effect.
  tolerationSeconds: int -- How long a NoExecute taint is accepted.
DeviceConstraint
  requests: [string] -- Requests this is about; none means all.
  matchAttribute: string -- Attribute that must be the same on all their devices.
  distinctAttribute: string DRAConsumableCapacity -- Attribute that must differ on all their devices.
DeviceClaimConfiguration
  requests: [string] -- Requests this is about; none means all.
  opaque: OpaqueDeviceConfiguration -- Parameters for one driver.
OpaqueDeviceConfiguration
  driver: string -- The driver that reads them.
  parameters: any -- A JSON object only that driver understands.
ResourceClaimStatus
  allocation: AllocationResult -- The devices that were allocated.
  reservedFor: [ResourceClaimConsumerReference|uid] -- Who uses the claim.
  devices: [AllocatedDeviceStatus|driver,device,pool,shareID] DRAResourceClaimDeviceStatus -- Drivers' reports.
AllocationResult
  devices: DeviceAllocationResult -- Devices and their parameters.
  nodeSelector: NodeSelector -- Nodes on which the devices can be used.
  allocationTimestamp: time DRADeviceBindingConditions -- When they were allocated.
DeviceAllocationResult
  results: [DeviceRequestAllocationResult] -- The devices.
  config: [DeviceAllocationConfiguration] -- Parameters, of the class before those of the claim.
DeviceRequestAllocationResult
  request: string -- The request (or request/subrequest) it was allocated for.
  driver: string -- The driver that offers it.
  pool: string -- The pool it is part of.
  device: string -- Its name in the pool.
  adminAccess: bool DRAAdminAccess -- Allocated beside what others were allocated.
  tolerations: [DeviceToleration] DRADeviceTaints -- Device taints the request accepts.
  bindingConditions: [string] DRADeviceBindingConditions -- What must be true before pods are bound.
  bindingFailureConditions: [string] DRADeviceBindingConditions -- What makes binding fail.
  shareID: string DRAConsumableCapacity -- Identity of this share of the device.
  consumedCapacity: {quantity} DRAConsumableCapacity -- How much of the device this share takes.
DeviceAllocationConfiguration
  source: string -- FromClass or FromClaim.
  requests: [string] -- Requests this is about; none means all.
  opaque: OpaqueDeviceConfiguration -- Parameters for one driver.
ResourceClaimConsumerReference
  apiGroup: string -- Group of the consumer; empty for pods.
  resource: string -- Plural name of the consumer's kind.
  name: string -- Name of the consumer.
  uid: string -- UID of the consumer.
AllocatedDeviceStatus
  driver: string -- The driver that reports.
  pool: string -- The pool of the device.
  device: string -- The device.
  shareID: string DRAConsumableCapacity -- The share of the device.
  conditions: [any|type] -- What the driver says of it.
  data: any -- More, in the driver's own form.
  networkData: NetworkDeviceData -- Network interface of the device.
NetworkDeviceData
  interfaceName: string
  ips: [string]
  hardwareAddress: string
DeviceClass -- A kind of device that people may ask for.
  metadata: ObjectMeta -- Standard object metadata.
  spec: DeviceClassSpec -- Which devices, and how they are set up.
DeviceClassSpec
  selectors: [DeviceSelector] -- Tests that a device of the class must pass.
  config: [DeviceClassConfiguration] -- Parameters for drivers.
  extendedResourceName: string DRAExtendedResource -- Extended resource that asks for this class.
DeviceClassConfiguration
  opaque: OpaqueDeviceConfiguration -- Parameters for one driver.
ResourceSlice -- Devices of one pool, as published by a driver.
  metadata: ObjectMeta -- Standard object metadata.
  spec: ResourceSliceSpec -- The devices and where they can be used.
ResourceSliceSpec
  driver: string -- The driver that publishes them; immutable.
  pool: ResourcePool -- The pool they belong to.
  nodeName: string -- The node that alone can use them; immutable.
  nodeSelector: NodeSelector -- The nodes that can use them.
  allNodes: bool -- Every node can use them.
  devices: [Device] -- The devices.
  perDeviceNodeSelection: bool DRAPartitionableDevices -- Each device says which nodes can use it.
  sharedCounters: [CounterSet] DRAPartitionableDevices -- Amounts that devices draw from.
ResourcePool
  name: string -- Name of the pool; immutable.
  generation: int -- Grows with each change of the pool; only the highest counts.
  resourceSliceCount: int -- How many slices the pool has at this generation.
CounterSet
  name: string -- Name of the set.
  counters: {Counter} -- The counters.
Counter
  value: quantity -- How much there is, or how much is taken.
BasicDevice
  attributes: {DeviceAttribute} -- What can be matched.
  capacity: {DeviceCapacity} -- How much it has.
  consumesCounters: [DeviceCounterConsumption] DRAPartitionableDevices -- What it takes while allocated.
  nodeName: string DRAPartitionableDevices -- The node that can use it.
  nodeSelector: NodeSelector DRAPartitionableDevices -- The nodes that can use it.
  allNodes: bool DRAPartitionableDevices -- Every node can use it.
  taints: [DeviceTaint] DRADeviceTaints -- Marks that requests must tolerate.
  bindsToNode: bool DRADeviceBindingConditions -- Its allocation is tied to the chosen node.
  bindingConditions: [string] DRADeviceBindingConditions -- What must be true before pods are bound.
  bindingFailureConditions: [string] DRADeviceBindingConditions -- What makes binding fail.
  allowMultipleAllocations: bool DRAConsumableCapacity -- Several claims may share it.
Device -- One device.
  name: string -- Name in the pool, a DNS label.
  + BasicDevice
Device@v1beta1 -- One device.
  name: string -- Name in the pool, a DNS label.
  basic: BasicDevice -- What there is to say of it.
DeviceAttribute -- Exactly one of the values is set.
  int: int
  bool: bool
  string: string
  version: string -- A semantic version, 2.0.0.
  ints: [int] DRAListTypeAttributes
  bools: [bool] DRAListTypeAttributes
  strings: [string] DRAListTypeAttributes
  versions: [string] DRAListTypeAttributes
DeviceCapacity
  value: quantity -- How much there is.
  requestPolicy: CapacityRequestPolicy DRAConsumableCapacity -- How requests for a part are rounded.
CapacityRequestPolicy
  default: quantity
  validValues: [quantity]
  validRange: CapacityRequestPolicyRange
CapacityRequestPolicyRange
  min: quantity
  max: quantity
  step: quantity
DeviceCounterConsumption
  counterSet: string -- The set it draws from.
  counters: {Counter} -- How much of each.
  compatibilityGroups: [string] DRADeviceCompatibilityGroups
DeviceTaint
  key: string -- What is wrong.
  value: string -- More about it.
  effect: string -- NoSchedule, NoExecute or None.
  timeAdded: time -- When it was added.
NodeSelector
  nodeSelectorTerms: [NodeSelectorTerm] -- Terms of which one must hold.
NodeSelectorTerm
  matchExpressions: [NodeSelectorRequirement] -- Tests of labels.
  matchFields: [NodeSelectorRequirement] -- Tests of metadata.name.
NodeSelectorRequirement
  key: string
  operator: string
  values: [string]
ObjectMeta
  name: string -- Unique in its namespace.
  generateName: string -- Beginning of a name the server completes.
  namespace: string
  uid: string -- Identity of this object for its whole life.
  resourceVersion: string
  generation: int
  creationTimestamp: time
  deletionTimestamp: time
  deletionGracePeriodSeconds: int
  labels: {string}
  annotations: {string}
  ownerReferences: [OwnerReference|uid]
  finalizers: [string|]
  managedFields: [any]
  selfLink: string
OwnerReference
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller: bool
  blockOwnerDeletion: bool
Pod -- Containers that run together on one node.
  metadata: ObjectMeta
  spec: PodSpec
  status: PodStatus
PodSpec
  *
  nodeName: string
  schedulerName: string
  restartPolicy: string
  terminationGracePeriodSeconds: int
  nodeSelector: {string}
  tolerations: [any]
  schedulingGates: [any|name]
  containers: [Container|name]
  initContainers: [Container|name]
  volumes: [any|name]
  resourceClaims: [PodResourceClaim|name] -- Claims whose devices the containers may use.
PodResourceClaim
  name: string -- How containers refer to the claim.
  resourceClaimName: string -- An existing claim.
  resourceClaimTemplateName: string -- A template from which this pod gets a claim of its own.
Container
  *
  name: string
  image: string
  command: [string]
  args: [string]
  env: [any|name]
  ports: [any|containerPort]
  volumeMounts: [any|mountPath]
  resources: ResourceRequirements
ResourceRequirements
  limits: {quantity}
  requests: {quantity}
  claims: [ResourceClaimReference] -- Claims of the pod that this container uses.
ResourceClaimReference
  name: string -- Entry of the pod's resourceClaims.
  request: string -- One request of the claim; all of them when empty.
PodStatus
  *
  phase: string
  conditions: [any|type]
  containerStatuses: [any|name]
  resourceClaimStatuses: [any|name]
Node -- A machine that runs pods.
  metadata: ObjectMeta
  spec: NodeSpec
  status: NodeStatus
NodeSpec
  *
  unschedulable: bool
  taints: [any]
NodeStatus
  *
  conditions: [any|type]
  addresses: [any|type]
Namespace -- A scope for names.
  metadata: ObjectMeta
  spec: any
  status: any
Event -- Something that happened to an object.
  metadata: ObjectMeta
  involvedObject: any
  reason: string
  message: string
  type: string
  count: int
  firstTimestamp: time
  lastTimestamp: time
  eventTime: time
  reportingComponent: string
  *
Lease -- Who leads, and since when.
  metadata: ObjectMeta
  spec: any
ServiceAccount -- An identity for pods.
  metadata: ObjectMeta
  *
ConfigMap -- Text for pods to read.
  metadata: ObjectMeta
  data: {string}
  binaryData: {string}
  immutable: bool
Secret -- Text for pods to read, kept apart.
  metadata: ObjectMeta
  data: {string}
  stringData: {string}
  type: string
  immutable: bool
ResourceQuota -- Limits of a namespace.
  metadata: ObjectMeta
  spec: any
  status: any
"""
