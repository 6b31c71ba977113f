/* cembra for C++17: a thin layer over `cembra_compiler.h`, with handles that free themselves, `std::optional`, `std::string_view`, and exceptions
 * instead of errors. The rules about types, ownership and threads are in `cembra_compiler.h`. This header has no functions beyond those of the C
 * interface. */
#ifndef CEMBRA_HPP
#define CEMBRA_HPP

#include "cembra_compiler.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cembra {

/* Converts a text of the library to a `std::string_view`, and back. Nothing is copied. */
inline std::string_view view(cembra_text text) noexcept { return text.len == 0 ? std::string_view() : std::string_view(text.ptr, text.len); }
inline cembra_text text_of(std::string_view text) noexcept { return cembra_text{text.data(), text.size()}; }

/* A place in the text of a model: the bytes from `start` to `end`, and the line and column of the start, counted from 1. */
struct span {
    std::uint32_t start, end, line, column;
};

/* The exception for an error of the library. `what()` is the error as text for people, with excerpts of the model's text. */
class error : public std::exception {
public:
    explicit error(cembra_error *made)
        : code_(cembra::view(cembra_error_code(made))), message_(cembra::view(cembra_error_message(made))),
          rendered_(cembra::view(cembra_error_rendered(made))), operator_(cembra::view(cembra_error_operator(made))) {
        cembra_problem problem;
        if (cembra_error_problem(made, 0, &problem) && problem.line > 0) span_ = span{problem.start, problem.end, problem.line, problem.column};
        std::size_t row;
        if (cembra_error_row(made, &row)) row_ = row;
        cembra_error_free(made);
    }

    const char *what() const noexcept override { return rendered_.c_str(); }
    /* The code of the error, which is the same in all versions: `div-by-zero`. */
    const std::string &code() const noexcept { return code_; }
    const std::string &message() const noexcept { return message_; }
    /* The name of the operator that failed; empty if no operator failed. */
    const std::string &operator_name() const noexcept { return operator_; }
    std::optional<cembra::span> where() const noexcept { return span_; }
    std::optional<std::size_t> row() const noexcept { return row_; }

private:
    std::string code_, message_, rendered_, operator_;
    std::optional<cembra::span> span_;
    std::optional<std::size_t> row_;
};

/* Throws the error that a function of the C interface returned; does nothing for null, which means success. */
inline void check(cembra_error *made) {
    if (made != nullptr) throw error(made);
}

/* The options for compiling a model. */
class options {
public:
    options() : handle_(cembra_options_new()) {}

    options &name(std::string_view name) { return set(cembra_options_set_name(get(), text_of(name))); }
    options &input_type(std::string_view name, std::string_view type) {
        return set(cembra_options_set_input_type(get(), text_of(name), text_of(type)));
    }
    options &backend(std::uint32_t backend) { return set(cembra_options_set_backend(get(), backend)); }
    options &limit(std::string_view name, std::uint64_t value) { return set(cembra_options_set_limit(get(), text_of(name), value)); }
    options &output(std::string_view name) { return set(cembra_options_add_output(get(), text_of(name))); }
    options &file(std::string_view name, std::string_view text) {
        return set(cembra_options_add_file(get(), text_of(name), text_of(text)));
    }
    options &arrow_schema(const ArrowSchema &schema) { return set(cembra_options_set_arrow_schema(get(), &schema)); }

    cembra_options *get() const noexcept { return handle_.get(); }

private:
    options &set(cembra_error *made) {
        check(made);
        return *this;
    }

    struct deleter {
        void operator()(cembra_options *handle) const noexcept { cembra_options_free(handle); }
    };
    std::unique_ptr<cembra_options, deleter> handle_;
};

/* A token that ends the evaluations of the sessions that have it. Any thread may cancel it. */
class cancellation {
public:
    cancellation() : handle_(cembra_cancellation_new()) {}
    void cancel() const noexcept { cembra_cancellation_cancel(handle_.get()); }
    const cembra_cancellation *get() const noexcept { return handle_.get(); }

private:
    struct deleter {
        void operator()(cembra_cancellation *handle) const noexcept { cembra_cancellation_free(handle); }
    };
    std::unique_ptr<cembra_cancellation, deleter> handle_;
};

/* The value of an input or output of a row. It points to the text, array or struct that it is made from, which must exist until the evaluation ends.
 * An output points into the memory of the session. */
class value {
public:
    /* Makes the value of an input that is not given, which gets its default. */
    value() noexcept : raw_{} {}
    explicit value(const cembra_value &raw) noexcept : raw_(raw) {}

