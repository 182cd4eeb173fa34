"""Files as sources and sinks, under PyFlink's names.

Both are exactly once with checkpoints: a FileSource can continue in the middle of a file, and a FileSink publishes a
file once the checkpoint that holds it is complete.
"""

from __future__ import annotations

from penstock.connectors.files.buckets import (
    BucketAssigner,
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    PartFileInfo,
    RollingPolicy,
)
from penstock.connectors.files.compaction import FileCompactor, FileCompactStrategy
from penstock.connectors.files.file_sink import FileSink, StreamingFileSink
from penstock.connectors.files.file_source import (
    FileEnumeratorProvider,
    FileProcessingMode,
    FileSource,
    FileSourceBuilder,
    FileSplit,
    FileSplitAssignerProvider,
)
from penstock.formats.contracts import BulkFormat, StreamFormat

__all__ = [
    "BucketAssigner",
    "BulkFormat",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileProcessingMode",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplit",
    "FileSplitAssignerProvider",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "PartFileInfo",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]
