/* The compiler of cembra for programs in C (C11 or later) and C++ (C++11 or later): texts of models are compiled, and evaluated on rows, columns,
 * Arrow tables, arrays and tensors. Link `libcembra.so` or `libcembra.a`. Models that were compiled ahead of time need `cembra.h` alone.
 *
 * What holds for all functions:
 *
 * - A function that can fail returns an error, or null if it did not. The caller frees it. A function that fails changes no output.
 * - Handles are opaque. Whoever gets one through a pointer to a pointer frees it with the function of its name. All `_free` functions take null.
 * - A pointer may be null only where its comment says so. Null elsewhere is an error with the code `argument`, or gives the answer of no handle.
 * - So are an address or a stride that is not aligned for its values, memory of more than PTRDIFF_MAX bytes, a number that is none of an enum's,
 *   counts that do not match, and text that is not UTF-8. What cannot be checked is undefined behaviour: a pointer to memory that is not there,
 *   a handle that was freed.
 * - Texts go in as `cembra_text`, which need not end with a zero and may contain zeros. The library copies what it keeps. Texts that come
 *   out are views: each comment says how long they are valid.
 * - No function unwinds or ends the process, except where the system has no memory for a few bytes. A defect of the library is an error with the
 *   code `internal`, and a message on standard error.
 * - Programs and tokens may be used by several threads at once. A session, a set of options and an error belong to one thread at a time. */
#ifndef CEMBRA_COMPILER_H
#define CEMBRA_COMPILER_H

#include "cembra.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__cplusplus) && __cplusplus >= 201703L
#define CEMBRA_MUST_USE [[nodiscard]]
#elif defined(__GNUC__)
#define CEMBRA_MUST_USE __attribute__((warn_unused_result))
#else
#define CEMBRA_MUST_USE
#endif

/* The revision of this header. It is raised with every change that a compiled program would notice. */
#define CEMBRA_ABI_VERSION 1u

/* The revision that the library has: compare it with CEMBRA_ABI_VERSION where the library is loaded at run time. */
uint32_t cembra_abi_version(void);
/* The version of the library, such as `0.1.0`. It is valid for ever. */
cembra_text cembra_version(void);

/* A model that is compiled. Threads may share it. */
typedef struct cembra_program cembra_program;
/* The memory that evaluations need, for one thread at a time. It keeps what it needs of its program. */
typedef struct cembra_session cembra_session;
/* How to compile a model. */
typedef struct cembra_options cembra_options;
/* What went wrong, or was probably not meant: one problem or several. */
typedef struct cembra_error cembra_error;

/* ---- Errors ---- */

/* One problem. Texts are valid as long as the error. */
typedef struct {
    /* The kind of problem, the same in all versions: `type-mismatch`. */
    cembra_text code;
    cembra_text message;
    /* Where in the text of the model, in bytes. */
    uint32_t start, end;
    /* The line, and the character of it, that the place begins at, from 1; both 0 if there is no place, and then `start` and `end` are too. */
    uint32_t line, column;
} cembra_problem;

CEMBRA_ASSERT(sizeof(cembra_problem) == 48, "unexpected layout");

/* Frees an error, and all texts that it gave. */
void cembra_error_free(cembra_error *error);
/* The kind of error, the same in all versions: `div-by-zero`, `argument`. Valid as long as the error; empty for null. */
cembra_text cembra_error_code(const cembra_error *error);
/* What is wrong, in a line. Valid as long as the error; empty for null. */
cembra_text cembra_error_message(const cembra_error *error);
/* The error for people: each problem with excerpts of the text, marks and hints, in several lines. Valid as long as the error; empty for null. */
cembra_text cembra_error_rendered(const cembra_error *error);
/* The operator that failed, such as `math.floor_divide`. Valid as long as the error; empty if there is none, and for null. */
cembra_text cembra_error_operator(const cembra_error *error);
/* How many problems there are: at least one. 0 for null. */
size_t cembra_error_problem_count(const cembra_error *error);
/* Tells a problem, counted from 0; the first is what the code and the message are about. False, and nothing written, if there is none. */
bool cembra_error_problem(const cembra_error *error, size_t index, cembra_problem *problem);
/* Tells the row that failed, counted from 0. False, and nothing written, for an error that is of no row. */
bool cembra_error_row(const cembra_error *error, size_t *row);
/* Tells the element of arrays that failed, counted from 0. False, and nothing written, for an error that is of none. */
bool cembra_error_element(const cembra_error *error, size_t *element);
/* Tells the fault of an evaluation, with `operands` 0. Texts are valid as long as the error. False, and nothing written, for other errors. */
bool cembra_error_fault(const cembra_error *error, cembra_fault *fault);

