// The density matrix of a disordered chain by purification with DBCSR, on one rank: the matrix, the steps and what is printed are those of
// `docs/examples/tiles/purify.rs` with arguments. `dbcsr_purify SITES TILE EPSILON`, where EPSILON is the Frobenius norm below which blocks are left
// out. `purify.py` compiles and runs it where DBCSR and MPI are installed.

#include <dbcsr.h>
#include <mpi.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

double element(long row, long column) {
    if (row == column) {
        const double disorder = static_cast<double>(row * 7919 % 104729) / 104729.0 - 0.5;
        return (row % 2 == 0 ? 2.0 : -2.0) + disorder;
    }
    return -0.6 * std::exp(-static_cast<double>(std::labs(row - column)) / 0.7);
}

struct Matrices {
    dbcsr_distribution distribution;
    std::vector<int> sizes;
    double epsilon;

    dbcsr_matrix empty(const char* name) const {
        const int type = dbcsr_type_real_8, blocks = static_cast<int>(sizes.size());
        dbcsr_matrix matrix = nullptr;
        c_dbcsr_create_new(&matrix, name, distribution, dbcsr_type_no_symmetry, sizes.data(), blocks, sizes.data(), blocks, nullptr, &type,
                           nullptr, nullptr, nullptr, nullptr);
        return matrix;
    }

    // The blocks of a multiple of the chain, and a number on its diagonal, whose norms are large enough.
    dbcsr_matrix chain(int tile, double factor, double diagonal) const {
        dbcsr_matrix matrix = empty("h");
        std::vector<double> block(static_cast<std::size_t>(tile) * tile);
        for (int row = 0; row < static_cast<int>(sizes.size()); ++row) {
            for (int column = 0; column < static_cast<int>(sizes.size()); ++column) {
                double squares = 0.0;
                for (int j = 0; j < tile; ++j) {
                    for (int i = 0; i < tile; ++i) {
                        const long at[2] = {static_cast<long>(row) * tile + i, static_cast<long>(column) * tile + j};
                        const double value = factor * element(at[0], at[1]) + (at[0] == at[1] ? diagonal : 0.0);
                        block[static_cast<std::size_t>(j) * tile + i] = value;
                        squares += value * value;
                    }
                }
                if (std::sqrt(squares) >= epsilon) {
                    c_dbcsr_put_block2d_d(matrix, row, column, block.data(), tile, tile, nullptr, nullptr);
                }
            }
        }
        c_dbcsr_finalize(matrix);
        return matrix;
    }

    dbcsr_matrix copy(dbcsr_matrix of) const {
        dbcsr_matrix made = nullptr;
        c_dbcsr_copy(&made, of, "copy", nullptr, nullptr, nullptr, nullptr);
        return made;
    }

    dbcsr_matrix product(dbcsr_matrix a, dbcsr_matrix b) const {
        dbcsr_matrix made = empty("c");
        c_dbcsr_finalize(made);
        long long flops = 0;
        c_dbcsr_multiply_d(dbcsr_no_transpose, dbcsr_no_transpose, 1.0, a, b, 0.0, made, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                           nullptr, &epsilon, &flops);
        return made;
    }
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: dbcsr_purify SITES TILE EPSILON\n");
        return 2;
    }
    const int sites = std::atoi(arguments[1]), tile = std::atoi(arguments[2]);
    const double epsilon = std::atof(arguments[3]);
    MPI_Init(&count, &arguments);
    const int extents[2] = {1, 1}, periods[2] = {1, 1};
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 0, &grid);
    c_dbcsr_init_lib(MPI_COMM_WORLD, nullptr);
    const int blocks = sites / tile;
    std::vector<int> owners(blocks, 0);
    dbcsr_distribution distribution = nullptr;
    c_dbcsr_distribution_new(&distribution, grid, owners.data(), blocks, owners.data(), blocks);
    const Matrices matrices{distribution, std::vector<int>(blocks, tile), epsilon};
    dbcsr_matrix h = matrices.chain(tile, 1.0, 0.0);
    dbcsr_matrix p = matrices.chain(tile, -1.0 / 7.0, 0.5);
    const auto start = std::chrono::steady_clock::now();
    double distance = 0.0, energy = 0.0;
    int steps = 0;
    while (true) {
        dbcsr_matrix q = matrices.product(p, p);
        dbcsr_matrix difference = matrices.copy(q);
        c_dbcsr_add_d(difference, p, 1.0, -1.0);
        distance = c_dbcsr_frobenius_norm(difference, nullptr);
        c_dbcsr_release(&difference);
        if (distance < 1e-6 || steps == 40) {
            c_dbcsr_dot_d(p, h, &energy);
            c_dbcsr_release(&q);
            break;
        }
        dbcsr_matrix cubed = matrices.product(q, p);
        // 3 q - 2 q p.
        c_dbcsr_add_d(q, cubed, 3.0, -2.0);
        c_dbcsr_filter(q, &epsilon, nullptr, nullptr, nullptr);
        c_dbcsr_release(&cubed);
        c_dbcsr_release(&p);
        p = q;
        ++steps;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double filled = static_cast<double>(c_dbcsr_get_num_blocks(p)) / (static_cast<double>(blocks) * blocks);
    std::printf("%.3f %d %.4f %.15e %e\n", seconds, steps, filled, energy, distance);
    c_dbcsr_release(&p);
    c_dbcsr_release(&h);
    c_dbcsr_distribution_release(&distribution);
    c_dbcsr_finalize_lib();
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
