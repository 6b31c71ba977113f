/* What a delivery costs: a text is compiled, evaluated on one row and on columns, and two errors are told. It shows `cembra_compiler.h` from C;
 * `tariff.cpp` shows the same from C++. */
#include "cembra_compiler.h"

#include <stdio.h>
#include <string.h>

#define ROWS 4

static const char MODEL[] =
    "input weight: f64     # kg\n"
    "input country: text\n"
    "input distance: f64?  # km; missing if the address is not known\n"
    "let rate = if country == \"CH\" then 0.9 else 1.4\n"
    "output price = rate * weight + (distance ?? 500.0) / 100.0\n"
    "output days = to_int64(distance // 400.0) + 1\n"
    "output label = country + \" \" + (if weight > 30.0 then \"heavy\" else \"light\")\n";

static cembra_text text(const char *bytes) {
    cembra_text view = { bytes, strlen(bytes) };
    return view;
}

/* Tells an error and frees it; 1 if there was one. */
static int told(cembra_error *error) {
    if (error == NULL) return 0;
    cembra_text code = cembra_error_code(error), shown = cembra_error_rendered(error);
    printf("%.*s\n", (int)shown.len, shown.ptr);
    cembra_problem problem;
    if (cembra_error_problem(error, 0, &problem) && problem.line > 0)
        printf("(%.*s in line %u, column %u)\n", (int)code.len, code.ptr, (unsigned)problem.line, (unsigned)problem.column);
    cembra_error_free(error);
    return 1;
}

static void one_row(cembra_session *session) {
    cembra_value inputs[3] = {
        { .kind = CEMBRA_KIND_F64, .present = true, .as.f64 = 2.5 },
        { .kind = CEMBRA_KIND_TEXT, .present = true, .as.text = text("CH") },
        { .kind = CEMBRA_KIND_F64, .present = false },
    };
    cembra_value outputs[3];
    if (told(cembra_session_evaluate(session, inputs, 3, outputs, 3))) return;
    printf("one: %.2f", outputs[0].as.f64);
    if (outputs[1].present) printf(", %lld days", (long long)outputs[1].as.i64);
    printf(", %.*s\n", (int)outputs[2].as.text.len, outputs[2].as.text.ptr);
}

struct delivery { double weight; cembra_text country; double distance; uint8_t has_distance; };
struct answer { double price; int64_t days; };

/* Fields of structs are columns whose stride is the size of the struct. */
static void many_rows(cembra_session *session) {
    struct delivery given[ROWS] = {
        { 2.5, text("CH"), 0, 0 }, { 40, text("DE"), 900, 1 }, { 1, text("FR"), 399, 1 }, { 31, text("CH"), 12, 1 },
    };
    struct answer made[ROWS];
    cembra_text labels[ROWS];
    uint8_t has_days[ROWS];
    cembra_column inputs[3] = {
        { .kind = CEMBRA_KIND_F64, .data = &given[0].weight, .stride = sizeof given[0] },
        { .kind = CEMBRA_KIND_TEXT, .data = &given[0].country, .stride = sizeof given[0] },
        { .kind = CEMBRA_KIND_F64, .data = &given[0].distance, .stride = sizeof given[0], .presence_form = CEMBRA_PRESENCE_BYTES,
          .presence = &given[0].has_distance, .presence_stride = sizeof given[0] },
    };
    cembra_column_mut outputs[3] = {
        { .kind = CEMBRA_KIND_F64, .data = &made[0].price, .stride = sizeof made[0] },
        { .kind = CEMBRA_KIND_I64, .data = &made[0].days, .stride = sizeof made[0], .presence_form = CEMBRA_PRESENCE_BYTES,
          .presence = has_days, .presence_stride = 1 },
        { .kind = CEMBRA_KIND_TEXT, .data = labels, .stride = sizeof labels[0] },
    };
    if (told(cembra_session_run_columns(session, ROWS, inputs, 3, outputs, 3))) return;
    for (size_t row = 0; row < ROWS; row++) {
        printf("%zu: %.2f", row, made[row].price);
        if (has_days[row]) printf(", %lld days", (long long)made[row].days);
        printf(", %.*s\n", (int)labels[row].len, labels[row].ptr);
    }
}

int main(void) {
    if (cembra_abi_version() != CEMBRA_ABI_VERSION) return 2;

    cembra_program *program;
    if (told(cembra_compile(text("output price = weight * \"heavy\""), NULL, &program)) != 1) return 3;

    cembra_options *options = cembra_options_new();
    if (told(cembra_options_set_name(options, text("delivery.cem")))) return 4;
    if (told(cembra_compile(text(MODEL), options, &program))) return 5;
    cembra_options_free(options);
    for (size_t at = 0; at < cembra_program_input_count(program); at++) {
        cembra_field field;
        if (cembra_program_input(program, at, &field))
            printf("%.*s: %.*s\n", (int)field.name.len, field.name.ptr, (int)field.type.len, field.type.ptr);
    }

    cembra_session *session;
    if (told(cembra_session_new(program, &session))) return 6;
    cembra_program_free(program);
    one_row(session);
    many_rows(session);
    cembra_value wrong = { .kind = CEMBRA_KIND_BOOL, .present = true, .as.boolean = true };
    cembra_value outputs[3];
    if (!told(cembra_session_evaluate(session, &wrong, 1, outputs, 3))) return 7;
    cembra_session_free(session);
    return 0;
}
