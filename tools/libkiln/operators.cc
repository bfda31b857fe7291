// The built-in operators as kiln.h names them: a name, operands, options, and the plan of kernels/ that they become.
// Runs operators once, and plans repeatedly.

#include "tools/libkiln/handles.h"

#include "dialect/dsl/Nearest.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/add.h"
#include "kernels/attention.h"
#include "kernels/column_sums.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "kernels/softmax.h"
#include "kernels/sum.h"
#include "runtime/Tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kiln::c {

namespace {
/// Products of f32: as plans choose for the device, or as dialect/dsl/Tile.h names them.
enum class ProductPrecision { automatic, ieee, tf32, tf32x3, bf16x3 };

/// The options of all operators. An operator reads those among its fields; the others keep these values.
struct OperatorOptions {
  bool accumulate = false; // out += …
  bool isCausal = false;
  double scale = 0;  // 0: the operator's own default, mostly 1
  float eps = 1e-5f; // LayerNorm's
  Activation activation = Activation::none;
  int64_t ignoreIndex = -100;
  float labelSmoothing = 0;
  int64_t columns = 0; // 0: all
  int64_t length = 0;  // 0: all
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, weightDecay = 0.01;
  double adamEps = 1e-8;
  int64_t step = 1;
  ProductPrecision precision = ProductPrecision::automatic;

  float scaleOrOne() const { return scale != 0 ? static_cast<float>(scale) : 1; }
};

/// An operator's launches, and further tensors that they read, in addition to its operands.
struct OperatorPlan {
  Plan plan;
  std::vector<Tensor> kept = {};
};

struct Operator {
  struct Operand {
    std::string name;
    bool isWritten, isOptional;
  };
  using Tensors = std::vector<std::optional<TensorRef>>;

  std::string name;
  std::vector<Operand> operands;
  std::vector<Field> fields;
  std::function<OperatorPlan(const std::shared_ptr<Device> &, const Tensors &, const OperatorOptions &)> plan;
};
} // namespace

using Options = OperatorOptions;
using Tensors = Operator::Tensors;

// --- Operands --------------------------------------------------------------------------------------------------------

/// Parses operands, "a, b? -> out": those read, then those written; "?" marks optional ones.
static std::vector<Operator::Operand> operandsOf(const std::string &text) {
  std::vector<Operator::Operand> operands;
  bool isWritten = false;
  std::string name;
  const auto end = [&] {
    if (name == "->")
      isWritten = true;
    else if (!name.empty())
      operands.push_back({name.substr(0, name.find('?')), isWritten, name.ends_with('?')});
    name.clear();
  };
  for (const char c : text)
    if (c == ' ' || c == ',')
      end();
    else
      name += c;
  end();
  return operands;
}

/// Whether a matrix is the transpose of one with contiguous rows.
static bool isTransposed(const TensorRef &matrix) {
  return matrix.strides[1] != 1 && matrix.strides[0] == 1 && matrix.extents[1] > 1;
}

static void expectMatrix(const char *name, const char *operand, const TensorRef &tensor) {
  if (tensor.rank() != 2)
    throw Error(fmt::format("'{}': expected '{}' of rank 2, but got shape {}", name, operand, textOf(tensor.extents)));
}

/// Throws Error unless a (M, K) · b (K, N), or one of each in a batch (B, M, K), is out (M, N), in the caller's shapes.
static void expectProduct(const TensorRef &a, const TensorRef &b, const TensorRef &out) {
  const bool isBatch = a.rank() == 3;
  if (!isBatch)
    expectMatrix("matmul", "a", a);
  if (!isBatch || b.rank() != 3)
    expectMatrix("matmul", "b", b);
  else if (a.extents[0] != b.extents[0])
    throw Error(
        fmt::format("'matmul': expected equal batches, but got {} and {}", textOf(a.extents), textOf(b.extents)));
  const std::string batch = isBatch ? fmt::format("{}, ", a.extents[0]) : "";
  const auto wrong = [](const char *operand, const std::string &shape, const TensorRef &got) {
    return Error(fmt::format("'matmul': expected '{}' of shape ({}), but got ({})", operand, shape,
                             fmt::join(got.extents, ", ")));
  };
  const int64_t M = a.extents[a.rank() - 2], K = a.extents[a.rank() - 1], N = b.extents[b.rank() - 1];
  if (b.extents[b.rank() - 2] != K)
    throw wrong("b", fmt::format("{}{}, N", b.rank() == 3 ? batch : "", K), b);
  Shape shape = a.extents;
  shape.back() = N;
  if (out.extents != shape)
    throw wrong("out", fmt::format("{}{}, {}", batch, M, N), out);
}

