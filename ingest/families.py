"""Operator families: a small table of patterns over operators, first match wins."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

OTHER: Final = "other"

# Calls of the CUDA and HIP runtimes and drivers, by the name without its version.
_API_TABLE: Final = (
    ("graph_launch", r"GraphLaunch"),
    (
        "launch",
        r"Launch(?:Cooperative)?(?:MultiDevice)?Kernel|ModuleLaunch|LaunchHostFunc|LaunchGrid",
    ),
    ("sync", r"Synchronize|StreamWaitEvent|EventQuery|StreamQuery|StreamWaitValue"),
    (
        "alloc",
        r"Malloc|Free|HostAlloc|MemAlloc|MemPool|MemCreate|MemMap|MemAddress|MemRelease"
        r"|MemUnmap|HostRegister|HostUnregister",
    ),
    ("copy_api", r"Memcpy|Memset|MemPrefetch"),
    ("event_api", r"Event"),
    ("api_other", r""),
)

_OS_WAIT: Final = (
    r"pthread_(?:cond_(?:timed|clock)?wait|mutex_lock|mutex_timedlock|mutex_clocklock|join|timedjoin_np"
    r"|rwlock_\w*lock|barrier_wait|cond_signal|cond_broadcast)|p?poll|ppoll|p?select|epoll_p?wait2?"
    r"|sem_(?:timed|clock|try)?wait|futex|nanosleep|clock_nanosleep|usleep|sleep|sched_yield"
    r"|wait(?:pid|id|3|4)?|sigwait\w*|pause|io_getevents"
)
_OS_IO: Final = (
    r"p?(?:read|write)v?(?:64)?2?|open(?:at)?(?:64)?|close|fopen(?:64)?|fclose|fcntl|fflush|fgets|fread"
    r"|fwrite|fputs|fputc|putc|getc|getline|fseek\w*|ioctl|mmap(?:64)?|munmap|mprotect|madvise|socket"
    r"|socketpair|bind|listen|accept4?|connect|sendto|sendmm?sg|recvfrom|recvmm?sg|sendfile(?:64)?"
    r"|shutdown|pipe2?|dup[23]?|fsync|fdatasync|stat(?:64)?|fstat(?:64)?|lstat(?:64)?|backtrace"
    r"|pthread_create|fork|vfork|execve?|shm_open|shm_unlink|unlink|readlink|opendir|lockf"
)

_P2P: Final = r"p(?:eer)?[ -]?to[ -]?p(?:eer)?|peer"
_HOST: Final = r"h(?:ost)?"
_DEV: Final = r"d(?:ev(?:ice)?)?"
_TO: Final = r"[ -]?to[ -]?"
_COPY: Final = r"(?:mem)?cpy|copy"

# Everything else, looked at in lower case.
_TABLE: Final = (
    (
        "step",
        r"^(?:execute_(?:context_generation|new_cached|model)|step\[\w+\]|run_batch \w+"
        r"|_forward_step|executestep|profilerstep|(?:\w+[ _.])?(?:iteration|iter))$|^\w+_step$",
    ),
    ("elementwise", r"^reformatting copynode"),
    (
        "module",
        r"^/|^nn\.module: |^(?:[\w-]+\.)*[\w-]+\.\d+(?:\.[\w-]+)*$|^model(?:\.[\w-]+)*$"
        r"|^(?:lm_head|norm|embed_tokens)$",
    ),
    ("python", r"\.py: |^<built-in |^<(?:string|frozen [\w.]+|stdin)>|^<eval"),
    ("os_wait", rf"^(?:{_OS_WAIT})$"),
    ("os_io", rf"^(?:{_OS_IO})$"),
    # inductor names a kernel after all that feeds it and all that it feeds: only its kind is sure
    ("softmax", r"^triton_\w*softmax"),
    ("norm", r"^triton_(?:red|per)_fused\w*(?:norm|rsqrt|mean)"),
    ("activation", r"^triton_poi_fused\w*(?:gelu|silu|sigmoid|relu|tanh)"),
    ("reduce", r"^triton_(?:red|per)_"),
    ("elementwise", r"^triton_poi_"),
    ("triton", r"^triton_"),
    ("gemm", r"xmma_|scudnn|tensorop_|^nvjet|^cijk_|^igemm|^\w*[shdzi]gemm_|winograd"),
    ("memset", r"^memset|fillbuffer"),
    ("memcpy_p2p", rf"^(?:{_COPY})[ _]*(?:{_P2P})"),
    ("memcpy_h2d", rf"^(?:{_COPY})[ _]*{_HOST}{_TO}{_DEV}\b"),
    ("memcpy_d2h", rf"^(?:{_COPY})[ _]*{_DEV}{_TO}{_HOST}\b"),
    ("memcpy_d2d", rf"^(?:{_COPY})[ _]*{_DEV}{_TO}{_DEV}\b|^memcpy"),
    ("graph", r"^cuda graph|^hip graph"),
    (
        "sync",
        r"^(?:context|event|stream|device) sync|^stream wait event|^synchronize(?:stream)?$"
        r"|waitonevent$|_cuda_synchronize$",
    ),
    ("event_api", r"^recordevent$"),
    ("copy_api", r"^enqueuecommand memcpy"),
    ("api_other", r"^buffer flush$|^launch failure|^activity buffer|^instrumentation$"),
    ("barrier", r"barrier"),
    ("reduce_scatter", r"reduce_?scatter"),
    (
        "all_to_all",
        r"all_?to_?all|all2all|deep_?ep.*(?:dispatch|combine)|nvshmem.*(?:dispatch|combine)"
        r"|^(?:intranode|internode)(?:_ll)?::",
    ),
    ("all_gather", r"all_?gather"),
    ("all_reduce", r"all_?reduce|cross_device_reduce|multimem_.*reduce|lamport.*reduce"),
    (
        "broadcast",
        r"^nccl\w*?broadcast|^(?:c10d::|gloo:|nccl:|mpi_)?_?b(?:road)?cast(?:_?oop|_)?$"
        r"|ncclbcast|broadcast_coalesced",
    ),
    (
        "send_recv",
        r"^nccl\w*?(?:send|recv)|send_?recv|^(?:c10d::|gloo:|nccl:|mpi_i?)?(?:send|recv)_?$",
    ),
    ("launch", r"::culaunchkernel$"),
    (
        "sampling",
        r"(?:^|[^p])sampl|top_?k_?top_?p|top_?p_|argmax|multinomial|apply_penalt|min_p|gumbel"
        r"|rejection|resolve_future_token|logits_process|bitmask",
    ),
    (
        "moe",
        r"moe|expert|routing|topk_?gating|topksoftmax|_topk_forward|grouped_?topk|token_permut"
        r"|permute_tokens|matmul_ogs|finalize_matmul_scatter|expand_?input_?rows|bitmatrix",
    ),
    ("attention", r"fmha|(?:decode|prefill)withpagedkv"),
    (
        "kv_cache",
        r"kv_?cache|reshape_and_cache|kv_?indices|cache_kernel|copy_blocks|swap_blocks"
        r"|paged_copy|concat_and_cache|append_?paged|slot_mapping",
    ),
    (
        "attention",
        r"attention|attn|fmha|mha_|flash|mla_|_mla|mhafwd|splitkv|mergestates|merge_attn"
        r"|page[d_]*(?:kv|prefill|decode)|batch(?:decode|prefill)",
    ),
    ("rope", r"rope|rotary"),
    ("norm", r"rms_?norm|layer_?norm"),
    ("softmax", r"soft_?max"),
    (
        "quant",
        r"(?:^|[^n])quant|_fp8|fp8_cast|to_fp8|_hfp8_|scaled_cast|mxfp4_cast|per_token_group",
    ),
    (
        "norm",
        r"norm(?:$|[^a]|ali)|rowwisemoments|gammabeta|layer_?norm|mean_mul_pow_rsqrt|bn_(?:fw|bw)|welford"
        r"|fusedparams|internalgradients|rmsnorm|mean.*rsqrt",
    ),
    (
        "embedding",
        r"embedding|vocab_parallel|gather_kernel|indexselect|index_select"
        r"|vectorized_gather",
    ),
    (
        "activation",
        r"gelu|silu|swiglu|relu|act_and_mul|sigmoid|tanh|activation|threshold|swish|mish"
        r"|softplus|elu_kernel|^aten::elu",
    ),
    ("elementwise", r"nchwtonhwc|nhwctonchw|scalepacked|subtensorop"),
    (
        "gemm",
        r"^dot_kernel|(?:^|[^b])gemm|gemv|nvjet|cijk_|matmul|\bmm_|cublas|cutlass|::(?:mm|bmm|addmm|baddbmm|addmv"
        r"|linear|einsum|dot|mv|_scaled_mm)_?$|xmma|wgmma|tensorop|conv|wgrad|dgrad|winograd"
        r"|scudnn|cudnn|cask|miopen|splitkreduce|im2col|im2d2col|deep_?gemm|machete|marlin"
        r"|bk0mk1|_mm_|wkv",
    ),
    (
        "reduce",
        r"reduce|::(?:sum|mean|max|min|norm|var|std|amax|amin|prod|any|all|cumsum)_?$|scan"
        r"|cumsum|nll_loss|::sort|sort|histogram|(?:avg|average|max)_?pool|searchsorted|loss",
    ),
    (
        "elementwise",
        r"elementwise|multi_tensor_apply|functor|catarray|transpose|(?:^|[^e])fill|arange|copy"
        r"|scatter|gather|dropout|pointwise"
        r"|triton_poi|clamp|where|pad|::(?:add|sub|mul|div|neg|pow|exp|log|sqrt|rsqrt"
        r"|abs|eq|ne|gt|lt|ge|le|cat|stack|to|_to_copy|clone|zero_|zeros|ones|cos|sin"
        r"|masked_\w+|type_as|contiguous|index|index_put_|minimum|maximum|repeat|isnan)_?$"
        r"|add_one|upsample|^scal_kernel",
    ),
    ("triton", r"triton"),
)


def families(operators: pa.Array) -> pa.Array:
    """Give the family of each operator, in order; "other" where no pattern fits."""
    call = pc.match_substring_regex(operators, _CALL)
    lower = pc.utf8_lower(operators)
    given = pc.if_else(call, _first(_API_TABLE, operators, call), None)
    return pc.coalesce(given, _first(_TABLE, lower, pc.invert(call)), OTHER)


def _first(table: tuple[tuple[str, str], ...], texts: pa.Array, wanted: pa.Array) -> pa.Array:
    """Give the family of the first pattern that fits, null outside of `wanted` and without one."""
    found = np.full(len(texts), -1, np.int16)
    left = np.flatnonzero(wanted.to_numpy(zero_copy_only=False))
    for place, (_, pattern) in enumerate(table):
        rest = texts.take(pa.array(left))
        fits = pc.match_substring_regex(rest, pattern).to_numpy(zero_copy_only=False)
        found[left[fits]] = place
        left = left[~fits]
        if not len(left):
            break
    names = pa.array([family for family, _ in table], pa.string())
    return names.take(pa.array(found, mask=found < 0))


_CALL: Final = r"^(?:cuda|cu|hip)[A-Z]\w*$"