/* ---- Options ---- */

/* What runs a model: see `docs/guide/backends.md`. */
enum {
    /* Machine code; compiling fails where there can be none. */
    CEMBRA_BACKEND_NATIVE = 1,
    CEMBRA_BACKEND_INTERPRETER = 2,
    /* The interpreter at first, and machine code once it is compiled in the background. */
    CEMBRA_BACKEND_TIERED = 3,
    /* Machine code where it can be had, else the interpreter: what options begin with. */
    CEMBRA_BACKEND_AUTO = 4
};

/* Makes options: machine code where it can be had, the default limits, all outputs. Null only if the library has a defect. */
cembra_options *cembra_options_new(void);
void cembra_options_free(cembra_options *options);
/* What errors call the text, such as the name of its file. */
CEMBRA_MUST_USE cembra_error *cembra_options_set_name(cembra_options *options, cembra_text name);
/* The type of an input that the text does not declare, as the language spells it: `f64?`. Compiling fails if no input has the name. */
CEMBRA_MUST_USE cembra_error *cembra_options_set_input_type(cembra_options *options, cembra_text name, cembra_text type);
/* One of CEMBRA_BACKEND_*. */
CEMBRA_MUST_USE cembra_error *cembra_options_set_backend(cembra_options *options, uint32_t backend);
/* What reading, compiling and evaluating may take: a limit of `docs/limits.md` by its name, in its unit; `compile_time` in seconds. */
CEMBRA_MUST_USE cembra_error *cembra_options_set_limit(cembra_options *options, cembra_text name, uint64_t value);
/* Computes this output, behind those that were chosen before; without it, all outputs. */
CEMBRA_MUST_USE cembra_error *cembra_options_add_output(cembra_options *options, cembra_text name);
/* Gives a file that the text, or another file, may `use`: its name is found beside the name of the text that uses it. A name given again is replaced. */
CEMBRA_MUST_USE cembra_error *cembra_options_add_file(cembra_options *options, cembra_text name, cembra_text text);

/* ---- Programs ---- */

/* Looks at a text without compiling it. `options` may be null: the default. `warnings` may be null; else it gets what was probably not meant, as an
 * error that the caller frees, or null if there is nothing. It is written whatever the function returns. */
CEMBRA_MUST_USE cembra_error *cembra_check(cembra_text text, const cembra_options *options, cembra_error **warnings);
/* Compiles a text. `options` may be null: the default. `program` gets null if that fails. Takes tens of microseconds for a small model. */
CEMBRA_MUST_USE cembra_error *cembra_compile(cembra_text text, const cembra_options *options, cembra_program **program);
/* Frees a program. Its sessions stay. */
void cembra_program_free(cembra_program *program);

/* The types of values. */
enum {
    /* Nothing: in a row and in columns, an input that is not given and has its default; in columns, an output that nobody wants. */
    CEMBRA_KIND_NONE = 0,
    /* A condition, which is present or missing, and has no value. */
    CEMBRA_KIND_UNIT = 1,
    CEMBRA_KIND_BOOL = 2,
    CEMBRA_KIND_I32 = 3,
    CEMBRA_KIND_I64 = 4,
    CEMBRA_KIND_U64 = 5,
    CEMBRA_KIND_F32 = 6,
    CEMBRA_KIND_F64 = 7,
    /* A day, as `int32_t`: days since 1970-01-01. */
    CEMBRA_KIND_DATE = 8,
    /* A moment, as `int64_t`: microseconds since 1970-01-01T00:00:00Z. */
    CEMBRA_KIND_TIMESTAMP = 9,
    /* A length of time, as `int64_t`: microseconds. */
    CEMBRA_KIND_DURATION = 10,
    CEMBRA_KIND_TEXT = 11,
    CEMBRA_KIND_BYTES = 12,
    /* In rows only. */
    CEMBRA_KIND_ARRAY = 13,
    /* In rows only. Elements are bool, i32, i64, f32 or f64. */
    CEMBRA_KIND_TENSOR = 14,
    /* In rows only: a value of another type, such as a struct or a list, as the language writes it. Inputs and outputs of such types have this
     * kind. */
    CEMBRA_KIND_LITERAL = 15,
    /* In rows, for an input that is a struct: a struct of C, in the place of CEMBRA_KIND_LITERAL. */
    CEMBRA_KIND_STRUCT = 16,
    /* In rows, for an input that is a list of structs or a dictionary: structs of C, in the place of CEMBRA_KIND_LITERAL. */
    CEMBRA_KIND_LIST = 17
};