namespace {
/// Two matrices in a layout of kernels/matmul.h.
struct Factors {
  Layout layout;
  TensorRef a, b;
};
} // namespace

/// a (M, K) and b (K, N), each row-major or column-major.
static Factors factorsOf(const char *name, const TensorRef &a, const TensorRef &b) {
  expectMatrix(name, "a", a);
  expectMatrix(name, "b", b);
  const bool ta = isTransposed(a), tb = isTransposed(b);
  if (ta && tb)
    throw Error(fmt::format("'{}': expected 'a' or 'b' to be stored by rows, but both are stored by columns", name));
  return {ta ? Layout::tn : tb ? Layout::nt : Layout::nn, ta ? a.permute({1, 0}) : a, tb ? b.permute({1, 0}) : b};
}

static Target targetFor(const Device &device, const Options &options) {
  Target target = device.target();
  if (options.precision != ProductPrecision::automatic)
    target.precision = static_cast<Precision>(static_cast<int>(options.precision) - 1);
  return target;
}

// --- Operators -------------------------------------------------------------------------------------------------------

static Plan multiply(const Target &target, const TensorRef &a, const TensorRef &b, const TensorRef &out,
                     bool accumulate) {
  expectProduct(a, b, out);
  if (a.rank() == 3) // a batch of products
    return vmap(
        [&](const std::vector<TensorRef> &one) {
          const Factors factors = factorsOf("matmul", one[0], one[1]);
          return planMatmul(target, factors.layout, factors.a, factors.b, one[2], accumulate);
        },
        {{a, 0}, {b, b.rank() == 3 ? std::optional(0) : std::nullopt}, {out, 0}});
  const Factors factors = factorsOf("matmul", a, b);
  return planMatmul(target, factors.layout, factors.a, factors.b, out, accumulate);
}

/// out = residual + activation(x · weightᵀ + bias), weight (N, K).
static Plan linear(const Target &target, const Tensors &t, const Options &options) {
  const TensorRef &x = *t[0], &weight = *t[1];
  expectMatrix("linear", "x", x);
  expectMatrix("linear", "weight", weight);
  if (weight.extents[1] != x.extents[1] || weight.type != x.type)
    throw Error(fmt::format("'linear': expected 'weight' of shape (N, {}) and type {}, but got {} of type {}",
                            x.extents[1], nameOf(x.type), textOf(weight.extents), nameOf(weight.type)));
  if (t[2] && t[2]->extents != Shape{weight.extents[0]})
    throw Error(
        fmt::format("'linear': expected 'bias' of shape {}, but got {}", weight.extents[0], textOf(t[2]->extents)));
  const Factors factors = factorsOf("linear", x, weight.permute({1, 0}));
  LinearEpilogue epilogue;
  epilogue.bias = t[2];
  epilogue.residual = t[3];
  epilogue.activation = options.activation;
  epilogue.preact = t[5];
  return planLinear(target, factors.layout, factors.a, factors.b, *t[4], epilogue);
}

static Plan layerNorm(const Target &target, const Tensors &t, const Options &options) {
  const TensorRef &x = *t[0];
  if (t[1].has_value() != t[2].has_value())
    throw Error("'layernorm': expected 'weight' and 'bias' or neither, but got one of them");
  if (x.rank() != 2)
    throw Error(fmt::format("'layernorm': expected 'x' of rank 2, but got shape {}", textOf(x.extents)));
  const bool affine = t[1].has_value();
  const TensorRef none = TensorRef::dense(x.data, x.type, {x.extents[1]}); // not accessed
  return planLayerNorm(target, x, affine ? *t[1] : none, affine ? *t[2] : none, *t[3], *t[4], *t[5],
                       {options.eps, 0, false, affine});
}

