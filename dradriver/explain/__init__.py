"""From refusals to verdicts, counts and checked corrections. Pure.

Door (DESIGN 4.5, facts/cli-and-packages 1.7):
    Situation: what is known (cluster: allocator.Cluster, node facts, pods, templates, events, quotas, missing rights)
    explain_claim(situation, claim) -> ClaimExplanation       frozen values with the field names of the JSON contract
    explain_pod(situation, pod) -> PodExplanation
    to_json(explanation) -> dict                              `apiVersion: gpupool.dev/v1alpha1`
"""
