/* The compiler of cembra for programs in C (C11 or later) and C++ (C++11 or later): it compiles the texts of models, and evaluates models on rows,
 * columns, Arrow tables, arrays and tensors. Link `libcembra.so` or `libcembra.a`. Models that were compiled ahead of time need `cembra.h` alone.
 *
 * Rules for all functions:
 *
 * - A function that can fail returns an error object, or null for success. The caller must free the error. A function that fails changes no output.
 * - Handles are opaque. A caller that receives a handle through a pointer to a pointer must free it with the `_free` function of its type. Every
 *   `_free` function accepts null.
 * - A pointer must not be null, unless its comment allows it. For null, a function returns an error with the code `argument`, or if it returns no
 *   errors, the value that its comment gives for null.
 * - These are errors with the code `argument` too: an address or a stride that is not aligned for its values, memory of more than PTRDIFF_MAX bytes,
 *   a number that an enum does not have, counts that do not match, and text that is not UTF-8. The library cannot check that a pointer points to
 *   existing memory, or that a handle is not freed yet: without these, the behaviour is undefined.
 * - Texts are passed as `cembra_text`. A text need not end with a zero, and may contain zeros. The library copies the texts that it needs later.
 *   Texts that the library returns are views; the comment of each function says how long they are valid.
 * - No function unwinds or ends the process, except if the system has no memory for a few bytes. A defect of the library is an error with the code
 *   `internal`, and prints a message on standard error.
 * - Programs and tokens may be used by several threads at once. A session, a set of options and an error must be used by one thread at a time. */
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

/* The revision of this header. It is raised with every change after which programs must be compiled again. */
#define CEMBRA_ABI_VERSION 1u

/* Returns the revision of the loaded library. A program that loads the library at run time must compare it with CEMBRA_ABI_VERSION. */
uint32_t cembra_abi_version(void);
/* Returns the version of the library, such as `0.1.0`. The text is valid until the process ends. */
cembra_text cembra_version(void);

/* A compiled model. Threads may share it. */
typedef struct cembra_program cembra_program;
/* The memory and the options for evaluating a program, for one thread at a time. A session can be used after its program is freed. */
typedef struct cembra_session cembra_session;
/* The options for compiling a model. */
typedef struct cembra_options cembra_options;
/* An error, or the warnings about a text: a list of one or more problems. */
typedef struct cembra_error cembra_error;

/* ---- Errors ---- */

/* A problem that an error lists. Its texts are valid until the error is freed. */
typedef struct {
    /* The kind of problem, the same in all versions: `type-mismatch`. */
    cembra_text code;
    cembra_text message;
    /* The place of the problem in the text of the model: the offsets in bytes of its start and its end. Both are 0 if `line` is 0. */
    uint32_t start, end;
    /* The line of the start of the place, and the character in that line, both counted from 1; both are 0 if the problem has no place. */
    uint32_t line, column;
} cembra_problem;

CEMBRA_ASSERT(sizeof(cembra_problem) == 48, "unexpected layout");

/* Frees an error, and all texts that were returned for it. */
void cembra_error_free(cembra_error *error);
/* Returns the code of the error, which is the same in all versions: `div-by-zero`, `argument`. Valid until the error is freed; empty for null. */
cembra_text cembra_error_code(const cembra_error *error);
/* Returns the message of the error, in one line. Valid until the error is freed; empty for null. */
cembra_text cembra_error_message(const cembra_error *error);
/* Returns the error as several lines for people: each problem with excerpts of the text, marks and hints. Valid until the error is freed; empty for
 * null. */
cembra_text cembra_error_rendered(const cembra_error *error);
/* Returns the name of the operator that failed, such as `math.floor_divide`. Valid until the error is freed; empty if no operator failed, and for
 * null. */
cembra_text cembra_error_operator(const cembra_error *error);
/* Returns the number of problems that the error lists, at least 1; 0 for null. */
size_t cembra_error_problem_count(const cembra_error *error);
/* Writes the problem number `index`, counted from 0, to `problem`. Problem 0 has the code and the message of the error. Returns false and writes
 * nothing if there is no such problem. */