/* An input or an output. Texts are valid as long as the program. */
typedef struct {
    cembra_text name;
    /* The type as the language spells it: `f64?`, `[i64]`, `tensor[f32, 2]`. */
    cembra_text type;
    /* The default as the language writes it; empty if there is none. */
    cembra_text default_value;
    /* One of CEMBRA_KIND_*. */
    uint32_t kind;
    /* Of an array or a tensor the type of elements, one of CEMBRA_KIND_*; else 0. */
    uint32_t element;
    /* Of a tensor the number of axes; else 0. */
    uint32_t rank;
    /* Whether the value may be missing. */
    bool optional;
    bool has_default;
} cembra_field;

CEMBRA_ASSERT(sizeof(cembra_field) == 64, "unexpected layout");

/* How many inputs rows and columns have: those that the outputs need, in the order of the text. 0 for null. */
size_t cembra_program_input_count(const cembra_program *program);
/* How many outputs there are, the main one first. 0 for null. */
size_t cembra_program_output_count(const cembra_program *program);
/* Tells an input, counted from 0. False, and nothing written, if there is none. */
bool cembra_program_input(const cembra_program *program, size_t index, cembra_field *field);
/* Tells an output, counted from 0. False, and nothing written, if there is none. */
bool cembra_program_output(const cembra_program *program, size_t index, cembra_field *field);

/* ---- Sessions ---- */

/* Makes a session. `session` gets null if that fails. */
CEMBRA_MUST_USE cembra_error *cembra_session_new(const cembra_program *program, cembra_session **session);
void cembra_session_free(cembra_session *session);
/* The evaluations to come end with the fault `cancelled` once the token is cancelled; null takes it away. The token may be freed meanwhile. */
CEMBRA_MUST_USE cembra_error *cembra_session_set_cancellation(cembra_session *session, const cembra_cancellation *token);
/* Each evaluation to come ends with the fault `deadline` `milliseconds` after its call began; 0 takes the deadline away. */
CEMBRA_MUST_USE cembra_error *cembra_session_set_deadline(cembra_session *session, uint64_t milliseconds);
/* What each evaluation to come may take: `arena_bytes`, `array_bytes`, `loop_iterations` or `string_work`, where the options are not lower. */
CEMBRA_MUST_USE cembra_error *cembra_session_set_limit(cembra_session *session, cembra_text name, uint64_t value);
/* Shares the evaluations to come out among `threads` threads of the library's, where they are long enough; 1 is what a session begins with, and
 * 0 is 1. Results do not depend on it. */
CEMBRA_MUST_USE cembra_error *cembra_session_set_threads(cembra_session *session, size_t threads);

/* What becomes of rows that fail. */
enum {
    /* The call fails with the error of the first such row. */
    CEMBRA_ON_ERROR_STOP = 1,
    /* Their outputs are missing, and the session lists them. */
    CEMBRA_ON_ERROR_MISSING = 2
};

/* One of CEMBRA_ON_ERROR_*, for columns and tables; a session begins with CEMBRA_ON_ERROR_STOP. */
CEMBRA_MUST_USE cembra_error *cembra_session_set_on_error(cembra_session *session, uint32_t on_error);

/* ---- Columns, and elements of arrays ---- */

/* How it is said which values are present. */
enum {
    /* All of them are. */
    CEMBRA_PRESENCE_ALL = 0,
    /* A byte for each value, 0 where it is missing. */
    CEMBRA_PRESENCE_BYTES = 1,
    /* A bit for each value, the lowest bit of a byte first, 0 where it is missing. */
    CEMBRA_PRESENCE_BITS = 2
};

/* Values of one type. They lie where C has them: truth values are bytes, and any but 0 is true; texts are `cembra_text`. */
typedef struct {
    /* One of CEMBRA_KIND_*, up to CEMBRA_KIND_BYTES. */
    uint32_t kind;
    /* One of CEMBRA_PRESENCE_*. */
    uint32_t presence_form;
    /* The first value, aligned as C wants it. Not looked at, and may be null, for units and where there are no values. */
    const void *data;
    /* Bytes from one value to the next: a multiple of the alignment. It may be negative; if it is 0, all share the first value. */
    ptrdiff_t stride;
    /* The first byte, or the byte with the first bit. Not looked at, and may be null, for CEMBRA_PRESENCE_ALL. */
    const uint8_t *presence;
    /* Of CEMBRA_PRESENCE_BYTES, bytes from one to the next. */
    ptrdiff_t presence_stride;
    /* Of CEMBRA_PRESENCE_BITS, the number of the first bit, counted from the lowest of the first byte. */
    size_t presence_bit;
} cembra_column;

