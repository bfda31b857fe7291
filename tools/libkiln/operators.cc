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
#include "kernels/operands.h"
#include "kernels/softmax.h"
#include "kernels/sum.h"
#include "runtime/Tensor.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
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
    size_t broadcast; // leading dimensions whose extent may be 1
  };
  using Tensors = std::vector<std::optional<TensorRef>>;

  std::string name;
  std::vector<Operand> operands;
  std::vector<Field> fields;
  Kernel form; // its parameters are the operands with their shapes and types (kernels/operands.h)
  std::function<OperatorPlan(const std::shared_ptr<Device> &, const Tensors &, const OperatorOptions &)> plan;
};
} // namespace

using Options = OperatorOptions;
using Tensors = Operator::Tensors;

// --- Operands --------------------------------------------------------------------------------------------------------

/// An operator with these operands, "a (M, K); b? (K, N) as a -> out (M, N)": those read, then those written; "?" marks
/// optional ones. Shapes and types are as in registrations of kernels; an extent `H|1` may be 1. Without a shape an
/// operand is not checked.
static Operator declare(const std::string &name, const std::string &text) {
  Operator op{name, {}, {}, {}, {}};
  op.form.name = name;
  llvm::SmallVector<llvm::StringRef> sides;
  llvm::StringRef(text).split(sides, "->");
  for (const llvm::StringRef side : sides) {
    llvm::SmallVector<llvm::StringRef> parts;
    side.split(parts, ';');
    for (const llvm::StringRef part : parts) {
      const auto [first, about] = part.trim().split(' ');
      const bool isOptional = first.ends_with("?");
      const std::string operand = first.drop_back(isOptional ? 1 : 0).str();
      std::string shape;
      llvm::SmallVector<llvm::StringRef> extents;
      about.split(extents, "|1");
      for (const llvm::StringRef piece : extents)
        shape += piece;
      op.operands.push_back({operand, side.data() != sides[0].data(), isOptional, extents.size() - 1});
      op.form.parameters.push_back({Kernel::Parameter::Kind::view, operand, shape});
    }
  }
  return op;
}

/// Throws Error, in the caller's names, unless the operands have their shapes and types.
static void checkForms(const Operator &op, const Tensors &tensors) {
  std::vector<kiln::Operand> operands;
  for (size_t i = 0; i < tensors.size(); ++i) {
    operands.emplace_back(tensors[i]);
    operands.back().broadcast = op.operands[i].broadcast;
  }
  if (!op.form.parameters[0].about.empty())
    checkOperands(op.form, operands);
}

/// Whether a matrix is the transpose of one with contiguous rows.
static bool isTransposed(const TensorRef &matrix) {
  return matrix.strides[1] != 1 && matrix.strides[0] == 1 && matrix.extents[1] > 1;
}

namespace {
/// Two matrices in a layout of kernels/matmul.h.
struct Factors {
  Layout layout;
  TensorRef a, b;
};
} // namespace

/// a (M, K) and b (K, N), each row-major or column-major.
static Factors factorsOf(const char *name, const char *first, const char *second, const TensorRef &a,
                         const TensorRef &b) {
  const bool ta = isTransposed(a), tb = isTransposed(b);
  if (ta && tb)
    throw Error(fmt::format("'{}': expected '{}' or '{}' to be stored by rows, but both are stored by columns", name,
                            first, second));
  return {ta ? Layout::tn : tb ? Layout::nt : Layout::nn, ta ? a.permute({1, 0}) : a, tb ? b.permute({1, 0}) : b};
}

static Target targetFor(const Device &device, const Options &options) {
  Target target = device.target();
  if (options.precision != ProductPrecision::automatic)
    target.precision = static_cast<Precision>(static_cast<int>(options.precision) - 1);
  return target;
}

// --- Operators -------------------------------------------------------------------------------------------------------