static float attentionScale(const TensorRef &q, const Options &options) {
  if (q.rank() != 4)
    throw Error(fmt::format("'attention': expected 'q' of shape (B, H, T, D), but got {}", textOf(q.extents)));
  return static_cast<float>(options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(q.extents[3])));
}

static AttentionMask maskOf(const std::optional<TensorRef> &mask, const Options &options) {
  AttentionMask result;
  result.causal = options.isCausal;
  result.mask = mask;
  return result;
}

static int64_t columnsOf(const TensorRef &logits, const Options &options) {
  if (logits.rank() != 2)
    throw Error(fmt::format("'cross_entropy': expected 'logits' of rank 2, but got shape {}", textOf(logits.extents)));
  return options.columns ? options.columns : logits.extents[1];
}

static OperatorPlan adamW(const std::shared_ptr<Device> &device, const Tensors &t, const Options &options) {
  AdamWSettings settings;
  settings.beta1 = options.beta1;
  settings.beta2 = options.beta2;
  settings.epsilon = options.adamEps;
  settings.decay = options.weightDecay;
  settings.decayed = t[1]->count();
  const StepRecord numbers = makeStepRecord(settings, {.rate = options.lr, .step = options.step});
  Tensor record(device, f32, {stepFields});
  record.upload(numbers.numbers.data(), record.bytes());
  OperatorPlan made = {planAdamW(device->target(), *t[1], *t[0], *t[2], *t[3], record, settings, t[4])};
  made.kept.push_back(std::move(record));
  return made;
}

/// An operator whose plan needs only its operands.
static Operator made(const char *name, const char *operands, std::vector<Field> fields,
                     const std::function<Plan(const Target &, const Tensors &, const Options &)> &plan) {
  return {name, operandsOf(operands), std::move(fields),
          [plan](const std::shared_ptr<Device> &device, const Tensors &t, const Options &options) {
            return OperatorPlan{plan(targetFor(*device, options), t, options)};
          }};
}

