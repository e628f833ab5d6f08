#include "policy/matrix_product.hpp"

#include <algorithm>
#include <array>
#include <bit>

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#endif

#include "policy/simd.hpp"

namespace cagepool {
namespace {

constexpr std::size_t kTileRows = 4;
constexpr std::size_t kPrefetchedRows = 4;  // ahead; rows are in random order

void prefetch(const float* row, std::size_t columns) {
  constexpr std::size_t kCacheLineFloats = 16;
  for (std::size_t column = 0; column < columns; column += kCacheLineFloats)
    __builtin_prefetch(row + column);
}

/// Where the values of a sparse matrix that are not zero are written, with their columns. Both
/// arrays have room for `kSlack` more than there are: candidates are written before it is known
/// whether they count.
struct SparseOutput {
  std::uint32_t* columns;
  float* values;
};
constexpr std::size_t kSlack = 16;

/// Write the values of a row that are not zero; returns their number.
std::uint32_t write_nonzeros(const float* row, std::size_t columns, const SparseOutput& out) {
  std::uint32_t count = 0;
  for (std::uint32_t column = 0; column < columns; ++column) {
    const float value = row[column];
    out.columns[count] = column;
    out.values[count] = value;
    // Bits without the sign: a comparison of floats takes longer, for it must consider NaN.
    count += (std::bit_cast<std::uint32_t>(value) << 1) != 0 ? 1 : 0;
  }
  return count;
}

#if defined(__x86_64__) && defined(__linux__)
/// The same with the instructions of AVX-512 that move the chosen lanes to the front.
[[gnu::target("arch=x86-64-v4")]] std::uint32_t write_nonzeros_v4(const float* row,
                                                                  std::size_t columns,
                                                                  const SparseOutput& out) {
  std::uint32_t count = 0;
  __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (std::size_t column = 0; column < columns; column += kSlack) {
    const std::size_t left = columns - column;
    const auto present = static_cast<__mmask16>(left >= kSlack ? 0xFFFF : (1U << left) - 1);
    const __m512 values = _mm512_maskz_loadu_ps(present, row + column);
    const __mmask16 nonzero = _mm512_cmp_ps_mask(values, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    _mm512_storeu_ps(out.values + count, _mm512_maskz_compress_ps(nonzero, values));
    _mm512_storeu_si512(out.columns + count, _mm512_maskz_compress_epi32(nonzero, numbers));
    // By the intrinsic: where GCC 12 spills a mask, it reads 4 bytes of the 2 that it stored.
    count += static_cast<std::uint32_t>(std::popcount(_cvtmask16_u32(nonzero)));
    numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(kSlack));
  }
  return count;
}
#endif

using WriteNonzeros = std::uint32_t (*)(const float* row, std::size_t columns,
                                        const SparseOutput& out);

WriteNonzeros write_nonzeros_for_cpu() {
#if defined(__x86_64__) && defined(__linux__)
  if (__builtin_cpu_supports("x86-64-v4")) return write_nonzeros_v4;
#endif
  return write_nonzeros;
}

/// Sums of `kRows` rows and `kVectors` vectors of columns, in registers.
template <class Level, std::size_t kRows, std::size_t kVectors>
class Tile {
 public:
  using Vector = typename Level::Vector;

  inline void load(const MatrixRows<const float>& from, std::size_t row, std::size_t column) {
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t v = 0; v < kVectors; ++v)
        sums_[r][v] = Level::load(from.data + (row + r) * from.stride + column + v * Level::kWidth);
    }
  }

  /// Add the products of one left value per row with a row of the right matrix.
  inline void add(const float* left, std::size_t left_stride, const float* right) {
    std::array<Vector, kVectors> factors;
    for (std::size_t v = 0; v < kVectors; ++v) factors[v] = Level::load(right + v * Level::kWidth);
    for (std::size_t r = 0; r < kRows; ++r) {
      const float value = left[r * left_stride];
      for (std::size_t v = 0; v < kVectors; ++v) sums_[r][v] += value * factors[v];
    }
  }

  inline void store(const MatrixRows<float>& to, std::size_t row, std::size_t column) const {
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t v = 0; v < kVectors; ++v)
        Level::store(sums_[r][v], to.data + (row + r) * to.stride + column + v * Level::kWidth);
    }
  }

 private:
  std::array<std::array<Vector, kVectors>, kRows> sums_;
};

template <class Level, std::size_t kRows, std::size_t kVectors>
inline void multiply_tile(const DenseProduct& product, std::size_t row, std::size_t column) {
  Tile<Level, kRows, kVectors> tile;
  tile.load(product.start, row, column);
  const float* left = product.left + row * product.left_row_stride;
  const float* right = product.right.data + column;
  for (std::size_t term = 0; term < product.depth; ++term) {
    tile.add(left, product.left_row_stride, right);
    left += product.left_depth_stride;
    right += product.right.stride;
  }
  tile.store(product.out, row, column);
}