    value(bool given) noexcept : raw_(of(CEMBRA_KIND_BOOL)) { raw_.as.boolean = given; }
    value(std::int32_t given) noexcept : raw_(of(CEMBRA_KIND_I32)) { raw_.as.i32 = given; }
    value(std::int64_t given) noexcept : raw_(of(CEMBRA_KIND_I64)) { raw_.as.i64 = given; }
    value(std::uint64_t given) noexcept : raw_(of(CEMBRA_KIND_U64)) { raw_.as.u64 = given; }
    value(float given) noexcept : raw_(of(CEMBRA_KIND_F32)) { raw_.as.f32 = given; }
    value(double given) noexcept : raw_(of(CEMBRA_KIND_F64)) { raw_.as.f64 = given; }
    value(std::string_view given) noexcept : raw_(of(CEMBRA_KIND_TEXT)) { raw_.as.text = text_of(given); }
    value(const char *given) noexcept : value(std::string_view(given)) {}
    value(const cembra_array &given) noexcept : raw_(of(CEMBRA_KIND_ARRAY)) { raw_.as.array = &given; }
    value(const cembra_tensor &given) noexcept : raw_(of(CEMBRA_KIND_TENSOR)) { raw_.as.tensor = &given; }
    value(const cembra_struct &given) noexcept : raw_(of(CEMBRA_KIND_STRUCT)) { raw_.as.structure = &given; }
    value(const cembra_list &given) noexcept : raw_(of(CEMBRA_KIND_LIST)) { raw_.as.list = &given; }

    value(std::optional<std::int32_t> given) noexcept : value(given ? value(*given) : missing(CEMBRA_KIND_I32)) {}
    value(std::optional<std::int64_t> given) noexcept : value(given ? value(*given) : missing(CEMBRA_KIND_I64)) {}
    value(std::optional<std::uint64_t> given) noexcept : value(given ? value(*given) : missing(CEMBRA_KIND_U64)) {}
    value(std::optional<float> given) noexcept : value(given ? value(*given) : missing(CEMBRA_KIND_F32)) {}
    value(std::optional<double> given) noexcept : value(given ? value(*given) : missing(CEMBRA_KIND_F64)) {}
    value(std::optional<bool> given) noexcept : value(given ? value(*given) : missing(CEMBRA_KIND_BOOL)) {}
    value(std::optional<std::string_view> given) noexcept : value(given ? value(*given) : missing(CEMBRA_KIND_TEXT)) {}

    /* Makes a missing value of the kind `kind`, one of CEMBRA_KIND_*. */
    static value missing(std::uint32_t kind) noexcept {
        return value(of(kind, false));
    }
    /* Makes a mask: present if `holds`, else missing. */
    static value unit(bool holds) noexcept {
        return value(of(CEMBRA_KIND_UNIT, holds));
    }
    /* Makes a date from the days since 1970-01-01. */
    static value date(std::int32_t days) noexcept {
        value made(of(CEMBRA_KIND_DATE, true));
        made.raw_.as.i32 = days;
        return made;
    }
    /* Makes a timestamp from the microseconds since 1970-01-01T00:00:00Z. */
    static value timestamp(std::int64_t microseconds) noexcept {
        value made(of(CEMBRA_KIND_TIMESTAMP, true));
        made.raw_.as.i64 = microseconds;
        return made;
    }
    /* Makes a duration from microseconds. */
    static value duration(std::int64_t microseconds) noexcept {
        value made(of(CEMBRA_KIND_DURATION, true));
        made.raw_.as.i64 = microseconds;
        return made;
    }
    /* Makes a byte string, which points to the `count` bytes at `first`. */
    static value bytes(const std::uint8_t *first, std::size_t count) noexcept {
        value made(of(CEMBRA_KIND_BYTES, true));
        made.raw_.as.bytes = cembra_bytes{first, count};
        return made;
    }
    /* Makes a value of any type, such as a struct or a list, from its text in the language. */
    static value literal(std::string_view spelled) noexcept {
        value made(of(CEMBRA_KIND_LITERAL, true));
        made.raw_.as.text = text_of(spelled);
        return made;
    }

    bool present() const noexcept { return raw_.present; }
    std::uint32_t kind() const noexcept { return raw_.kind; }
    const cembra_value &raw() const noexcept { return raw_; }