static std::vector<Operator> all() {
  const Field accumulate = field("accumulate", &Options::accumulate), eps = field("eps", &Options::eps),
              isCausal = field("is_causal", &Options::isCausal), scale = field("scale", &Options::scale),
              columns = field("columns", &Options::columns), ignoreIndex = field("ignore_index", &Options::ignoreIndex),
              labelSmoothing = field("label_smoothing", &Options::labelSmoothing),
              precision = field("precision", &Options::precision, {"default", "ieee", "tf32", "tf32x3", "bf16x3"});
  return {
      made("add", "x, y -> out", {},
           [](const auto &target, const auto &t, const auto &) { return planAdd(target, *t[0], *t[1], *t[2]); }),
      made("attention", "q, k, v, attn_mask? -> out, lse", {isCausal, scale, precision},
           [](const auto &target, const auto &t, const auto &o) {
             return planAttention(target, *t[0], *t[1], *t[2], *t[4], *t[5], attentionScale(*t[0], o), maskOf(t[3], o));
           }),
      made("attention_backward", "q, k, v, out, lse, dout, attn_mask? -> dq, dk, dv", {isCausal, scale, precision},
           [](const auto &target, const auto &t, const auto &o) {
             return planAttentionBackward(target, {*t[0], *t[1], *t[2], *t[3], *t[4], *t[5]}, *t[7], *t[8], *t[9],
                                          attentionScale(*t[0], o), maskOf(t[6], o));
           }),
      made("column_sums", "x -> out", {accumulate},
           [](const auto &target, const auto &t, const auto &o) {
             return planColumnSums(target, *t[0], *t[1], o.accumulate);
           }),
      made("cross_entropy", "logits, targets -> losses", {columns, ignoreIndex, labelSmoothing},
           [](const auto &target, const auto &t, const auto &o) {
             return planCrossEntropyLoss(target, *t[0], *t[1], *t[2], columnsOf(*t[0], o), o.ignoreIndex,
                                         {.smoothing = o.labelSmoothing});
           }),
      made("cross_entropy_gradient", "targets -> logits, losses", {columns, ignoreIndex, labelSmoothing, scale},
           [](const auto &target, const auto &t, const auto &o) {
             return planCrossEntropy(target, *t[1], *t[0], *t[2], columnsOf(*t[1], o), o.scaleOrOne(), o.ignoreIndex,
                                     {}, {.smoothing = o.labelSmoothing});
           }),
      made("embedding", "tokens, table, positions? -> out", {scale, field("length", &Options::length)},
           [](const auto &target, const auto &t, const auto &o) {
             const int64_t T = o.length ? o.length : t[0]->count();
             return planEmbeddingSum(target, *t[0], *t[1], *t[3], T, {.scale = o.scaleOrOne(), .places = t[2]});
           }),
      made("embedding_backward", "dout, tokens, starts, positions -> dtable", {accumulate, scale},
           [](const auto &target, const auto &t, const auto &o) {
             return planTokenGradient(target, {*t[1], *t[2], *t[3]}, *t[0], *t[4], o.accumulate, {}, o.scaleOrOne());
           }),
      made("gelu", "x -> out", {},
           [](const auto &target, const auto &t, const auto &) { return planGelu(target, *t[0], *t[1]); }),
      made("gelu_backward", "x, dout -> dx", {},
           [](const auto &target, const auto &t, const auto &) {
             return planGeluBackward(target, *t[0], *t[1], *t[2]);
           }),
      made("layernorm", "x, weight?, bias? -> out, mean, rstd", {eps}, layerNorm),
      made("layernorm_backward", "dout, x, weight, mean, rstd -> dx, dweight, dbias", {eps},
           [](const auto &target, const auto &t, const auto &o) {
             return planLayerNormBackward(target, *t[0], *t[1], *t[2], *t[3], *t[4], *t[5], *t[6], *t[7], {}, {o.eps});
           }),
      made("linear", "x, weight, bias?, residual? -> out, preact?",
           {field("activation", &Options::activation, activationNames), precision}, linear),
      made("matmul", "a, b -> out", {accumulate, precision},
           [](const auto &target, const auto &t, const auto &o) {
             return multiply(target, *t[0], *t[1], *t[2], o.accumulate);
           }),
      made("softmax", "x -> out", {},
           [](const auto &target, const auto &t, const auto &) { return planSoftmax(target, *t[0], *t[1]); }),
      made("total", "x -> out", {scale},
           [](const auto &target, const auto &t, const auto &o) {
             return planTotal(target, *t[0], *t[1], o.scaleOrOne());
           }),
      made("weight_gradient", "x, dout -> dweight, dbias?", {accumulate, precision},
           [](const auto &target, const auto &t, const auto &o) {
             return planWeightGradient(target, *t[0], *t[1], *t[2], t[3], o.accumulate);
           }),
      {"adamw",
       operandsOf("gradient -> parameters, m, v, copy?"),
       {field("lr", &Options::lr), field("step", &Options::step), field("beta1", &Options::beta1),
        field("beta2", &Options::beta2), field("eps", &Options::adamEps), field("weight_decay", &Options::weightDecay)},
       adamW},
  };
}

static const std::vector<Operator> &operators() {
  static const std::vector<Operator> table = all();
  return table;
}

/// Throws Error for a name that is no operator's.
static const Operator &operatorNamed(const std::string &name) {
  std::vector<std::string> names;
  for (const Operator &each : operators()) {
    if (each.name == name)
      return each;
    names.push_back(each.name);
  }
  throw Error(unknownName("operator", name, names));
}

} // namespace kiln::c

// --- The C interface ------------------------------------------------------------------------------------------------

using namespace kiln;
using namespace kiln::c;

struct kiln_plan {
  kiln_device *device;
  std::vector<Arg> arguments;
  Tensor workspace;
  std::vector<Tensor> kept; // other memory that its launches read
  PreparedPlan launches;
};

