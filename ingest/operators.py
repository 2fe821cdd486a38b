"""Operators: names with versions, shapes, numbers and addresses taken off, and their families.

The same work on two ranks, in two runs and under two driver versions has one operator. What picks
another algorithm (tile, layout, element type of a library's kernel) stays, since it runs at another
speed; what only says where or when (line, address, sequence number, step) goes.
"""

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.cxx_names import function
from teller.ingest.families import families
from teller.ingest.step_names import parse

CLASSIFIED: Final = pa.schema(
    [
        pa.field("operator", pa.string(), nullable=False),
        pa.field("family", pa.string(), nullable=False),
    ]
)


def classify(names: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Give operator and family of each name, in order; made for distinct names, null is "other"."""
    texts = _texts(names)
    # most names differ only in what these take off, so that few are left to look at one by one
    bare = pc.replace_substring_regex(texts, _TAIL, "")
    coded = pc.replace_substring_regex(bare, _LINE, ": ").dictionary_encode()
    operators = pa.array(map(operator_of, coded.dictionary.to_pylist()), pa.string())
    of_operator = operators.dictionary_encode()
    family = families(of_operator.dictionary).take(of_operator.indices)
    return pa.table([operators.take(coded.indices), family.take(coded.indices)], schema=CLASSIFIED)


def operator_of(name: str) -> str:
    """Give the operator of one name."""
    if ".py" in name or name.startswith(("<built-in ", "nn.Module: ")):
        return _python(name)
    if _API.match(name):
        return _API_VERSION.sub("", name)
    if name.startswith("nccl"):
        return _nccl(name)
    if name[-1:].isdigit() or name.startswith(_STEP_STARTS) or "execute_" in name:
        step = parse(name)
        if step is not None:
            return step.operator
    if name.startswith(("void ", "_Z")) or (("<" in name or "(" in name) and _CXX.search(name)):
        return function(name)
    return _plain(name)


def _texts(names: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    return pc.fill_null(whole.cast(pa.string()), "")


_TAIL: Final = (
    r"(?s),? (?:seq|op_id|sizes|input_op_ids) = .*$| object at 0x[0-9a-fA-F]+"
    r"| at 0x[0-9a-fA-F]+"
)
_LINE: Final = r"\(\d+\): "
_INSTALLED: Final = re.compile(
    r"^.*/(?:site-packages|dist-packages)/|^.*?/(?:python3\.\d+|python)/"
)
_ADDRESS: Final = re.compile(r"(?: object)? at 0x[0-9a-fA-F]+|\b0x[0-9a-fA-F]{4,}\b")
KEPT_FOLDERS: Final = 3  # of an absolute path that tells no package: enough to be told apart


def _python(name: str) -> str:
    """Cut an absolute path down to the package; the line is off already."""
    path, colon, rest = name.partition(": ")
    if not colon or not path.startswith("/"):
        return name
    bare = _INSTALLED.sub("", path)
    if bare == path:
        bare = "/".join(path.split("/")[-KEPT_FOLDERS:])
    return f"{bare}: {rest}"


_API: Final = re.compile(r"(?:cuda|cu|hip)[A-Z]\w*$")
_API_VERSION: Final = re.compile(r"(?:_(?:v\d+|ptsz|ptds|spt)|R\d{4})+$")

_OLD_NCCL: Final = re.compile(
    r"^ncclKernel_([A-Za-z]+)_([A-Z][A-Z\d]+(?:_[A-Z][A-Z\d]*)*?)_(LL128|LL|SIMPLE)_([A-Z][A-Za-z]+)_(\w+)$"
)
_TYPES: Final = {
    "float": "f32",
    "half": "f16",
    "double": "f64",
    "__nv_bfloat16": "bf16",
    "bfloat16": "bf16",
    "hip_bfloat16": "bf16",
    "rccl_bfloat16": "bf16",
    "int8_t": "i8",
    "uint8_t": "u8",
    "int32_t": "i32",
    "uint32_t": "u32",
    "int64_t": "i64",
    "uint64_t": "u64",
}
_REDUCING: Final = ("AllReduce", "ReduceScatter", "Reduce")
_UNROLL: Final = re.compile(r"(?<=Generic)_\d+$")


def _nccl(name: str) -> str:
    bare = name.partition("(")[0].strip()
    old = _OLD_NCCL.match(bare)
    if old:
        op, algorithm, protocol, reduction, kind = old.groups()
        middle = f"_{reduction}_{_TYPES.get(kind, kind)}" if op in _REDUCING else ""
        moved = "" if op == "SendRecv" else f"_{algorithm}_{protocol}"
        return f"ncclDevKernel_{op}{middle}{moved}"
    if bare.startswith("ncclKernel_"):
        bare = f"ncclDevKernel_{bare[11:]}"
    return _UNROLL.sub("", bare)


_STEP_STARTS: Final = (
    "step[",
    "run_batch",
    "ProfilerStep",
    "_forward_step",
    "executeStep",
    "[Exec",
)
_CXX: Final = re.compile(
    r"^_Z|^void |::.*[<(]|[\w>]\((?:\w+::|\w+ ?[*&]|int\b|unsigned\b|float\b|double\b|const )|^\w+<"
)

_LAYERWISE: Final = re.compile(r"^\{'Module': '([^']+)'")
_HASH: Final = re.compile(r"\b(?=\w*\d)(?=\w*[a-z])[a-z0-9]{24,}\b")
_SHAPE: Final = re.compile(r"\s*[\[(]\s*\d+(?:\s*[,x]\s*\d+)+\s*,?\s*[\])]")
_NUMBER: Final = re.compile(r"(?<=[ #:=])\d+(?:/\d+)?\b(?![.\w])")
_CAPTURE: Final = re.compile(r"^(capture)_\d+(_\w+)$")
_TRITON: Final = re.compile(r"^(triton_\w*?[a-z]\w*?)(?:_\d+(?:d\d*|de|c)*)+$")
_TRITON_ARGUMENTS: Final = re.compile(r"_\d+(?:de|d|c)(?:\d+(?:de|d|c)?)+$")
_CUBLAS: Final = re.compile(r"__\d+x_cublas$")
_TENSILE: Final = re.compile(r"^(Cijk_\w*?_MT\d+x\d+x\d+(?:_MI\d+(?:x\d+)+)?)_\w+$")
_MIOPEN: Final = re.compile(r"^(igemm_\w*?_bt\d+x\d+x\d+)_\w+$")
_DIGIT: Final = re.compile(r"\d")
_BLANKS: Final = re.compile(r" {2,}")
_EMPTY_END: Final = re.compile(r"[\s#:=,]+$")


def _plain(name: str) -> str:
    layer = _LAYERWISE.match(name)
    if layer:
        return layer[1]
    if name.startswith("triton_"):
        return _TRITON.sub(r"\1", name)
    if name.startswith("Cijk_"):
        return _TENSILE.sub(r"\1", name)
    if name.startswith("igemm_"):
        return _MIOPEN.sub(r"\1", name)
    if " " not in name:  # a kernel of one word, or a module's path
        bare = _TRITON_ARGUMENTS.sub("", _CUBLAS.sub("", name))
        return _CAPTURE.sub(r"\1\2", bare) or name
    if name.startswith("CUDA graph"):
        return "CUDA graph"
    if not _DIGIT.search(name):
        return name.strip()
    bare = _ADDRESS.sub("", _SHAPE.sub("", _HASH.sub("", name)))
    bare = _NUMBER.sub("", bare)
    end = " ##" if bare.endswith("##") else ""
    return f"{_BLANKS.sub(' ', _EMPTY_END.sub('', bare))}{end}".strip() or name