bool cembra_error_problem(const cembra_error *error, size_t index, cembra_problem *problem);
/* Writes the number of the row that failed, counted from 0, to `row`. Returns false and writes nothing if the error does not concern a row. */
bool cembra_error_row(const cembra_error *error, size_t *row);
/* Writes the number of the array element that failed, counted from 0, to `element`. Returns false and writes nothing if the error does not concern an
 * element. */
bool cembra_error_element(const cembra_error *error, size_t *element);
/* Writes the fault that ended the evaluation to `fault`, with `operands` 0. Its texts are valid until the error is freed. Returns false and writes
 * nothing for an error that is not a fault. */
bool cembra_error_fault(const cembra_error *error, cembra_fault *fault);

/* ---- Options ---- */

/* The backends, which run models: see `docs/guide/backends.md`. */
enum {
    /* Machine code. Compiling fails if the model or the machine does not allow it. */
    CEMBRA_BACKEND_NATIVE = 1,
    CEMBRA_BACKEND_INTERPRETER = 2,
    /* The interpreter for the first rows, and machine code as soon as it has been compiled in the background. */
    CEMBRA_BACKEND_TIERED = 3,
    /* Machine code if it is possible, else the interpreter. This is the default. */
    CEMBRA_BACKEND_AUTO = 4
};

/* Makes a set of options with the defaults: CEMBRA_BACKEND_AUTO, the default limits, all outputs. Returns null only if the library has a defect. */
cembra_options *cembra_options_new(void);
void cembra_options_free(cembra_options *options);
/* Sets the name that errors use for the text, such as the name of its file. */
CEMBRA_MUST_USE cembra_error *cembra_options_set_name(cembra_options *options, cembra_text name);
/* Sets the type of an input that the text does not declare, as the language writes it: `f64?`. Compiling fails if no input has this name. */
CEMBRA_MUST_USE cembra_error *cembra_options_set_input_type(cembra_options *options, cembra_text name, cembra_text type);
/* Sets the backend: one of CEMBRA_BACKEND_*. */
CEMBRA_MUST_USE cembra_error *cembra_options_set_backend(cembra_options *options, uint32_t backend);
/* Sets a limit on reading, compiling and evaluating. `docs/limits.md` lists the names and units of the limits; `compile_time` is in seconds. */
CEMBRA_MUST_USE cembra_error *cembra_options_set_limit(cembra_options *options, cembra_text name, uint64_t value);
/* Adds an output to the list of outputs to compute, after those that were added before. If no output is added, all outputs are computed. */
CEMBRA_MUST_USE cembra_error *cembra_options_add_output(cembra_options *options, cembra_text name);
/* Adds a file that the text, or another file, may `use`. A name after `use` is relative to the folder in the name of the text that uses it. A file
 * that is added under the name of an earlier one replaces it. */
CEMBRA_MUST_USE cembra_error *cembra_options_add_file(cembra_options *options, cembra_text name, cembra_text text);

/* ---- Programs ---- */

/* Checks a text without compiling it. `options` may be null for the defaults. `warnings` may be null; else it receives an error object that lists the
 * warnings, which the caller must free, or null if there are no warnings. It is written even if the function returns an error. */
CEMBRA_MUST_USE cembra_error *cembra_check(cembra_text text, const cembra_options *options, cembra_error **warnings);
/* Compiles a text, and writes the handle of the program to `program`, or null if compiling fails. `options` may be null for the defaults. Compiling a
 * small model takes tens of microseconds. */
CEMBRA_MUST_USE cembra_error *cembra_compile(cembra_text text, const cembra_options *options, cembra_program **program);
/* Frees a program. Its sessions can still be used. */
void cembra_program_free(cembra_program *program);