/// The operands of an operator's call. Throws Error for too few or too many, for one that is missing, a scalar, and a
/// read-only one that is written.
static Operator::Tensors tensorsOf(const Operator &op, const std::vector<Arg> &arguments, const kiln_argument *given) {
  if (arguments.size() != op.operands.size())
    throw Error(fmt::format("'{}': expected {} operands, but got {}", op.name, op.operands.size(), arguments.size()));
  Operator::Tensors tensors;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Operator::Operand &operand = op.operands[i];
    if (arguments[i].kind == Arg::Kind::none) {
      if (!operand.isOptional)
        throw Error(fmt::format("'{}': expected a tensor for '{}', but got none", op.name, operand.name));
      tensors.emplace_back();
      continue;
    }
    if (arguments[i].kind != Arg::Kind::tensor)
      throw Error(
          fmt::format("'{}': expected a tensor for '{}', but got {}", op.name, operand.name, textOf(arguments[i])));
    if (operand.isWritten && given[i].is_read_only)
      throw Error(fmt::format("'{}': expected memory that may be written for '{}', but got a read-only tensor", op.name,
                              operand.name));
    tensors.emplace_back(arguments[i].ref);
  }
  return tensors;
}

/// The plan, with the device's mutex held.
static std::unique_ptr<kiln_plan> makePlan(kiln_device *device, const char *name, const kiln_argument *arguments,
                                           size_t count, const char *options) {
  const Operator &op = operatorNamed(name);
  auto plan = std::make_unique<kiln_plan>(kiln_plan{device, {}, {}, {}, {}});
  setArgs(plan->arguments, *device, arguments, count);
  OperatorOptions chosen;
  parseOptions(op.name, op.fields, options ? options : "", &chosen);
  OperatorPlan made = op.plan(device->device, tensorsOf(op, plan->arguments, arguments), chosen);
  plan->kept = std::move(made.kept);
  if (made.plan.workspaceBytes > 0)
    plan->workspace = Tensor(device->device, i8, {made.plan.workspaceBytes});
  plan->launches = prepare(*device->device, made.plan, plan->workspace);
  return plan;
}

static void runPlan(const kiln_plan &plan) {
  const Loan loan(*plan.device, plan.arguments);
  plan.launches.run();
}

const char *kiln_operators(void) {
  static const std::string text = [] {
    const OperatorOptions defaults;
    std::string lines;
    for (const Operator &op : operators()) {
      std::string operands, options;
      bool isWritten = false;
      for (const Operator::Operand &operand : op.operands) {
        operands += operand.isWritten && !isWritten ? " -> " : operands.empty() ? "" : ", ";
        isWritten = operand.isWritten;
        operands += operand.name + (operand.isOptional ? "?" : "");
      }
      for (const Field &field : op.fields)
        options += (options.empty() ? "; " : ", ") + field.name + "=" + field.print(&defaults);
      lines += fmt::format("{}: {}{}\n", op.name, operands, options);
    }
    return lines;
  }();
  return text.c_str();
}

kiln_status kiln_operate(kiln_device *device, const char *name, const kiln_argument *arguments, size_t count,
                         const char *options) {
  return guarded([&] {
    expectGiven(device, "a device");
    expectGiven(name, "an operator's name");
    const std::lock_guard lock(device->mutex);
    runPlan(*makePlan(device, name, arguments, count, options));
  });
}

kiln_status kiln_plan_make(kiln_device *device, const char *name, const kiln_argument *arguments, size_t count,
                           const char *options, kiln_plan **plan) {
  return guarded([&] {
    expectGiven(device, "a device");
    expectGiven(name, "an operator's name");
    expectGiven(plan, "a place for the plan");
    const std::lock_guard lock(device->mutex);
    *plan = makePlan(device, name, arguments, count, options).release();
  });
}

kiln_status kiln_plan_run(kiln_plan *plan) {
  return guarded([&] {
    expectGiven(plan, "a plan");
    const std::lock_guard lock(plan->device->mutex);
    runPlan(*plan);
  });
}

void kiln_plan_close(kiln_plan *plan) {
  if (!plan)
    return;
  const std::lock_guard lock(plan->device->mutex);
  delete plan;
}