/// a (M, K) · b (K, N), or a batch of such products with one b or one for each.
static Plan multiply(const Target &target, const Tensors &t, const Options &options) {
  const TensorRef &a = *t[0], &b = *t[1];
  static const auto forms = [](const char *result) {
    return std::array{
        declare("matmul", fmt::format("a (M, K) float or i8; b (K, N) as a -> out (M, N) {}", result)),
        declare("matmul", fmt::format("a (B, M, K) float or i8; b (K, N) as a -> out (B, M, N) {}", result)),
        declare("matmul", fmt::format("a (B, M, K) float or i8; b (B, K, N) as a -> out (B, M, N) {}", result))};
  };
  static const std::array ofFloats = forms("float"), ofIntegers = forms("i32");
  const bool isBatch = a.rank() == 3, hasMany = isBatch && b.rank() == 3;
  checkForms((a.type == i8 ? ofIntegers : ofFloats)[isBatch + hasMany], t);
  const auto planOne = [&](const std::vector<TensorRef> &one) {
    const Factors factors = factorsOf("matmul", "a", "b", one[0], one[1]);
    return planMatmul(target, factors.layout, factors.a, factors.b, one[2], options.accumulate);
  };
  if (isBatch)
    return vmap(planOne, {{a, 0}, {b, hasMany ? std::optional(0) : std::nullopt}, {*t[2], 0}});
  return planOne({a, b, *t[2]});
}

/// out = residual + activation(x · weightᵀ + bias), weight (N, K).
static Plan linear(const Target &target, const Tensors &t, const Options &options) {
  const Factors factors = factorsOf("linear", "x", "weight", *t[0], t[1]->permute({1, 0}));
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
  const bool affine = t[1].has_value();
  const TensorRef none = TensorRef::dense(x.data, x.type, {x.extents[1]}); // not accessed
  return planLayerNorm(target, x, affine ? *t[1] : none, affine ? *t[2] : none, *t[3], *t[4], *t[5],
                       {options.eps, 0, false, affine});
}

static float attentionScale(const TensorRef &q, const Options &options) {
  return static_cast<float>(options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(q.extents[3])));
}

static AttentionMask maskOf(const std::optional<TensorRef> &mask, const Options &options) {
  AttentionMask result;
  result.causal = options.isCausal;
  result.mask = mask;
  return result;
}

static int64_t columnsOf(const TensorRef &logits, const Options &options) {
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
  Operator op = declare(name, operands);
  op.fields = std::move(fields);
  op.plan = [plan](const std::shared_ptr<Device> &device, const Tensors &t, const Options &options) {
    return OperatorPlan{plan(targetFor(*device, options), t, options)};
  };
  return op;
}