/* The kinds of values, which tell their types. */
enum {
    /* No value. For an input of a row or of columns: the input is not given, and gets its default. For an output of columns: the output is not
     * written. */
    CEMBRA_KIND_NONE = 0,
    /* A mask (unit), which is present or missing, and has no value. */
    CEMBRA_KIND_UNIT = 1,
    CEMBRA_KIND_BOOL = 2,
    CEMBRA_KIND_I32 = 3,
    CEMBRA_KIND_I64 = 4,
    CEMBRA_KIND_U64 = 5,
    CEMBRA_KIND_F32 = 6,
    CEMBRA_KIND_F64 = 7,
    /* A day, as `int32_t`: days since 1970-01-01. */
    CEMBRA_KIND_DATE = 8,
    /* A timestamp, as `int64_t`: microseconds since 1970-01-01T00:00:00Z. */
    CEMBRA_KIND_TIMESTAMP = 9,
    /* A duration, as `int64_t`: microseconds. */
    CEMBRA_KIND_DURATION = 10,
    CEMBRA_KIND_TEXT = 11,
    CEMBRA_KIND_BYTES = 12,
    /* In rows only. */
    CEMBRA_KIND_ARRAY = 13,
    /* In rows only. Elements are bool, i32, i64, f32 or f64. */
    CEMBRA_KIND_TENSOR = 14,
    /* In rows only: a value of any other type, such as a struct or a list, as a text in the language. Inputs and outputs of such types have this
     * kind in `cembra_field`. */
    CEMBRA_KIND_LITERAL = 15,
    /* In rows only, for an input that is a struct: a `cembra_struct`, which may be given instead of CEMBRA_KIND_LITERAL. */
    CEMBRA_KIND_STRUCT = 16,
    /* In rows only, for an input that is a list of structs or a dictionary: a `cembra_list`, which may be given instead of CEMBRA_KIND_LITERAL. */
    CEMBRA_KIND_LIST = 17
};

/* The description of an input or an output. Its texts are valid until the program is freed. */
typedef struct {
    cembra_text name;
    /* The type as the language writes it: `f64?`, `[i64]`, `tensor[f32, 2]`. */
    cembra_text type;
    /* The default as the language writes it; empty if there is none. */
    cembra_text default_value;
    /* One of CEMBRA_KIND_*. */
    uint32_t kind;
    /* For an array or a tensor, the kind of its elements, one of CEMBRA_KIND_*; else 0. */
    uint32_t element;
    /* For a tensor, the number of its axes; else 0. */
    uint32_t rank;
    /* True if the value may be missing. */
    bool optional;
    bool has_default;
} cembra_field;

CEMBRA_ASSERT(sizeof(cembra_field) == 64, "unexpected layout");

/* Returns the number of inputs that rows and columns have: those that the outputs need, in the order of the text. 0 for null. */
size_t cembra_program_input_count(const cembra_program *program);
/* Returns the number of outputs; the main output is the first. 0 for null. */
size_t cembra_program_output_count(const cembra_program *program);
/* Writes the description of the input number `index`, counted from 0, to `field`. Returns false and writes nothing if there is no such input. */
bool cembra_program_input(const cembra_program *program, size_t index, cembra_field *field);
/* Writes the description of the output number `index`, counted from 0, to `field`. Returns false and writes nothing if there is no such output. */
bool cembra_program_output(const cembra_program *program, size_t index, cembra_field *field);

/* ---- Sessions ---- */

/* Makes a session of a program, and writes its handle to `session`, or null on failure. */
CEMBRA_MUST_USE cembra_error *cembra_session_new(const cembra_program *program, cembra_session **session);
void cembra_session_free(cembra_session *session);
/* Sets a token for later evaluations of the session: they end with the fault `cancelled` once the token is cancelled. Null removes the token. The
 * caller may free the token while the session uses it. */
CEMBRA_MUST_USE cembra_error *cembra_session_set_cancellation(cembra_session *session, const cembra_cancellation *token);
/* Sets a time limit for each later evaluation of the session: it ends with the fault `deadline` when `milliseconds` have passed since its call began.
 * 0 removes the limit. */