    /* Returns the value as the C++ type, or `std::nullopt` if it is missing. Throws `std::logic_error` if the value has another kind. */
    std::optional<bool> as_bool() const { return is(CEMBRA_KIND_BOOL) ? std::optional<bool>(raw_.as.boolean) : std::nullopt; }
    std::optional<std::int32_t> as_i32() const { return is(CEMBRA_KIND_I32) ? std::optional<std::int32_t>(raw_.as.i32) : std::nullopt; }
    std::optional<std::int64_t> as_i64() const { return is(CEMBRA_KIND_I64) ? std::optional<std::int64_t>(raw_.as.i64) : std::nullopt; }
    std::optional<std::uint64_t> as_u64() const { return is(CEMBRA_KIND_U64) ? std::optional<std::uint64_t>(raw_.as.u64) : std::nullopt; }
    std::optional<float> as_f32() const { return is(CEMBRA_KIND_F32) ? std::optional<float>(raw_.as.f32) : std::nullopt; }
    std::optional<double> as_f64() const { return is(CEMBRA_KIND_F64) ? std::optional<double>(raw_.as.f64) : std::nullopt; }
    std::optional<std::int32_t> as_date() const { return is(CEMBRA_KIND_DATE) ? std::optional<std::int32_t>(raw_.as.i32) : std::nullopt; }
    std::optional<std::int64_t> as_timestamp() const { return is(CEMBRA_KIND_TIMESTAMP) ? std::optional<std::int64_t>(raw_.as.i64) : std::nullopt; }
    std::optional<std::int64_t> as_duration() const { return is(CEMBRA_KIND_DURATION) ? std::optional<std::int64_t>(raw_.as.i64) : std::nullopt; }
    std::optional<cembra_bytes> as_bytes() const { return is(CEMBRA_KIND_BYTES) ? std::optional<cembra_bytes>(raw_.as.bytes) : std::nullopt; }
    /* Returns true if a mask is present. Throws `std::logic_error` if the value is not a mask. */
    bool holds() const { return is(CEMBRA_KIND_UNIT); }
    std::optional<std::string_view> as_text() const {
        return is(CEMBRA_KIND_TEXT) ? std::optional<std::string_view>(view(raw_.as.text)) : std::nullopt;
    }
    std::optional<std::string_view> as_literal() const {
        return is(CEMBRA_KIND_LITERAL) ? std::optional<std::string_view>(view(raw_.as.text)) : std::nullopt;
    }
    const cembra_array *as_array() const { return is(CEMBRA_KIND_ARRAY) ? raw_.as.array : nullptr; }
    const cembra_tensor *as_tensor() const { return is(CEMBRA_KIND_TENSOR) ? raw_.as.tensor : nullptr; }

private:
    static cembra_value of(std::uint32_t kind, bool present = true) noexcept {
        cembra_value made{};
        made.kind = kind;
        made.present = present;
        return made;
    }

    bool is(std::uint32_t kind) const {
        if (raw_.kind != kind) throw std::logic_error("a value of another kind is asked for");
        return raw_.present;
    }

    cembra_value raw_;
};

/* The description of an input or an output of a program. */
struct field {
    std::string name, type;
    std::uint32_t kind;
    bool optional;
    std::optional<std::string> default_value;
};

/* A compiled model. Threads may share it. */
class program {
public:
    explicit program(std::string_view text, const options &how = options()) {
        cembra_program *made;
        check(cembra_compile(text_of(text), how.get(), &made));
        handle_.reset(made);
    }

    std::vector<field> inputs() const { return fields(cembra_program_input_count(get()), cembra_program_input); }
    std::vector<field> outputs() const { return fields(cembra_program_output_count(get()), cembra_program_output); }
    const cembra_program *get() const noexcept { return handle_.get(); }

private:
    std::vector<field> fields(std::size_t count, bool (*tell)(const cembra_program *, std::size_t, cembra_field *)) const {
        std::vector<field> all;
        all.reserve(count);
        for (std::size_t at = 0; at < count; at++) {
            cembra_field told;
            if (!tell(get(), at, &told)) break;
            std::optional<std::string> given;
            if (told.has_default) given = std::string(view(told.default_value));
            all.push_back(field{std::string(view(told.name)), std::string(view(told.type)), told.kind, told.optional, std::move(given)});
        }
        return all;
    }

    struct deleter {
        void operator()(cembra_program *handle) const noexcept { cembra_program_free(handle); }
    };
    std::unique_ptr<cembra_program, deleter> handle_;
};

/* The memory and the options for evaluating a program, for one thread at a time. */
class session {
public:
    explicit session(const program &of) : outputs_(cembra_program_output_count(of.get())) {
        cembra_session *made;
        check(cembra_session_new(of.get(), &made));
        handle_.reset(made);
    }

