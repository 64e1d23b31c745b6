"""What kubelet and plugin say to each other: messages generated from the .proto files here, and the services.

The modules `pluginregistration_pb2`, `dra_v1_pb2` and `dra_v1beta1_pb2` hold the messages; `services` holds the method
paths, for the server (the node plugin) and the client (a kubelet) alike. Needs grpc and protobuf: `gpupool[node]`.
"""
