/* Reads parcels from standard input, a line each, and prints what the model says of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parcel.h"

/* `-` stands for what is missing. */
static bool is_missing(const char *word) { return strcmp(word, "-") == 0; }

static void print_fault(parcel_evaluator *evaluator) {
    cembra_fault fault;
    if (cembra_evaluator_fault(parcel_base(evaluator), &fault)) {
        cembra_text name = cembra_fault_name(fault.kind);
        printf("fault %.*s at %" PRIu32 "..%" PRIu32 ": %.*s\n", (int)name.len, name.ptr, fault.start, fault.end,
               (int)fault.message.len, fault.message.ptr);
    }
}

int main(void) {
    parcel_evaluator *evaluator;
    int32_t status = parcel_new(&evaluator);
    if (status != CEMBRA_OK) {
        cembra_text why = cembra_status_message(status);
        fprintf(stderr, "%.*s\n", (int)why.len, why.ptr);
        return 1;
    }
    char weight[64], distance[64], country[64], express[64], per_day[64];
    while (scanf("%63s %63s %63s %63s %63s", weight, distance, country, express, per_day) == 5) {
        parcel_input input = {
            .weight = strtod(weight, NULL),
            .distance = {.present = !is_missing(distance), .value = strtof(distance, NULL)},
            .country = {country, strlen(country)},
            .express = strcmp(express, "true") == 0,
            .per_day = {.present = !is_missing(per_day), .value = strtoll(per_day, NULL, 10)},
        };
        parcel_output output;
        if (parcel_evaluate(evaluator, &input, &output) != CEMBRA_OK) {
            print_fault(evaluator);
            continue;
        }
        printf("%.17g %.*s ", output.price, (int)output.zone.len, output.zone.ptr);
        if (output.days.present) {
            printf("%" PRId64, output.days.value);
        } else {
            printf("-");
        }
        printf(" %s\n", output.heavy.present ? "heavy" : "light");
    }
    parcel_free(evaluator);
    return 0;
}
