/* What an NVTX tool must know of NVTX 3: the tables that the headers inside a program hand over,
 * and the structures that they pass. The layout is fixed by the interface and the same in all
 * releases since 3.0, so no header of NVIDIA is needed to build the recorder. */
#ifndef TELLER_NVTX_ABI_H
#define TELLER_NVTX_ABI_H
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

typedef void (*nvtx_function)(void);
typedef const void *(*nvtx_get_table)(uint32_t id);

enum { NVTX_TABLE_CALLBACKS = 1 };
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

typedef struct {
    size_t size;
    int (*module)(int which, nvtx_function ***out, unsigned *count);
} nvtx_callbacks;

enum nvtx_core {
    CORE_MARK_EX = 1, CORE_MARK_A, CORE_MARK_W, CORE_START_EX, CORE_START_A, CORE_START_W,
    CORE_END, CORE_PUSH_EX, CORE_PUSH_A, CORE_PUSH_W, CORE_POP, CORE_CATEGORY_A, CORE_CATEGORY_W,
    CORE_THREAD_A, CORE_THREAD_W,
};
enum nvtx_core2 {
    CORE2_MARK_EX = 1, CORE2_START_EX, CORE2_END, CORE2_PUSH_EX, CORE2_POP, CORE2_RESOURCE,
    CORE2_RESOURCE_END, CORE2_CATEGORY_A, CORE2_CATEGORY_W, CORE2_STRING_A, CORE2_STRING_W,
    CORE2_DOMAIN_A, CORE2_DOMAIN_W, CORE2_DOMAIN_END, CORE2_INITIALIZE,
};

enum { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_UNICODE = 2, NVTX_MESSAGE_REGISTERED = 3 };
enum { NVTX_PAYLOAD_NONE = 0, NVTX_PAYLOAD_LARGEST = 6, NVTX_PAYLOAD_EXT = (int32_t)0xDFBD0009 };

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t payload_count; /* of the payload extension; reserved before it */
    uint64_t payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        const void *registered;
    } message;
} nvtx_attributes;

/* The payload extension: structures of a program's own, described by a schema. */
enum { NVTX_EXT_PAYLOAD = 2, NVTX_SCHEMA_DYNAMIC_SHIFT = 32 };
enum nvtx_payload_slot {
    PAYLOAD_SCHEMA = 0, PAYLOAD_ENUM, PAYLOAD_MARK, PAYLOAD_PUSH, PAYLOAD_POP, PAYLOAD_START,
    PAYLOAD_END, PAYLOAD_ENABLED,
};
enum { /* which fields of the attributes are set; the others hold anything */
    SCHEMA_HAS_NAME = 1 << 1, SCHEMA_HAS_COUNT = 1 << 5, SCHEMA_HAS_SIZE = 1 << 6,
    SCHEMA_HAS_ID = 1 << 8, ENUM_HAS_ID = 1 << 5,
};

typedef struct {
    uint64_t schema;
    size_t size;
    const void *bytes;
} nvtx_payload;

typedef struct {
    uint64_t flags, type;
    const char *name, *description;
    uint64_t detail, offset;
    const void *semantics, *reserved;
} nvtx_schema_entry;

typedef struct {
    uint64_t fields;
    const char *name;
    uint64_t type, flags;
    const nvtx_schema_entry *entries;
    size_t count, size, align;
    uint64_t id;
    void *extension;
} nvtx_schema;

typedef struct {
    uint64_t fields;
    const char *name;
    const void *entries;
    size_t count, size;
    uint64_t id;
    void *extension;
} nvtx_enum;

typedef struct {
    size_t id, count;
    intptr_t *slots;
} nvtx_segment;

typedef struct {
    uint16_t version, size, module, compat;
    size_t count;
    nvtx_segment *segments;
    intptr_t (*get)(uint32_t);
    const void *info;
} nvtx_module;
#endif