CEMBRA_MUST_USE cembra_error *cembra_session_set_deadline(cembra_session *session, uint64_t milliseconds);
/* Sets a limit for each later evaluation of the session: `arena_bytes`, `array_bytes`, `loop_iterations` or `string_work`. If the limit in the
 * options of the program is lower, that limit applies. */
CEMBRA_MUST_USE cembra_error *cembra_session_set_limit(cembra_session *session, cembra_text name, uint64_t value);
/* Sets the number of threads for later evaluations of the session: 1 by default, and 0 counts as 1. An evaluation that is long enough is divided
 * among threads of the library. Results do not depend on the number. */
CEMBRA_MUST_USE cembra_error *cembra_session_set_threads(cembra_session *session, size_t threads);

/* The treatment of rows that fail. */
enum {
    /* The call fails with the error of the first such row. */
    CEMBRA_ON_ERROR_STOP = 1,
    /* The outputs of such rows are missing, and the session lists the rows. */
    CEMBRA_ON_ERROR_MISSING = 2
};

/* Sets the treatment of rows that fail, in columns and tables: one of CEMBRA_ON_ERROR_*, by default CEMBRA_ON_ERROR_STOP. */
CEMBRA_MUST_USE cembra_error *cembra_session_set_on_error(cembra_session *session, uint32_t on_error);

/* ---- Columns, and elements of arrays ---- */

/* The forms in which the presence of values is given. */
enum {
    /* All values are present. */
    CEMBRA_PRESENCE_ALL = 0,
    /* One byte per value, 0 if the value is missing. */
    CEMBRA_PRESENCE_BYTES = 1,
    /* One bit per value, 0 if the value is missing. The lowest bit of a byte belongs to the first of its values. */
    CEMBRA_PRESENCE_BITS = 2
};

/* Values of one type in the memory of the caller. A truth value is a byte, and any byte but 0 is true. A text is a `cembra_text`. */
typedef struct {
    /* One of CEMBRA_KIND_*, up to CEMBRA_KIND_BYTES. */
    uint32_t kind;
    /* One of CEMBRA_PRESENCE_*. */
    uint32_t presence_form;
    /* The address of the first value, which must be aligned as C requires. Not read, and may be null, for units and if there are no values. */
    const void *data;
    /* The distance between two values in bytes: a multiple of the alignment. It may be negative. If it is 0, all rows share the first value. */
    ptrdiff_t stride;
    /* The address of the first presence byte, or of the byte with the first presence bit. Not read, and may be null, for CEMBRA_PRESENCE_ALL. */
    const uint8_t *presence;
    /* For CEMBRA_PRESENCE_BYTES: the distance between two presence bytes, in bytes. */
    ptrdiff_t presence_stride;
    /* For CEMBRA_PRESENCE_BITS: the number of the first presence bit, counted from the lowest bit of the first byte. */
    size_t presence_bit;
} cembra_column;

/* Memory for the values of an output, described like a `cembra_column`. The distance between two values must be at least their size. The value of a
 * row that is missing is unspecified. */
typedef struct {
    uint32_t kind;
    /* With CEMBRA_PRESENCE_ALL, the call fails if a row of the output is missing. */
    uint32_t presence_form;
    void *data;
    ptrdiff_t stride;
    uint8_t *presence;
    ptrdiff_t presence_stride;
    size_t presence_bit;
} cembra_column_mut;

CEMBRA_ASSERT(sizeof(cembra_column) == 48 && sizeof(cembra_column_mut) == 48, "unexpected layout");

/* Evaluates many rows. There must be a column for each input and each output, in the order of the program. Inputs that are arrays, structs or lists
 * cannot be columns: use `cembra_session_evaluate` or `cembra_session_run_arrow` for them. `inputs` may be null if there are no inputs. Outputs are
 * written after all rows are evaluated, either all outputs or none. So the memory of outputs may overlap that of inputs, but two outputs must not
 * overlap. Texts in outputs are valid until the session is used again. */
