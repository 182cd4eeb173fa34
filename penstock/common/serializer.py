"""The contract of a serialiser that users write for state or namespaces, and the serialiser of a declared type."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from io import BytesIO
from typing import Any, Generic, TypeVar

from penstock.base import pickling
from penstock.common.type_information import TypeInformation

__all__ = ["DeclaredTypeSerializer", "TypeSerializer"]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes elements to a stream and reads them back. Serialisers with the same attributes are equal."""

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Write one element to a stream."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Read one element from a stream."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class DeclaredTypeSerializer(TypeSerializer[Any]):
    """Pickles elements after checking that they fit a declared type. `create_serializer` of a type returns it."""

    def __init__(self, type_info: TypeInformation) -> None:
        self.type_info = type_info

    def serialize(self, element: Any, stream: BytesIO) -> None:
        pickle.dump(self.type_info.fit([element])[0], stream)

    def deserialize(self, stream: BytesIO) -> Any:
        return pickling.load(stream)