/// Call `work.operator()<vectors, column>` for the columns, in as few nearly equal parts as tiles
/// allow.
template <class Level, class Work>
inline void for_each_column_part(std::size_t columns, const Work& work) {
  const std::size_t vectors = columns / Level::kWidth;
  const std::size_t parts = (vectors + Level::kTileVectors - 1) / Level::kTileVectors;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = vectors * part / parts;
    const std::size_t column = first * Level::kWidth;
    switch (vectors * (part + 1) / parts - first) {
      case 1:
        work.template operator()<1>(column);
        break;
      case 2:
        work.template operator()<2>(column);
        break;
      case 3:
        work.template operator()<3>(column);
        break;
      case 4:
        if constexpr (Level::kTileVectors >= 4) work.template operator()<4>(column);
        break;
      default:
        if constexpr (Level::kTileVectors >= 5) work.template operator()<5>(column);
    }
  }
}

template <class Level>
inline void multiply_dense(const DenseProduct& shared) {
  const DenseProduct product = shared;  // a local copy: no write of the loop can alias it
  for_each_column_part<Level>(product.columns, [&]<std::size_t kVectors>(std::size_t column) {
    std::size_t row = 0;
    for (; row + kTileRows <= product.rows; row += kTileRows)
      multiply_tile<Level, kTileRows, kVectors>(product, row, column);
    for (; row < product.rows; ++row) multiply_tile<Level, 1, kVectors>(product, row, column);
  });
}

template <class Level>
inline void multiply_sparse(const SparseProduct& product) {
  const SparseRows& left = product.left;
  const float* values = left.values().data();
  const std::uint32_t* columns = left.columns().data();
  const std::size_t rows = left.rows();
  const MatrixRows<const float> right = product.right;
  for_each_column_part<Level>(product.columns, [&]<std::size_t kVectors>(std::size_t column) {
    for (std::size_t row = 0; row < rows; ++row) {
      Tile<Level, 1, kVectors> tile;
      tile.load(product.start, row, column);
      const std::size_t end = left.end(row);
      for (std::size_t term = left.begin(row); term < end; ++term)
        tile.add(&values[term], 0, right.data + columns[term] * right.stride + column);
      tile.store(product.out, row, column);
    }
  });
}

}  // namespace

void multiply(const DenseProduct& product) {
  run_simd([&]<class Level>() { multiply_dense<Level>(product); });
}

void multiply(const SparseProduct& product) {
  run_simd([&]<class Level>() { multiply_sparse<Level>(product); });
}

void SparseRows::assign(std::span<const float> matrix, std::size_t columns,
                        std::span<const std::int64_t> rows) {
  column_count_ = columns;
  starts_.resize(rows.size() + 1);
  if (columns_.size() < rows.size() * columns + kSlack) {
    columns_.resize(rows.size() * columns + kSlack);
    values_.resize(columns_.size());
  }
  const auto row_at = [&](std::size_t i) {
    return &matrix[static_cast<std::size_t>(rows[i]) * columns];
  };
  const WriteNonzeros write = write_nonzeros_for_cpu();
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    starts_[i] = count;
    if (i + kPrefetchedRows < rows.size()) prefetch(row_at(i + kPrefetchedRows), columns);
    count += write(row_at(i), columns, {&columns_[count], &values_[count]});
  }
  starts_[rows.size()] = count;
}

void SparseRows::assign_transposed(const SparseRows& other) {
  column_count_ = other.rows();
  const std::uint32_t count = other.starts_.back();
  if (columns_.size() < count) {
    columns_.resize(count);
    values_.resize(count);
  }
  // Counting sort: starts_[c + 1] is first the number of values of a column, then the place of its
  // next value, and in the end the place behind its last value.
  starts_.assign(other.column_count_ + 1, 0);
  for (std::uint32_t i = 0; i < count; ++i) ++starts_[other.columns_[i] + 1];
  std::uint32_t place = 0;
  for (std::uint32_t& start : std::span(starts_).subspan(1)) {
    const std::uint32_t size = start;
    start = place;
    place += size;
  }
  for (std::size_t row = 0; row < other.rows(); ++row) {
    for (std::size_t i = other.begin(row); i < other.end(row); ++i) {
      const std::uint32_t to = starts_[other.columns_[i] + 1]++;
      columns_[to] = static_cast<std::uint32_t>(row);
      values_[to] = other.values_[i];
    }
  }
}

}  // namespace cagepool