CEMBRA_MUST_USE cembra_error *cembra_session_run_columns(cembra_session *session, size_t rows, const cembra_column *inputs, size_t input_count, const cembra_column_mut *outputs, size_t output_count);
/* Returns the number of rows that failed in the last evaluation of columns or of a table with CEMBRA_ON_ERROR_MISSING; 0 for null. */
size_t cembra_session_failed_count(const cembra_session *session);
/* Writes the number of a row that failed to `row`. `index` counts the failed rows from 0. Returns false and writes nothing if fewer rows failed. */
bool cembra_session_failed_row(const cembra_session *session, size_t index, size_t *row);
/* Returns the error of a row that failed, which the caller must free. `index` counts the failed rows from 0. Null if fewer rows failed, and after the
 * first hundred, whose errors alone are stored. */
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
    /* The address of the element whose indices are all 0. May be null if an extent is 0. */
    const void *data;
    /* The extents: the number of indices of each axis. May be null for rank 0. */
    const size_t *extents;
    /* The strides: for each axis, the distance between two indices in ELEMENTS, which may be negative or 0. Null for an input means row-major order:
     * the elements along the last axis are contiguous. */
    const ptrdiff_t *strides;
} cembra_tensor;

CEMBRA_ASSERT(sizeof(cembra_array) == 56 && sizeof(cembra_tensor) == 32, "unexpected layout");

/* The description of a field of a C struct. Fields are found by their names in the model's type; a field that the type does not have is not read. The
 * description is a constant expression, as `offsetof` is, so a program can define it once. */
typedef struct cembra_member {
    cembra_text name;
    /* The kind that the model's type requires: one of CEMBRA_KIND_* up to CEMBRA_KIND_BYTES; CEMBRA_KIND_STRUCT; or CEMBRA_KIND_ARRAY,
     * CEMBRA_KIND_TENSOR or CEMBRA_KIND_LIST for a field of the type `cembra_array`, `cembra_tensor` or `cembra_list`. */
    uint32_t kind;
    /* CEMBRA_PRESENCE_ALL, or CEMBRA_PRESENCE_BYTES if the struct has a byte that is 0 if the value is missing. */
    uint32_t presence_form;
    /* The offset of the value in the struct, in bytes. A truth value is a byte; a text is a `cembra_text`. */
    size_t offset;
    /* For CEMBRA_PRESENCE_BYTES: the offset of the presence byte in the struct, in bytes. */
    size_t presence_offset;
    /* For CEMBRA_KIND_STRUCT: the descriptions of the inner struct's fields, with offsets from the start of the inner struct; else null. */
    const struct cembra_member *members;
    size_t member_count;
} cembra_member;

/* A C struct that is the value of an input: its address, and the descriptions of its fields. */
typedef struct {
    /* The address of the struct, from which the offsets of fields are counted. */
    const void *data;
    const cembra_member *members;
    size_t member_count;
} cembra_struct;

/* C structs that are the value of an input: a list of structs, or the entries of a dictionary. An entry has the fields `key` and `value`. */
typedef struct {
    /* The structs, as values of the kind CEMBRA_KIND_STRUCT: the address of the first struct, and the distance between two structs in bytes. Presence
     * is for lists of optional structs. */
    cembra_column items;
    size_t len;
    const cembra_member *members;
    size_t member_count;
} cembra_list;

CEMBRA_ASSERT(sizeof(cembra_member) == 56 && sizeof(cembra_struct) == 24 && sizeof(cembra_list) == 72, "unexpected layout");

/* Makes a `cembra_member` for the field `field` of the C struct `type`. The field must have the same name in the model. `kind` is one of
 * CEMBRA_KIND_*. */