    session &cancellation(const cembra::cancellation &token) { return set(cembra_session_set_cancellation(get(), token.get())); }
    session &deadline(std::uint64_t milliseconds) { return set(cembra_session_set_deadline(get(), milliseconds)); }
    session &limit(std::string_view name, std::uint64_t value) { return set(cembra_session_set_limit(get(), text_of(name), value)); }
    session &threads(std::size_t threads) { return set(cembra_session_set_threads(get(), threads)); }
    session &on_error(std::uint32_t on_error) { return set(cembra_session_set_on_error(get(), on_error)); }

    /* Evaluates a row. The outputs, and the memory that they point to, are valid until the session is used again. */
    const std::vector<value> &evaluate(const std::vector<value> &inputs) {
        static_assert(sizeof(value) == sizeof(cembra_value), "a value is what it holds");
        raw_inputs_.clear();
        for (const value &one : inputs) raw_inputs_.push_back(one.raw());
        raw_outputs_.resize(outputs_.size());
        check(cembra_session_evaluate(get(), raw_inputs_.data(), raw_inputs_.size(), raw_outputs_.data(), raw_outputs_.size()));
        for (std::size_t at = 0; at < outputs_.size(); at++) outputs_[at] = value(raw_outputs_[at]);
        return outputs_;
    }

    /* Evaluates `rows` rows, with a column for each input and each output, as `cembra_session_run_columns` does. */
    void run_columns(std::size_t rows, const std::vector<cembra_column> &inputs, const std::vector<cembra_column_mut> &outputs) {
        check(cembra_session_run_columns(get(), rows, inputs.data(), inputs.size(), outputs.data(), outputs.size()));
    }

    /* Returns the numbers of the rows that failed in the last evaluation of columns or of a table with CEMBRA_ON_ERROR_MISSING. */
    std::vector<std::size_t> failed_rows() const {
        std::vector<std::size_t> rows(cembra_session_failed_count(get()));
        for (std::size_t at = 0; at < rows.size(); at++) cembra_session_failed_row(get(), at, &rows[at]);
        return rows;
    }

    cembra_session *get() const noexcept { return handle_.get(); }

private:
    session &set(cembra_error *made) {
        check(made);
        return *this;
    }

    struct deleter {
        void operator()(cembra_session *handle) const noexcept { cembra_session_free(handle); }
    };
    std::unique_ptr<cembra_session, deleter> handle_;
    std::vector<cembra_value> raw_inputs_, raw_outputs_;
    std::vector<value> outputs_;
};

/* Makes a column of contiguous values, all of which are present. The column points to them. */
inline cembra_column column(const std::vector<double> &all) noexcept {
    return cembra_column{CEMBRA_KIND_F64, CEMBRA_PRESENCE_ALL, all.data(), sizeof(double), nullptr, 0, 0};
}
inline cembra_column column(const std::vector<std::int64_t> &all) noexcept {
    return cembra_column{CEMBRA_KIND_I64, CEMBRA_PRESENCE_ALL, all.data(), sizeof(std::int64_t), nullptr, 0, 0};
}
inline cembra_column column(const std::vector<cembra_text> &all) noexcept {
    return cembra_column{CEMBRA_KIND_TEXT, CEMBRA_PRESENCE_ALL, all.data(), sizeof(cembra_text), nullptr, 0, 0};
}
/* Makes the memory for an output column: a value and a presence byte for each row. Both vectors must have one element per row. */
inline cembra_column_mut column(std::vector<double> &all, std::vector<std::uint8_t> &presence) noexcept {
    return cembra_column_mut{CEMBRA_KIND_F64, CEMBRA_PRESENCE_BYTES, all.data(), sizeof(double), presence.data(), 1, 0};
}

/* Makes the value of an input that is a struct. `members` describes the fields of `one`. The result points to both. */
template <class T, std::size_t N> cembra_struct structure(const T &one, const cembra_member (&members)[N]) noexcept {
    return cembra_struct{&one, members, N};
}
/* Makes the value of an input that is a list of structs or a dictionary. `members` describes the fields of each item. The result points to both. */
template <class T, std::size_t N> cembra_list list(const std::vector<T> &items, const cembra_member (&members)[N]) noexcept {
    return cembra_list{{CEMBRA_KIND_STRUCT, CEMBRA_PRESENCE_ALL, items.data(), sizeof(T), nullptr, 0, 0}, items.size(), members, N};
}

} // namespace cembra

#endif
