// The log of a run in TensorBoard's format: one event file each time that the run starts or resumes.
//
// A file is a sequence of TFRecords: the length as 8 bytes, its masked CRC-32C, the bytes, and their masked CRC-32C,
// all little-endian. Each record is an Event of TensorFlow's event.proto in the protocol buffers wire format. The first
// is the version `brain.Event:2`. A resumed run then has a SessionLog with START, which hides this step and later ones
// of earlier files. Then each row is a Summary with a Value for each of its scalars.

#pragma once

#include "models/train/log.h"

#include <string_view>

namespace kiln {

/// CRC-32C (Castagnoli) of bytes, and as TFRecord masks it: rotated, plus a constant.
uint32_t crc32c(std::string_view bytes);
uint32_t maskedCrc(std::string_view bytes);

/// A record: `bytes` with its length and checksums.
std::string tfRecord(std::string_view bytes);

/// The tag of a scalar of a log's row: `train/loss`, `validation/loss` for val_loss, `train_details/grad_norm_h.0`.
std::string tensorBoardTag(const std::string &name);

/// Events of a file, without TFRecord's frame. `wall` is the time in seconds since 1970. Numbers are f32; texts belong
/// to the text plugin.
std::string versionEvent(double wall);
std::string beginEvent(double wall, int64_t step);
std::string rowEvent(double wall, const StepRow &row);

class TensorBoardLog : public RowSink {
public:
  /// A new file in `folder`, which is created if missing, for a run that continues from `step`.
  TensorBoardLog(const std::string &folder, int64_t step);
  void write(const StepRow &row) override;
  const std::string &file() const { return path; }

private:
  void put(const std::string &event);

  std::string path;
  std::optional<AppendedFile> written;
};

} // namespace kiln
