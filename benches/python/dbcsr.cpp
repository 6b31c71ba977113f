// Seconds of a product of two block-sparse matrices by DBCSR, on one rank: `dbcsr N TILE SHARE TURNS`. `tiles.py` compiles and runs it where
// DBCSR and MPI are installed. It prints the products of blocks, and the least seconds of some turns.

#include <dbcsr.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

dbcsr_matrix random_matrix(const char* name, dbcsr_distribution distribution, int blocks, int tile, double share, unsigned seed) {
    std::vector<int> sizes(blocks, tile);
    const int type = dbcsr_type_real_8;
    dbcsr_matrix matrix = nullptr;
    c_dbcsr_create_new(&matrix, name, distribution, dbcsr_type_no_symmetry, sizes.data(), blocks, sizes.data(), blocks, nullptr, &type, nullptr,
                       nullptr, nullptr, nullptr);
    if (share > 0.0) {
        std::mt19937_64 random(seed);
        std::uniform_real_distribution<double> uniform(0.0, 1.0);
        std::vector<double> block(static_cast<std::size_t>(tile) * tile);
        for (int row = 0; row < blocks; ++row) {
            for (int column = 0; column < blocks; ++column) {
                if (uniform(random) >= share) {
                    continue;
                }
                std::generate(block.begin(), block.end(), [&] { return uniform(random) - 0.5; });
                c_dbcsr_put_block2d_d(matrix, row, column, block.data(), tile, tile, nullptr, nullptr);
            }
        }
    }
    c_dbcsr_finalize(matrix);
    return matrix;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) {
        std::fprintf(stderr, "usage: dbcsr N TILE SHARE TURNS\n");
        return 2;
    }
    const int n = std::atoi(arguments[1]), tile = std::atoi(arguments[2]), turns = std::atoi(arguments[4]);
    const double share = std::atof(arguments[3]);
    MPI_Init(&count, &arguments);
    const int extents[2] = {1, 1}, periods[2] = {1, 1};
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 0, &grid);
    c_dbcsr_init_lib(MPI_COMM_WORLD, nullptr);
    const int blocks = n / tile;
    std::vector<int> owners(blocks, 0);
    dbcsr_distribution distribution = nullptr;
    c_dbcsr_distribution_new(&distribution, grid, owners.data(), blocks, owners.data(), blocks);
    dbcsr_matrix a = random_matrix("a", distribution, blocks, tile, share, 1);
    dbcsr_matrix b = random_matrix("b", distribution, blocks, tile, share, 2);
    double least = 1e300;
    long long flops = 0;
    for (int turn = 0; turn < turns; ++turn) {
        dbcsr_matrix c = random_matrix("c", distribution, blocks, tile, 0.0, 0);
        const auto start = std::chrono::steady_clock::now();
        c_dbcsr_multiply_d(dbcsr_no_transpose, dbcsr_no_transpose, 1.0, a, b, 0.0, c, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                           nullptr, nullptr, &flops);
        least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        c_dbcsr_release(&c);
    }
    std::printf("%lld %.6f\n", flops / (2LL * tile * tile * tile), least);
    c_dbcsr_release(&a);
    c_dbcsr_release(&b);
    c_dbcsr_distribution_release(&distribution);
    c_dbcsr_finalize_lib();
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
