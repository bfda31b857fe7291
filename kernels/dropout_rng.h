// Random numbers of dropout. No mask is stored; each kernel recomputes which elements are kept.
//
// Elements are numbered by their position in a training step, not by their address. Row i of sequence s, of at most
// maxLength rows each, is row s · maxLength + i. A row of C elements has ⌈C / 128⌉ units of 128. Element e =
// unit · 128 + part · 16 + lane is kept unless its 16 random bits are below the threshold. Those bits are the half that
// `part` selects of the eight halves of Philox number unit · 16 + lane under the rngState's key. So one Philox number
// serves eight elements. Micro-batches, tiles and padding do not affect the result.
//
// For attention weights a row is (s · H + h) · maxLength + i with maxLength columns, for sequences of at most maxLength
// queries and keys.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

/// How kept elements are scaled. Inverted dropout divides them by the keep probability. Plain dropout does not change
/// them, and multiplies by the keep probability in evaluation.
enum class DropoutKind { inverted, plain };
/// Names of the kinds, in the order of the enumeration.
inline const std::vector<std::string> dropoutKindNames = {"inverted", "plain"};
/// The kind called `text`; throws Error for another text.
DropoutKind dropoutKindNamed(const std::string &text);

/// The dropout probability, rounded to the nearest multiple of 1/65536.
struct DropoutRate {
  double asked = 0; // at least 0 and below 1
  DropoutKind kind = DropoutKind::inverted;

  /// The dropout probability times 65536, rounded.
  int64_t threshold() const;
  /// The keep probability, 1 − threshold / 65536.
  double share() const { return 1 - static_cast<double>(threshold()) / 65536; }
  /// Multiplies the kept elements.
  double scale() const { return kind == DropoutKind::inverted ? 1 / share() : 1; }
  /// Multiplies all elements in evaluation.
  double evaluationScale() const { return kind == DropoutKind::inverted ? 1 : share(); }
  bool operator==(const DropoutRate &) const = default;
};
/// Throws Error unless the probability is at least 0 and below 1.
void verify(const DropoutRate &rate);

/// Dropout at one rngState in one micro-batch, an argument of plans. Values that change from step to step are in device
/// memory.
struct Dropout {
  DropoutRate rate;
  /// (2) i64: the key of the rngState in this step, and the index in the step of the micro-batch's first sequence.
  /// Without it nothing is dropped, and elements are scaled as in evaluation.
  std::optional<TensorRef> rngState = {};
  int64_t time = 1;      // rows of a sequence
  int64_t maxLength = 1; // largest number of rows of any sequence; at least `time`
};

/// Dropout mode of a kernel, a field of its config: none, only scale (evaluation), random.
enum class DropoutMode { off, scale_only, random };
/// Names of the modes, in the order of the enumeration.
inline const std::vector<std::string> dropoutModeNames = {"off", "scale_only", "random"};
DropoutMode chooseDropoutMode(const std::optional<Dropout> &dropout);

/// Dropout as arguments of a kernel, in this order.
struct DropoutArgs {
  View rngState;
  Tile time, maxLength, threshold, scale;
};
/// Texts of the first four in registrations.
inline constexpr const char *aboutDropoutState =
                                "rng_state (2) i64, Philox key of the dropout layer, index of the first sequence",
                            *aboutDropoutTime = "time i64, rows of a sequence",
                            *aboutDropoutLength = "max_length i64, the maximum number of rows of a sequence",
                            *aboutThreshold = "threshold i64, the dropout probability times 65536";
/// Appends these five arguments to a launch. `unused` is passed as the tensor if the kernel does not read it.
void appendArgs(std::vector<Arg> &args, const std::optional<Dropout> &dropout, const TensorRef &unused);
/// Throws Error unless `rngState`, if given, is (2) i64, and the N rows are whole sequences.
void expectDropout(const char *plan, const Dropout &dropout, int64_t N);

/// Number of 128-element units of a row of C elements.
Tile countUnits(Tile C);
/// Keep mask (R, columns) boolean of the rows `row` (R) i64, each `units` long, from `column` on. `column` is a
/// multiple of the largest power of two, up to 128, that divides `columns`.
Tile kept(Tile key, Tile row, Tile units, Tile column, int64_t columns, Tile threshold);
/// Keep mask of rows n … n + rows of an activation with C columns.
Tile kept(const DropoutArgs &args, Tile n, int64_t rows, Tile C, Tile column, int64_t columns);
/// Applies dropout to `x` (rows, columns) f32, the tile at (n, column) of an activation with C columns.
Tile dropped(Tile x, DropoutMode drop, const DropoutArgs &args, Tile n, Tile C, Tile column);

} // namespace kiln