#define CEMBRA_MEMBER(type, field, kind) { { #field, sizeof #field - 1 }, kind, CEMBRA_PRESENCE_ALL, offsetof(type, field), 0, NULL, 0 }
/* Makes a `cembra_member` like CEMBRA_MEMBER, for a field of a type `cembra_optional_*`. */
#define CEMBRA_OPTIONAL_MEMBER(type, field, kind) { { #field, sizeof #field - 1 }, kind, CEMBRA_PRESENCE_BYTES, offsetof(type, field.value), offsetof(type, field.present), NULL, 0 }
/* Makes a `cembra_member` like CEMBRA_MEMBER, for a field that is a struct. `members` is the array with the descriptions of its fields. */
#define CEMBRA_STRUCT_MEMBER(type, field, members) { { #field, sizeof #field - 1 }, CEMBRA_KIND_STRUCT, CEMBRA_PRESENCE_ALL, offsetof(type, field), 0, members, sizeof members / sizeof members[0] }

/* The value of one input or output of a row. */
typedef struct {
    /* One of CEMBRA_KIND_*. */
    uint32_t kind;
    /* False if the value is missing; then `as` is not read. */
    bool present;
    union {
        bool boolean;
        /* For CEMBRA_KIND_DATE too. */
        int32_t i32;
        /* For CEMBRA_KIND_TIMESTAMP and CEMBRA_KIND_DURATION too. */
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
        /* For CEMBRA_KIND_LITERAL too. */
        cembra_text text;
        cembra_bytes bytes;
        const cembra_array *array;
        const cembra_tensor *tensor;
        const cembra_struct *structure;
        const cembra_list *list;
    } as;
} cembra_value;

CEMBRA_ASSERT(sizeof(cembra_value) == 24 && offsetof(cembra_value, as) == 8, "unexpected layout");

/* Evaluates one row. There must be a value for each input and a place for each output, in the order of the program. A value must have the kind of its
 * input in the program; CEMBRA_KIND_STRUCT and CEMBRA_KIND_LIST are accepted in place of CEMBRA_KIND_LITERAL. A value that is not present, for an
 * input that is not optional, is the error ``input `x` is missing``. Inputs at the end that have defaults may be left out. `inputs` may be null if
 * `input_count` is 0. Inputs are read before outputs are written, so `inputs` and `outputs` may be the same memory. Texts, arrays and tensors in
 * outputs are valid until the session is used again. */
CEMBRA_MUST_USE cembra_error *cembra_session_evaluate(cembra_session *session, const cembra_value *inputs, size_t input_count, cembra_value *outputs, size_t output_count);

/* ---- Arrow ---- */

/* The structs of Arrow's C data interface, as its specification defines them. */
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

/* Sets the types of inputs that the text does not declare, from the columns of a table. A column without an input of its name is ignored. `schema`
 * must be the schema of a struct array. The caller keeps the ownership of `schema`. */
CEMBRA_MUST_USE cembra_error *cembra_options_set_arrow_schema(cembra_options *options, const struct ArrowSchema *schema);
/* Evaluates all rows of a table, which must be a struct array. Its columns are found by the names of inputs. The caller keeps the ownership of
 * `schema`. The function takes the ownership of `table`, unless an argument is null: the table is released when the call ends, also if it fails, or
 * if outputs share its memory, when the outputs are released. A table with a column for each output is written to `made` and `made_schema`; the
 * caller must release it. If the call fails, nothing is returned there (`release` is null). Earlier contents of `made` and `made_schema` are
 * overwritten. The four structs must be different structs. Texts in outputs have the type `utf8`, and arrays are large lists. Numbers of the table
 * are read in place. Offsets and UTF-8 are checked. The sizes of buffers cannot be checked, and must be as Arrow's specification requires. */
CEMBRA_MUST_USE cembra_error *cembra_session_run_arrow(cembra_session *session, struct ArrowArray *table, const struct ArrowSchema *schema, struct ArrowArray *made, struct ArrowSchema *made_schema);

#ifdef __cplusplus
}
#endif

#endif
