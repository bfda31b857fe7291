// Flash and plain attention train alike.

#include "test/devices.h"
#include "test/models/nn/decoder_model.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class AttentionFormTest : public DeviceTest {
protected:
  /// Losses of the steps of a run that repeats four batches.
  std::vector<double> losses(AttentionForm form, int64_t steps) {
    DecoderOptions o = {.layers = 2, .width = 12, .context = 9, .vocab = 11};
    o.block.attention.heads = 3;
    o.block.attention.form = form;
    o.dropout.attention = 0.1;
    const DecoderModel model(o);
    Trainer trainer(Device::open(GetParam()), model, settingsOf(4));
    trainer.upload(randomBuffers(model.parameters(), 1));
    std::vector<double> all;
    for (int64_t step = 1; step <= steps; ++step) {
      const DecoderBatch batch = randomBatch(o, 4, 9, static_cast<uint32_t>(step % 4));
      trainer.beginStep(1e-3, step, presentIn(batch));
      trainer.addGradient(inputsOf(batch, 0, 4), 0);
      all.push_back(trainer.update().loss);
    }
    return all;
  }
};

// After a hundred steps, with dropped weights, the losses of the two forms differ by at most the effect of rounding; on
// slow devices after ten.
TEST_P(AttentionFormTest, FlashAndPlainHaveOneCurve) {
  const int64_t steps = GetParam() == "cpu" ? 100 : 10;
  const std::vector<double> flash = losses(AttentionForm::flash, steps), plain = losses(AttentionForm::plain, steps);
  for (int64_t i = 0; i < steps; ++i)
    EXPECT_NEAR(flash[i], plain[i], 1e-4) << i;
  EXPECT_LT(flash.back(), flash.front() - 0.1);
}

KILN_ON_DEVICES(AttentionFormTest);

} // namespace