/* Memory for values of one type: as a `cembra_column`, but that values lie at least as far apart as they are large. The value of a missing row is
 * unspecified. */
typedef struct {
    uint32_t kind;
    /* CEMBRA_PRESENCE_ALL if no row may be missing: then one that is makes the call fail. */
    uint32_t presence_form;
    void *data;
    ptrdiff_t stride;
    uint8_t *presence;
    ptrdiff_t presence_stride;
    size_t presence_bit;
} cembra_column_mut;

CEMBRA_ASSERT(sizeof(cembra_column) == 48 && sizeof(cembra_column_mut) == 48, "unexpected layout");

/* Evaluates many rows: a column for each input and each output, in the order of the program. Inputs that are arrays, structs or lists are for
 * `cembra_session_evaluate` and `cembra_session_run_arrow`. `inputs` may be null if there are none. Outputs are written once all rows are evaluated,
 * all or none, so they may lie over inputs; two outputs may not overlap. Texts that come out are valid until the session is used again. */
CEMBRA_MUST_USE cembra_error *cembra_session_run_columns(cembra_session *session, size_t rows, const cembra_column *inputs, size_t input_count, const cembra_column_mut *outputs, size_t output_count);
/* How many rows of the last columns or table failed, with CEMBRA_ON_ERROR_MISSING; 0 for null. */
size_t cembra_session_failed_count(const cembra_session *session);
/* Tells which row failed, the first at 0. False, and nothing written, if fewer rows failed. */
bool cembra_session_failed_row(const cembra_session *session, size_t index, size_t *row);
/* The error of a failed row, the first at 0, for the caller to free. Null if fewer rows failed, and behind the first hundred. */
CEMBRA_MUST_USE cembra_error *cembra_session_failure(const cembra_session *session, size_t index);

/* ---- Rows ---- */

/* The elements of an array, as the values of a column. */
typedef struct {
    cembra_column elements;
    size_t len;
} cembra_array;

/* The elements of a tensor, all of them present. */
typedef struct {
    /* CEMBRA_KIND_BOOL, I32, I64, F32 or F64. */
    uint32_t element;
    /* The number of axes. */
    uint32_t rank;
    /* The element whose indices are all 0. May be null if an extent is 0. */
    const void *data;
    /* Of each axis, how many indices there are. May be null for rank 0. */
    const size_t *extents;
    /* Of each axis, ELEMENTS from an index to the next; may be negative or 0. Null, of an input: row-major, the last axis closest. */
    const ptrdiff_t *strides;
} cembra_tensor;

CEMBRA_ASSERT(sizeof(cembra_array) == 56 && sizeof(cembra_tensor) == 32, "unexpected layout");

/* A field of a struct of C. Fields are found by the names that the model's type has; fields that it does not have are left alone. Such a
 * description is constant, as `offsetof` is, so a program can write it once. */
typedef struct cembra_member {
    cembra_text name;
    /* One of CEMBRA_KIND_*, the one that the model's type needs: up to CEMBRA_KIND_BYTES; CEMBRA_KIND_STRUCT; or CEMBRA_KIND_ARRAY,
     * CEMBRA_KIND_TENSOR or CEMBRA_KIND_LIST for a field that is a `cembra_array`, `cembra_tensor` or `cembra_list`. */
    uint32_t kind;
    /* CEMBRA_PRESENCE_ALL; or CEMBRA_PRESENCE_BYTES if the struct has a byte that is 0 where the value is missing. */
    uint32_t presence_form;
    /* Bytes from the start of the struct to the value. A truth value is a byte; a text is a `cembra_text`. */
    size_t offset;
    /* Of CEMBRA_PRESENCE_BYTES, bytes from the start of the struct to the byte. */
    size_t presence_offset;
    /* Of CEMBRA_KIND_STRUCT, the fields of the struct, with offsets from its own start; else null. */
    const struct cembra_member *members;
    size_t member_count;
} cembra_member;

