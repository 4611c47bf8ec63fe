"""What a migration from ZooKeeper to KRaft leads to: a quorum of controllers, which it creates."""

from typing import Annotated

from pydantic import ConfigDict, Field, field_validator

from domain.cluster import ClusterSpec, ControllerListener, ControllerSecurityProtocol, ControllerSpec, QuorumSpec
from domain.of_kind import Wanted

Controllers = Annotated[tuple[ControllerSpec, ...], Field(min_length=1)]


class ZkToKraftWanted(Wanted):
    """The controller quorum that the migration creates."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    controllers: Controllers = Field(
        description="The KRaft controllers to create: an odd number, on hosts of their own or beside the brokers."
    )
    controller_listener: ControllerListener = "CONTROLLER"
    controller_security_protocol: ControllerSecurityProtocol = "PLAINTEXT"

    @field_validator("controllers")
    @classmethod
    def _check_majority(cls, controllers: Controllers) -> Controllers:
        if len(controllers) % 2 == 0:
            raise ValueError(f"{len(controllers)} controllers: use an odd number, so that a majority is defined")
        return controllers

    @property
    def quorum(self) -> QuorumSpec:
        return QuorumSpec(
            controllers=self.controllers,
            listener=self.controller_listener,
            security_protocol=self.controller_security_protocol,
        )


def aimed(spec: ClusterSpec, wanted: Wanted) -> ClusterSpec:
    """The cluster with the quorum that is wanted: what the migration observes and changes. Raises `ValueError` if it cannot be.

    If its specification has a quorum already, as where somebody has begun by hand, that quorum is the one that is wanted; it
    may be reached otherwise. So an operator corrects the address of a controller's metrics while the migration is held.
    """
    if spec.zookeeper is None:
        raise ValueError(f"cluster {spec.name} has no ZooKeeper in its specification: there is nothing to migrate from")
    with_wanted = spec.with_quorum(ZkToKraftWanted.of(wanted).quorum)
    if spec.quorum is None:
        return with_wanted
    if not spec.looks_otherwise_at_the_same_as(with_wanted):
        raise ValueError(
            "the quorum of the cluster's specification is another one: want the same, or correct the specification"
        )
    return spec


def achieved(spec: ClusterSpec, wanted: Wanted) -> ClusterSpec:
    """The cluster at the end of the migration: with the quorum, and without ZooKeeper."""
    return aimed(spec, wanted).model_copy(update={"zookeeper": None})
