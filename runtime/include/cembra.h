/* What programs in C (C11 or later, C++11 or later) need to run models that `cembra build` compiled ahead of time.
 *
 * Link the object file of each model with the static library of `cembra-runtime`, and nothing else of cembra. The header
 * that `cembra build --header` writes declares the model's structs and functions; this one what models share.
 *
 * An evaluator belongs to one thread at a time; different evaluators run side by side. Functions do not allocate during
 * an evaluation that finishes, and never exit or throw. Pointers are valid and not null unless a comment says otherwise. */
#ifndef CEMBRA_H
#define CEMBRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define CEMBRA_ASSERT(condition, message) static_assert(condition, message)
#else
#define CEMBRA_ASSERT(condition, message) _Static_assert(condition, message)
#endif

/* UTF-8 text and bytes, in memory of the caller's that stays as it is until the results are used. Not ended by a zero;
 * `ptr` may be anything if `len` is 0. Text that is not UTF-8 is undefined behaviour. */
typedef struct { const char *ptr; size_t len; } cembra_text;
typedef struct { const uint8_t *ptr; size_t len; } cembra_bytes;

/* The only value of UNIT; what it holds does not matter. */
typedef uint8_t cembra_unit;

/* A condition: present or missing. */
typedef struct { bool present; } cembra_mask;

/* Values that may be missing. The value of what is missing is never looked at, and unspecified in results. */
typedef struct { bool present; bool value; } cembra_optional_bool;
typedef struct { bool present; int32_t value; } cembra_optional_i32;
typedef struct { bool present; int64_t value; } cembra_optional_i64;
typedef struct { bool present; uint64_t value; } cembra_optional_u64;
typedef struct { bool present; float value; } cembra_optional_f32;
typedef struct { bool present; double value; } cembra_optional_f64;
typedef struct { bool present; cembra_text value; } cembra_optional_text;
typedef struct { bool present; cembra_bytes value; } cembra_optional_bytes;

CEMBRA_ASSERT(sizeof(void *) == 8 && sizeof(size_t) == 8, "cembra needs a 64-bit target");
CEMBRA_ASSERT(sizeof(bool) == 1 && sizeof(float) == 4 && sizeof(double) == 8, "unexpected sizes of scalars");
CEMBRA_ASSERT(sizeof(cembra_optional_bool) == 2 && sizeof(cembra_optional_f32) == 8, "unexpected layout");
CEMBRA_ASSERT(sizeof(cembra_optional_f64) == 16 && sizeof(cembra_optional_text) == 24, "unexpected layout");

/* Statuses. A positive one other than CEMBRA_FAULT is why there is no evaluator: `cembra_status_message` says more. */
enum {
    CEMBRA_OK = 0,
    /* An evaluation stopped at a fault; `cembra_evaluator_fault` tells it. The output is as it was. */
    CEMBRA_FAULT = 1,
    /* The object file was made for another version of the runtime, or one that is laid out otherwise. */
    CEMBRA_REVISION = 2,
    /* The thread flushes subnormal numbers or does not round to nearest (-ffast-math does so): results would differ. */
    CEMBRA_FLOAT_MODE = 3
};

/* The ways an evaluation can fail. */
enum {
    CEMBRA_FAULT_DIVISION_BY_ZERO = 1,
    CEMBRA_FAULT_CAST_RANGE = 2,
    CEMBRA_FAULT_MISSING_VALUE = 3,
    CEMBRA_FAULT_ASSERTION = 4,
    CEMBRA_FAULT_ARENA_LIMIT = 5,
    CEMBRA_FAULT_INVALID = 6,
    CEMBRA_FAULT_PARSE = 7,
    CEMBRA_FAULT_CANCELLED = 8,
    CEMBRA_FAULT_ITERATION_LIMIT = 9,
    CEMBRA_FAULT_INDEX_RANGE = 10,
    CEMBRA_FAULT_WORK_LIMIT = 11,
    CEMBRA_FAULT_SIZE_MISMATCH = 12,
    CEMBRA_FAULT_DEADLINE = 13,
    CEMBRA_FAULT_TIME_RANGE = 14
};

typedef struct cembra_model cembra_model;
typedef struct cembra_evaluator cembra_evaluator;
typedef struct cembra_cancellation cembra_cancellation;

typedef struct {
    /* One of CEMBRA_FAULT_*. */
    uint32_t kind;
    /* Where the operator stands in the text of the model, in bytes; both 0 if that is not known. */
    uint32_t start, end;
    uint32_t unused;
    /* Bits of operands, depending on the kind. */
    uint64_t operands[2];
    /* The operator; empty for an evaluation that was cancelled. */
    cembra_text operator_name;
    /* The fault in words. */
    cembra_text message;
} cembra_fault;

CEMBRA_ASSERT(sizeof(cembra_fault) == 64 && offsetof(cembra_fault, operator_name) == 32, "unexpected layout");

/* Makes an evaluator; returns a status, and null in `evaluator` if it is not CEMBRA_OK. */
int32_t cembra_evaluator_new(const cembra_model *model, cembra_evaluator **evaluator);
/* Frees an evaluator; nothing happens for null. */
void cembra_evaluator_free(cembra_evaluator *evaluator);
/* Evaluates the model on its structs of inputs and outputs: use the typed function of the model's own header. */
int32_t cembra_evaluate(cembra_evaluator *evaluator, const void *input, void *output);
/* Tells the last fault; false if there was none. Its texts are valid until the evaluator is used again. */
bool cembra_evaluator_fault(const cembra_evaluator *evaluator, cembra_fault *fault);
/* Allows so many rounds of loops in each evaluation; without it, ten million. */
void cembra_evaluator_set_loop_rounds(cembra_evaluator *evaluator, uint64_t limit);
/* The evaluations to come end with CEMBRA_FAULT_CANCELLED once this token is cancelled; null takes it away. */
void cembra_evaluator_set_cancellation(cembra_evaluator *evaluator, const cembra_cancellation *token);

cembra_cancellation *cembra_cancellation_new(void);
/* Cancels a token, from any thread. It stays cancelled. */
void cembra_cancellation_cancel(const cembra_cancellation *token);
/* Frees a token, also while evaluators look at it; nothing happens for null. */
void cembra_cancellation_free(cembra_cancellation *token);

/* The short name of a kind of fault, such as `div-by-zero`; empty for a number that is none. */
cembra_text cembra_fault_name(uint32_t kind);
/* Why there is no evaluator; empty for CEMBRA_OK and CEMBRA_FAULT. */
cembra_text cembra_status_message(int32_t status);

#ifdef __cplusplus
}
#endif

#endif