/* A struct of C. */
typedef struct {
    /* Its address, from which fields have their offsets. */
    const void *data;
    const cembra_member *members;
    size_t member_count;
} cembra_struct;

/* The structs of a list. Of a dictionary each struct is an entry, with the fields `key` and `value`. */
typedef struct {
    /* Where the structs lie, as values of the kind CEMBRA_KIND_STRUCT: the first one, and the bytes from one to the next. Presence is for lists of
     * optional structs. */
    cembra_column items;
    size_t len;
    const cembra_member *members;
    size_t member_count;
} cembra_list;

CEMBRA_ASSERT(sizeof(cembra_member) == 56 && sizeof(cembra_struct) == 24 && sizeof(cembra_list) == 72, "unexpected layout");

/* A `cembra_member` for the field `field` of the struct `type`, which has its name in the model too; `kind` is one of CEMBRA_KIND_*. */
#define CEMBRA_MEMBER(type, field, kind) { { #field, sizeof #field - 1 }, kind, CEMBRA_PRESENCE_ALL, offsetof(type, field), 0, NULL, 0 }
/* The same for a field that is a `cembra_optional_*`. */
#define CEMBRA_OPTIONAL_MEMBER(type, field, kind) { { #field, sizeof #field - 1 }, kind, CEMBRA_PRESENCE_BYTES, offsetof(type, field.value), offsetof(type, field.present), NULL, 0 }
/* The same for a field that is a struct, whose fields are in the array `members`. */
#define CEMBRA_STRUCT_MEMBER(type, field, members) { { #field, sizeof #field - 1 }, CEMBRA_KIND_STRUCT, CEMBRA_PRESENCE_ALL, offsetof(type, field), 0, members, sizeof members / sizeof members[0] }

/* A value of a row. */
typedef struct {
    /* One of CEMBRA_KIND_*. */
    uint32_t kind;
    /* Whether there is a value; else `as` is not looked at. */
    bool present;
    union {
        bool boolean;
        /* Of CEMBRA_KIND_DATE too. */
        int32_t i32;
        /* Of CEMBRA_KIND_TIMESTAMP and CEMBRA_KIND_DURATION too. */
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
        /* Of CEMBRA_KIND_LITERAL too. */
        cembra_text text;
        cembra_bytes bytes;
        const cembra_array *array;
        const cembra_tensor *tensor;
        const cembra_struct *structure;
        const cembra_list *list;
    } as;
} cembra_value;

CEMBRA_ASSERT(sizeof(cembra_value) == 24 && offsetof(cembra_value, as) == 8, "unexpected layout");

/* Evaluates one row: a value for each input and a place for each output, in the order of the program and of exactly its kinds (a struct or a list of
 * C for CEMBRA_KIND_LITERAL). A value that is not present, for an input that is not optional, is the error ``input `x` is missing``. Inputs at the
 * end that have defaults may be left out. `inputs` may be null if `input_count` is 0. Inputs are read before outputs are written: both may be the
 * same memory. Texts, arrays and tensors that come out are valid until the session is used again. */
CEMBRA_MUST_USE cembra_error *cembra_session_evaluate(cembra_session *session, const cembra_value *inputs, size_t input_count, cembra_value *outputs, size_t output_count);

/* ---- Arrow ---- */

/* The structs of Arrow's C data interface, laid out as its specification says. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

/* The types of inputs that the text does not declare, from the columns of a table; columns that are no inputs are left out. `schema` is that of a
 * struct, and stays the caller's. */
CEMBRA_MUST_USE cembra_error *cembra_options_set_arrow_schema(cembra_options *options, const struct ArrowSchema *schema);
/* Evaluates all rows of a table, a struct array whose columns are found by the names of inputs. `schema` stays the caller's. `table` is taken over:
 * it is released when the call ends, or where outputs share its memory when those are, also if the call fails, except where an argument is null. `made` and `made_schema` get a table with a column for each output, for
 * the caller to release, or nothing (`release` is null) if the call fails; what they held before is overwritten. The four structs are different
 * ones. Texts are `utf8`, arrays large lists.
 * Numbers are read where they lie. Offsets and UTF-8 are checked; sizes of buffers cannot be, and must be as Arrow's specification says. */
CEMBRA_MUST_USE cembra_error *cembra_session_run_arrow(cembra_session *session, struct ArrowArray *table, const struct ArrowSchema *schema, struct ArrowArray *made, struct ArrowSchema *made_schema);

#ifdef __cplusplus
}
#endif

#endif
