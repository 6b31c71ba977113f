// What electricity costs: a tariff is compiled, evaluated on one customer and on columns, and an error is told. It shows `cembra.hpp`, which is for
// C++17; `delivery.c` shows the same interface from C.
#include "cembra.hpp"

#include <cstdio>

static const char tariff[] = R"(
input kwh: f64
input night: f64?        # kWh of them at night; missing without a second meter
input region: text
input discounts: [f64]   # shares
let day = kwh - (night ?? 0.0)
output energy = day * 0.27 + (night ?? 0.0) * 0.19
output total = (energy + (if region == "mountain" then 12.5 else 9.0)) * math.prod(1.0 - discounts)
output saved = night * 0.08
)";

static const char shares[] = R"(
input kwh, total: f64
output share = where(kwh > 0.0, total / kwh)
)";

int main() {
    try {
        cembra::program(R"(input kwh: f64; output total = kwh * rates)");
    } catch (const cembra::error &error) {
        const auto where = error.where();
        std::printf("%s in line %u: %s\n", error.code().c_str(), where ? unsigned(where->line) : 0, error.message().c_str());
    }

    const cembra::program program(tariff, cembra::options().name("tariff.cem"));
    for (const auto &input : program.inputs()) std::printf("%s: %s\n", input.name.c_str(), input.type.c_str());

    cembra::session session(program);
    const double discounts[] = {0.1, 0.05};
    const cembra_array array{{CEMBRA_KIND_F64, CEMBRA_PRESENCE_ALL, discounts, sizeof(double), nullptr, 0, 0}, 2};
    const std::optional<double> nights[] = {std::nullopt, 400.0};
    for (const auto &night : nights) {
        const auto &made = session.evaluate({1200.0, night, "mountain", array});
        const auto saved = made[2].as_f64();
        std::printf("%.2f, saved %s\n", *made[1].as_f64(), saved ? std::to_string(*saved).c_str() : "nothing");
    }

    const cembra::program each(shares);
    cembra::session rows(each);
    const std::vector<double> kwh{1200.0, 0.0, 300.0}, total{340.5, 9.0, 90.0};
    std::vector<double> share(3);
    std::vector<std::uint8_t> has_share(3);
    rows.run_columns(3, {cembra::column(kwh), cembra::column(total)}, {cembra::column(share, has_share)});
    for (std::size_t row = 0; row < share.size(); row++) std::printf("%zu: %s\n", row, has_share[row] ? std::to_string(share[row]).c_str() : "missing");

    const cembra::cancellation token;
    session.cancellation(token);
    token.cancel();
    try {
        session.evaluate({1200.0, nights[1], "plain", array});
    } catch (const cembra::error &error) {
        std::printf("%s\n", error.code().c_str());
    }
    return 0;
}
