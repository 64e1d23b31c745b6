"""Shapes that every kind shares: metadata, node selectors, taints' tolerations."""

from __future__ import annotations

from typing import Final

from dradriver.api.metadata import ObjectMeta, OwnerReference
from dradriver.api.nodes import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dradriver.api.taints import TaintEffect, Toleration, TolerationOperator
from dradriver.api.wire.shapes import BOOLEAN, INTEGER, STRING, Converted, Field, ListOf, MapOf, Shape, member_or_text

STRINGS: Final = ListOf(STRING)
TEXTS_BY_KEY: Final = MapOf(STRING)

_OWNER: Final = Shape(
    OwnerReference,
    Field("api_version", "apiVersion", STRING, missing="", always=True),
    Field("kind", "kind", STRING, missing="", always=True),
    Field("name", "name", STRING, missing="", always=True),
    Field("uid", "uid", STRING, missing="", always=True),
    Field("controller", "controller", BOOLEAN),
)
METADATA: Final = Shape(
    ObjectMeta,
    Field("name", "name", STRING),
    Field("namespace", "namespace", STRING),
    Field("uid", "uid", STRING),
    Field("generate_name", "generateName", STRING),
    Field("resource_version", "resourceVersion", STRING),
    Field("generation", "generation", INTEGER),
    Field("labels", "labels", TEXTS_BY_KEY),
    Field("annotations", "annotations", TEXTS_BY_KEY),
    Field("owner_references", "ownerReferences", ListOf(_OWNER, identity=("uid",))),
    Field("finalizers", "finalizers", STRINGS),
    Field("creation_timestamp", "creationTimestamp", STRING, optional=True),
    Field("deletion_timestamp", "deletionTimestamp", STRING, optional=True),
)

_REQUIREMENTS: Final = ListOf(
    Shape(
        NodeSelectorRequirement,
        Field("key", "key", STRING, missing="", always=True),
        Field("operator", "operator", STRING, missing="", always=True),
        Field("values", "values", STRINGS),
    )
)
NODE_SELECTOR: Final = Shape(
    NodeSelector,
    Field(
        "terms",
        "nodeSelectorTerms",
        ListOf(
            Shape(
                NodeSelectorTerm,
                Field("match_expressions", "matchExpressions", _REQUIREMENTS),
                Field("match_fields", "matchFields", _REQUIREMENTS),
            )
        ),
        missing=(),
        always=True,
    ),
)


def _effect(text: str) -> TaintEffect:
    effect = member_or_text(TaintEffect, text)
    return effect if isinstance(effect, TaintEffect) else TaintEffect.NONE


def _operator(text: str) -> str:
    return member_or_text(TolerationOperator, text or TolerationOperator.EQUAL)


EFFECT: Final = Converted(_effect)
TOLERATIONS: Final = ListOf(
    Shape(
        Toleration,
        Field("key", "key", STRING),
        Field("operator", "operator", Converted(_operator)),
        Field("value", "value", STRING),
        Field("effect", "effect", EFFECT, optional=True),
        Field("toleration_seconds", "tolerationSeconds", INTEGER, optional=True),
    )
)