static std::vector<Operator> all() {
  const Field accumulate = field("accumulate", &Options::accumulate), eps = field("eps", &Options::eps),
              isCausal = field("is_causal", &Options::isCausal), scale = field("scale", &Options::scale),
              columns = field("columns", &Options::columns), ignoreIndex = field("ignore_index", &Options::ignoreIndex),
              labelSmoothing = field("label_smoothing", &Options::labelSmoothing),
              precision = field("precision", &Options::precision, {"default", "ieee", "tf32", "tf32x3", "bf16x3"});
  Operator adamw = declare("adamw", "gradient (n) -> parameters (n); m (n) f32; v (n) f32; copy? (n) bf16 or f16");
  adamw.fields = {field("lr", &Options::lr),       field("step", &Options::step),
                  field("beta1", &Options::beta1), field("beta2", &Options::beta2),
                  field("eps", &Options::adamEps), field("weight_decay", &Options::weightDecay)};
  adamw.plan = adamW;
  return {
      made("add", "x (N) any; y (N) any -> out (N) any", {},
           [](const auto &target, const auto &t, const auto &) { return planAdd(target, *t[0], *t[1], *t[2]); }),
      made("attention",
           "q (B, H, Tq, D); k (B, Hk, Tk, D) as q; v (B, Hk, Tk, D) as q; attn_mask? (B|1, H|1, Tq, Tk) i8 -> "
           "out (B, H, Tq, D) as q; lse (B, H, Tq) f32",
           {isCausal, scale, precision},
           [](const auto &target, const auto &t, const auto &o) {
             return planAttention(target, *t[0], *t[1], *t[2], *t[4], *t[5], attentionScale(*t[0], o), maskOf(t[3], o));
           }),
      made("attention_backward",
           "q (B, H, Tq, D); k (B, Hk, Tk, D) as q; v (B, Hk, Tk, D) as q; out (B, H, Tq, D); lse (B, H, Tq) f32; "
           "dout (B, H, Tq, D) as q; attn_mask? (B|1, H|1, Tq, Tk) i8 -> "
           "dq (B, H, Tq, D); dk (B, Hk, Tk, D); dv (B, Hk, Tk, D)",
           {isCausal, scale, precision},
           [](const auto &target, const auto &t, const auto &o) {
             return planAttentionBackward(target, {*t[0], *t[1], *t[2], *t[3], *t[4], *t[5]}, *t[7], *t[8], *t[9],
                                          attentionScale(*t[0], o), maskOf(t[6], o));
           }),
      made("column_sums", "x (N, C) -> out (C)", {accumulate},
           [](const auto &target, const auto &t, const auto &o) {
             return planColumnSums(target, *t[0], *t[1], o.accumulate);
           }),
      made("cross_entropy", "logits (N, V); targets (N) i32 -> losses (N) f32", {columns, ignoreIndex, labelSmoothing},
           [](const auto &target, const auto &t, const auto &o) {
             return planCrossEntropyLoss(target, *t[0], *t[1], *t[2], columnsOf(*t[0], o), o.ignoreIndex,
                                         {.smoothing = o.labelSmoothing});
           }),
      made("cross_entropy_gradient", "targets (N) i32 -> logits (N, V); losses (N) f32",
           {columns, ignoreIndex, labelSmoothing, scale},
           [](const auto &target, const auto &t, const auto &o) {
             return planCrossEntropy(target, *t[1], *t[0], *t[2], columnsOf(*t[1], o), o.scaleOrOne(), o.ignoreIndex,
                                     {}, {.smoothing = o.labelSmoothing});
           }),
      made("embedding", "tokens (N) i32; table (V, C); positions? (T, C) -> out (N, C)",
           {scale, field("length", &Options::length)},
           [](const auto &target, const auto &t, const auto &o) {
             const int64_t T = o.length ? o.length : t[0]->count();
             return planEmbeddingSum(target, *t[0], *t[1], *t[3], T, {.scale = o.scaleOrOne(), .places = t[2]});
           }),
      made("embedding_backward", "dout (N, C); tokens (U) i32; starts (U + 1) i32; positions (N) i32 -> dtable (V, C)",
           {accumulate, scale},
           [](const auto &target, const auto &t, const auto &o) {
             return planTokenGradient(target, {*t[1], *t[2], *t[3]}, *t[0], *t[4], o.accumulate, {}, o.scaleOrOne());
           }),
      made("gelu", "x (N) -> out (N)", {},
           [](const auto &target, const auto &t, const auto &) { return planGelu(target, *t[0], *t[1]); }),
      made("gelu_backward", "x (N); dout (N) -> dx (N)", {},
           [](const auto &target, const auto &t, const auto &) {
             return planGeluBackward(target, *t[0], *t[1], *t[2]);
           }),
      made("layernorm", "x (N, C); weight? (C); bias? (C) -> out (N, C); mean (N) f32; rstd (N) f32", {eps}, layerNorm),
      made("layernorm_backward",
           "dout (N, C); x (N, C); weight (C); mean (N) f32; rstd (N) f32 -> dx (N, C); dweight (C); dbias (C)", {eps},
           [](const auto &target, const auto &t, const auto &o) {
             return planLayerNormBackward(target, *t[0], *t[1], *t[2], *t[3], *t[4], *t[5], *t[6], *t[7], {}, {o.eps});
           }),
      made("linear", "x (M, K); weight (N, K) as x; bias? (N); residual? (M, N) -> out (M, N); preact? (M, N)",
           {field("activation", &Options::activation, activationNames), precision}, linear),
      made("matmul", "a; b -> out", {accumulate, precision}, multiply),
      made("softmax", "x (N, C) -> out (N, C)", {},
           [](const auto &target, const auto &t, const auto &) { return planSoftmax(target, *t[0], *t[1]); }),
      made("total", "x (N) -> out (1)", {scale},
           [](const auto &target, const auto &t, const auto &o) {
             return planTotal(target, *t[0], *t[1], o.scaleOrOne());
           }),
      made("weight_gradient", "x (K, M); dout (K, N) as x -> dweight (M, N); dbias? (N)", {accumulate, precision},
           [](const auto &target, const auto &t, const auto &o) {
             return planWeightGradient(target, *t[0], *t[1], *t[2], t[3], o.accumulate);
           }),
      adamw,
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
  const Operator::Tensors tensors = tensorsOf(op, plan->arguments, arguments);
  checkForms(op, tensors);
  OperatorPlan made = op.plan(device->device, tensors, chosen);
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
