#pragma once
// Products of small matrices, dense and sparse. Every sum is added up in the order of its terms,
// one term after the other, so that results depend neither on the processor nor on the number of
// rows.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cagepool {

/// Rows of matrices are padded to multiples of this many floats.
constexpr std::size_t kRowAlignment = 16;

constexpr std::size_t padded(std::size_t columns) {
  return (columns + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

/// Rows of padded columns.
template <class Float>
struct MatrixRows {
  Float* data;
  std::size_t stride;  // floats from row to row; 0: all rows are the same
};

/// out = start + left * right, for `rows` rows of `columns` padded columns; `start` may be `out`.
struct DenseProduct {
  std::size_t rows;
  std::size_t columns;
  std::size_t depth;
  const float* left;
  std::size_t left_row_stride;    // from row to row
  std::size_t left_depth_stride;  // from term to term of a sum
  MatrixRows<const float> right;
  MatrixRows<const float> start;
  MatrixRows<float> out;
};
void multiply(const DenseProduct& product);

/// A sparse matrix: the values of each row that are not zero, with their columns.
class SparseRows {
 public:
  /// Take the rows of a dense matrix with these indices.
  void assign(std::span<const float> matrix, std::size_t columns,
              std::span<const std::int64_t> rows);
  void assign_transposed(const SparseRows& other);

  std::size_t rows() const { return starts_.size() - 1; }
  std::size_t begin(std::size_t row) const { return starts_[row]; }
  std::size_t end(std::size_t row) const { return starts_[row + 1]; }
  std::span<const std::uint32_t> columns() const { return columns_; }
  std::span<const float> values() const { return values_; }

 private:
  std::size_t column_count_ = 0;
  std::vector<std::uint32_t> starts_ = {0};
  std::vector<std::uint32_t> columns_;  // at least as many as there are values
  std::vector<float> values_;
};

/// out = start + left * right, as `DenseProduct`.
struct SparseProduct {
  const SparseRows& left;
  std::size_t columns;
  MatrixRows<const float> right;
  MatrixRows<const float> start;
  MatrixRows<float> out;
};
void multiply(const SparseProduct& product);

}  // namespace cagepool
