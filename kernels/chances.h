// Which numbers dropout keeps: nothing is stored, each kernel that needs to know works it out again.
//
// Elements are numbered by where they stand in a training step, not by where they lie in memory: row i of sequence s,
// of at most `most` rows each, is row s · most + i; a row of C elements takes ⌈C / 128⌉ units of 128. Element e = unit
// · 128
// + part · 16 + lane is kept unless its 16 random bits are below the threshold. They are those that `part` chooses
// among the eight halves of the Philox number unit · 16 + lane under the site's key, so that one number serves eight
// elements. Neither micro-batches nor tiles nor padding show in it.
//
// Attention's weights are rows of keys: row (s · H + h) · most + i, and `most` columns, for sequences of at most as
// many queries and keys.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

/// How numbers that are kept make up for those that are not: by being divided by their share, or, plain, not at all.
/// Plain dropout multiplies by that share where nothing is dropped, in evaluations.
enum class DropoutKind { inverted, plain };
/// Their names, in this order.
inline const std::vector<std::string> dropoutKindNames = {"inverted", "plain"};
/// The kind called `text`; throws Error for another text.
DropoutKind dropoutKindNamed(const std::string &text);

/// The chance that a number is dropped. There are 65536 chances: it is the nearest of these.
struct DropoutRate {
  double asked = 0; // at least 0 and below 1
  DropoutKind kind = DropoutKind::inverted;

  /// Of 65536 chances, those that drop.
  int64_t threshold() const;
  /// The share of the numbers that are kept, exactly.
  double share() const { return 1 - static_cast<double>(threshold()) / 65536; }
  /// What kept numbers are multiplied by.
  double scale() const { return kind == DropoutKind::inverted ? 1 / share() : 1; }
  /// What all numbers are multiplied by where nothing is dropped.
  double evaluationScale() const { return kind == DropoutKind::inverted ? 1 : share(); }
  bool operator==(const DropoutRate &) const = default;
};
/// Throws Error unless the chance is at least 0 and below 1.
void verify(const DropoutRate &rate);

/// Dropout of one site in one micro-batch: what a plan is given. What changes from step to step is in memory.
struct Dropout {
  DropoutRate rate;
  /// (2) i64: the key of the site in this step, and the number in the step of the micro-batch's first sequence. Without
  /// it nothing is dropped, and all numbers are multiplied as an evaluation does.
  std::optional<TensorRef> site = {};
  int64_t time = 1; // rows of a sequence
  int64_t most = 1; // rows that a sequence may have; at least `time`
};

/// What a kernel does about it, as a field of its config.
enum class Drop { no, scale, chance };
/// Their names, in this order.
inline const std::vector<std::string> dropNames = {"no", "scale", "chance"};
Drop dropOf(const std::optional<Dropout> &dropout);

/// The same as arguments of a kernel, in this order.
struct DropoutArgs {
  View site;
  Tile time, most, threshold, scale;
};
/// Adds the five to those of a launch; where its kernel does not look at them, `unused` stands in for a tensor.
void appendArgs(std::vector<Arg> &args, const std::optional<Dropout> &dropout, const TensorRef &unused);
/// Throws Error unless `site`, when there, is (2) i64, and N rows are whole sequences.
void expectDropout(const char *plan, const Dropout &dropout, int64_t N);

/// Units of a row of C elements.
Tile unitsOf(Tile C);
/// Which elements of a site are kept: (R, columns) boolean, of rows `row` (R) i64, which are `units` long, from
/// `column` on, a multiple of the largest power of two, up to 128, that divides `columns`.
Tile kept(Tile key, Tile row, Tile units, Tile column, int64_t columns, Tile threshold);
/// The same of rows n … n + rows of an activation of C columns.
Tile kept(const DropoutArgs &args, Tile n, int64_t rows, Tile C, Tile column, int64_t columns);
/// `x` (rows, columns) f32, the tile at (n, column) of an activation of C columns, after dropout.
Tile dropped(Tile x, Drop drop, const DropoutArgs &args, Tile n, Tile C, Tile column);

} // namespace kiln
